"""Plans as JSON and back: in the command log, and for other processes.

Dataclasses are {"@": "Scan", "name": ..., ...} with their fields; types are {"type":
"ARRAY<INTEGER>"}; functions are {"function": "LEN", "takes": ["STRING"], "kind": "scalar"} and are
looked up by the types of their parameters; other values that JSON does not have are {"decimal":
"1.10"} and so on. Lists in JSON are tuples; list values are {"list": [...]}.

Command logs contain these documents permanently. A renamed class or field must still be readable
under its old name. A new field needs a default, and is omitted while it has the default
(`NEW_FIELDS`), so that documents without it do not change. tests/cases/command_log has old
documents.
"""

import base64
import dataclasses
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import Enum
from functools import lru_cache

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
from sql.functions.signatures import Parameter, Signature, TypeVariable
from sql.parse import parse_type
from sql.plan import PlanNode
from sql.syntax import queries
from sql.syntax.statements import SourceKind

Json = object
# Creates the placeholder of a missing function from its name, its parameters' types and its kind.
Missing = Callable[[str, Sequence[str], str], Overload]

OVERLOADS = (Scalar, AggregateOverload, TableOverload)
TYPES = (Primitive, DecimalType, ArrayType, MapType, StructType)
KINDS: dict[str, type[Overload]] = {
    "scalar": Scalar,
    "aggregate": AggregateOverload,
    "table": TableOverload,
}
# By the names in documents.
ENUMS: dict[str, type[Enum]] = {
    "Emit": queries.EmitClause,
    "JoinKind": queries.JoinKind,
    "SourceKind": SourceKind,
    "WindowKind": queries.WindowKind,
}
ENUM_NAMES = {each: name for name, each in ENUMS.items()}
NEW_FIELDS: dict[str, frozenset[str]] = {"Scan": frozenset({"kept"})}
TYPES_KEPT_MAX = 4_096
VARIADIC = "..."
CLASSES = {
    found.__name__: found
    for module in (plan, expressions, catalog, schema)
    for found in vars(module).values()
    if isinstance(found, type) and dataclasses.is_dataclass(found) and found not in TYPES
} | {"Column": Column}


def plan_to_json(node: PlanNode) -> dict[str, Json]:
    """A plan as JSON values."""
    made = to_json(node)
    assert isinstance(made, dict)
    return made


def plan_from_json(
    document: Json, functions: FunctionRegistry, missing: Missing | None = None
) -> PlanNode:
    """The plan in a document; SqlError if it is invalid, or needs a missing function.

    `missing` returns the overload that replaces a missing function.
    """
    result = from_json(document, functions, missing)
    if not isinstance(result, PlanNode):
        raise SqlError("a plan cannot be read: it is not a step")
    return result


def from_json(
    document: Json, functions: FunctionRegistry, missing: Missing | None = None
) -> object:
    """The value of a document from `to_json`; SqlError if it is invalid."""
    try:
        return _Decoder(functions, missing or _refuse_missing).value(document)
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise SqlError(f"a plan cannot be read: {error!r}") from error


def missing_function(name: str, takes: Sequence[str], kind: str) -> Overload:
    """An overload that cannot be called, but is written to JSON as it was read."""

    # Any: it never returns.
    def call(*given: object) -> object:
        raise SqlError(f"the function {_call_text(name, takes)} is not available")

    parameters = tuple(
        Parameter(f"p{n}", TypeVariable(each.removesuffix(VARIADIC)), each.endswith(VARIADIC))
        for n, each in enumerate(takes)
    )
    signature = Signature(name, parameters, TypeVariable("T"))
    if KINDS[kind] is AggregateOverload:
        return AggregateOverload(signature, call)  # type: ignore[arg-type]
    return (
        TableOverload(signature, call) if KINDS[kind] is TableOverload else Scalar(signature, call)
    )


def to_json(value: object) -> Json:
    """Plans, sources, schemas and types as JSON values."""
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
            return [to_json(each) for each in value]
        case list():
            return {"list": [to_json(each) for each in value]}
        case dict():
            return {"dict": [[to_json(key), to_json(each)] for key, each in value.items()]}
        case _:
            return _encoded_object(value)


def _encoded_object(value: object) -> Json:
    if isinstance(value, TYPES):
        return {"type": str(value)}
    if isinstance(value, OVERLOADS):
        kind = next(name for name, each in KINDS.items() if isinstance(value, each))
        return {"function": value.signature.name, "takes": _takes(value), "kind": kind}
    if isinstance(value, Enum):
        return {"enum": ENUM_NAMES[type(value)], "value": value.value}
    name = type(value).__name__
    assert name in CLASSES, f"{name} is not part of a plan"
    assert dataclasses.is_dataclass(value)
    new = NEW_FIELDS.get(name, frozenset())
    fields = {each: getattr(value, each) for each in _field_names(name)}
    return {"@": name} | {
        each: to_json(found)
        for each, found in fields.items()
        if not (each in new and found is None)
    }


@lru_cache
def _field_names(name: str) -> tuple[str, ...]:
    return tuple(each.name for each in dataclasses.fields(CLASSES[name]))


@dataclasses.dataclass(frozen=True, slots=True)
class _Decoder:
    """Decodes documents."""

    functions: FunctionRegistry
    missing: Missing

    def value(self, value: Json) -> object:
        """The value of a document."""
        if isinstance(value, list):
            return tuple(map(self.value, value))
        if not isinstance(value, dict):
            return value
        if "@" in value:
            return self._object(value)
        if "function" in value:
            return self._function(value["function"], value["takes"], value["kind"])
        return self._plain(value)

    def _object(self, value: dict[str, Json]) -> object:
        name = str(value["@"])
        if name not in CLASSES:
            raise _unknown(f'"{name}"')
        given = {each: self.value(found) for each, found in value.items() if each != "@"}
        unknown = [f'"{each}"' for each in given if each not in _field_names(name)]
        if unknown:
            raise _unknown(f'{", ".join(unknown)} of "{name}"')
        return CLASSES[name](**given)

    def _plain(self, value: dict[str, Json]) -> object:
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
                return list(map(self.value, found))
            case {"dict": list(found)}:
                return {self.value(key): self.value(each) for key, each in found}
        raise ValueError(f"unknown value {sorted(value)}")

    def _function(self, name: str, takes: Sequence[str], kind: str) -> Overload:
        overloads = self.functions.get(name).overloads if name in self.functions else ()
        for overload in overloads:
            if isinstance(overload, KINDS[kind]) and _takes(overload) == takes:
                return overload
        return self.missing(name, takes, kind)


def _unknown(what: str) -> SqlError:
    return SqlError(
        f"a plan cannot be read: this version does not support {what}",
        hint="a newer version of the server wrote the plan: upgrade this server",
    )


def _takes(overload: Overload) -> list[str]:
    """The types of a function's parameters; the parameters may be renamed."""
    return [
        f"{each.pattern}{VARIADIC if each.variadic else ''}"
        for each in overload.signature.parameters
    ]


def _call_text(name: str, takes: Sequence[str]) -> str:
    return f"{name}({', '.join(takes)})"


def _refuse_missing(name: str, takes: Sequence[str], kind: str) -> Overload:
    raise SqlError(f"a plan needs the function {_call_text(name, takes)}, which is not available")


@lru_cache(maxsize=TYPES_KEPT_MAX)
def _type(text: str) -> DataType:
    return data_type(parse_type(text), {})
