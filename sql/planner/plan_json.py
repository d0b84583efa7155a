"""Plans as JSON and back, so that a running query can be kept and moved.

Objects that are dataclasses are {"@": "Scan", "name": ..., ...} with their fields; types are
{"type": "ARRAY<INTEGER>"}; functions are {"function": "LEN", "signature": "LEN(STRING text)"} and
are looked up again; other values that JSON does not have are {"decimal": "1.10"} and the like.
Lists of JSON are tuples; lists that are values are {"list": [...]}.
"""

import base64
import dataclasses
from decimal import Decimal
from enum import Enum

from sql import catalog, expressions, plan, schema
from sql.analyse.type_names import data_type
from sql.datatypes import (
    ArrayType,
    Column,
    DataType,
    DecimalType,
    MapType,
    Primitive,
    StructType,
)
from sql.errors import SqlError
from sql.functions.registry import (
    AggregateOverload,
    FunctionRegistry,
    Overload,
    Scalar,
    TableOverload,
)
from sql.parse import parse_type
from sql.plan import PlanNode
from sql.syntax import queries

Json = object

OVERLOADS = (Scalar, AggregateOverload, TableOverload)
TYPES = (Primitive, DecimalType, ArrayType, MapType, StructType)
ENUMS = {each.__name__: each for each in (queries.JoinKind, queries.WindowKind)}
CLASSES = {
    found.__name__: found
    for module in (plan, expressions, catalog, schema)
    for found in vars(module).values()
    if isinstance(found, type) and dataclasses.is_dataclass(found) and found not in TYPES
} | {"Column": Column}


def plan_to_json(node: PlanNode) -> dict[str, Json]:
    """A plan as values that every JSON library writes."""
    made = _encoded(node)
    assert isinstance(made, dict)
    return made


def plan_from_json(document: Json, functions: FunctionRegistry) -> PlanNode:
    """The plan of a document; SqlError if it is none, or names a function that is not there."""
    try:
        found = _decoded(document, functions)
    except (TypeError, ValueError, KeyError) as error:
        raise SqlError(f"a plan cannot be read: {error!r}") from error
    if not isinstance(found, PlanNode):
        raise SqlError("a plan cannot be read: it is no step")
    return found


def _encoded(value: object) -> Json:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return {"double": repr(value)}
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
        case tuple():
            return [_encoded(each) for each in value]
        case list():
            return {"list": [_encoded(each) for each in value]}
        case dict():
            return {"dict": [[_encoded(key), _encoded(each)] for key, each in value.items()]}
        case _:
            return _encoded_object(value)


def _encoded_object(value: object) -> Json:
    if isinstance(value, TYPES):
        return {"type": str(value)}
    if isinstance(value, OVERLOADS):
        return {"function": value.signature.name, "signature": str(value.signature)}
    if isinstance(value, Enum):
        return {"enum": type(value).__name__, "value": value.value}
    name = type(value).__name__
    assert name in CLASSES, f"{name} is no part of a plan"
    assert dataclasses.is_dataclass(value)
    fields = {each.name: _encoded(getattr(value, each.name)) for each in dataclasses.fields(value)}
    return {"@": name, **fields}


def _decoded(value: Json, functions: FunctionRegistry) -> object:
    if isinstance(value, list):
        return tuple(_decoded(each, functions) for each in value)
    if not isinstance(value, dict):
        return value
    if "@" in value:
        made = CLASSES[value["@"]]
        return made(
            **{name: _decoded(each, functions) for name, each in value.items() if name != "@"}
        )
    if "function" in value:
        return _function(value["function"], value["signature"], functions)
    return _decoded_value(value, functions)


def _decoded_value(value: dict[str, Json], functions: FunctionRegistry) -> object:
    match value:
        case {"type": str(text)}:
            return _type(text)
        case {"enum": str(name), "value": found}:
            return ENUMS[name](found)
        case {"double": str(text)}:
            return float(text)
        case {"decimal": str(text)}:
            return Decimal(text)
        case {"bytes": str(text)}:
            return base64.b64decode(text, validate=True)
        case {"list": list(found)}:
            return [_decoded(each, functions) for each in found]
        case {"dict": list(found)}:
            return {_decoded(key, functions): _decoded(each, functions) for key, each in found}
    raise ValueError(f"unknown value {sorted(value)}")


def _type(text: str) -> DataType:
    return data_type(parse_type(text), {})


def _function(name: str, signature: str, functions: FunctionRegistry) -> Overload:
    for overload in functions.get(name).overloads:
        if str(overload.signature) == signature:
            return overload
    raise SqlError(f"a plan needs the function {signature}, which is not there")
