"""Compares responses of the HTTP API with those that a case expects."""

import base64
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from google.protobuf.text_format import MessageToString  # type: ignore[import-untyped]

from broker.serde.schema.protobuf_schema import parse_protobuf
from sql.testing.comparing import ABSOLUTE_DIFFERENCE, RELATIVE_DIFFERENCE
from sql.testing.failures import CaseFailed

STARTS_WITH = "|starts_with"


# Any: any JSON value.
def check_answer(actual: Any, response: Mapping[str, Any], where: str) -> None:
    """Compare an entity, or the rows of a query; only members listed in the case are compared."""
    body = response["body"]
    if response["kind"] == "admin":
        if not has(actual, body):
            raise CaseFailed(f"{where} is {actual}, expected {body}")
        return
    if response["kind"] == "queryProto":
        actual = _messages(actual)
        body = [{"row": {"columns": each["row"]}} if "row" in each else each for each in body]
    if len(actual) != len(body):
        raise CaseFailed(f"{where} has {len(actual)} parts, expected {len(body)}: {actual}")
    left = [each["row"]["columns"] for each in actual if "row" in each]
    for number, (found, wanted) in enumerate(zip(actual, body, strict=True)):
        if not has(found, _without_columns(wanted)):
            raise CaseFailed(f"{where}, part {number} is {found}, expected {wanted}")
        columns = wanted.get("row", {}).get("columns")
        if columns is not None:
            place = next((i for i, each in enumerate(left) if same_json(each, columns)), None)
            if place is None:
                raise CaseFailed(f"{where} has no row {columns}; left are {left}")
            left.pop(place)


def _messages(answer: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in Protobuf, in its text format."""
    schema = parse_protobuf(answer[0]["header"]["protoSchema"], {})
    message = schema.message_class(schema.default_message)
    return [
        {"row": {"columns": MessageToString(message.FromString(base64.b64decode(each["row"])))}}
        if "row" in each
        else each
        for each in answer
    ]


def _without_columns(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Rows may have any order: their columns are compared separately."""
    if "row" not in wanted:
        return dict(wanted)
    return {"row": {name: each for name, each in wanted["row"].items() if name != "columns"}}


def has(actual: Any, wanted: Mapping[str, Any]) -> bool:
    """Whether an object has all members of another."""
    if not isinstance(actual, dict):
        return False
    for name, value in wanted.items():
        if name.endswith(STARTS_WITH):
            found = actual.get(name.removesuffix(STARTS_WITH))
            if not isinstance(found, str) or not found.startswith(value):
                return False
        elif name not in actual:
            return False
        elif isinstance(value, dict):
            if not has(actual[name], value):
                return False
        elif not same_json(actual[name], value):
            return False
    return True


def same_json(actual: Any, wanted: Any) -> bool:
    """Whether two JSON values are equal; numbers need only be approximately equal."""
    match wanted:
        case bool() | None | str():
            return type(actual) is type(wanted) and actual == wanted
        case list():
            return (
                isinstance(actual, list)
                and len(actual) == len(wanted)
                and all(map(same_json, actual, wanted))
            )
        case dict():
            return (
                isinstance(actual, dict)
                and actual.keys() == wanted.keys()
                and all(same_json(actual[name], each) for name, each in wanted.items())
            )
        case _:
            return _same_number(actual, wanted)


def _same_number(actual: object, wanted: int | Decimal) -> bool:
    if isinstance(actual, bool) or not isinstance(actual, int | Decimal):
        return False
    found, near = float(actual), float(wanted)
    return abs(found - near) < ABSOLUTE_DIFFERENCE or math.isclose(
        found, near, rel_tol=RELATIVE_DIFFERENCE
    )
