"""Generates functions for one schema, which make the conversion of every value cheap.

For a struct of (ID INT32, NAME STRING) that is converted to a dict, the function is

    def convert(value):
        if type(value) is not Struct or value.schema is not schema: check(value)
        value0, value1, = value.values
        return {
            'ID': value0 if type(value0) is int and -2147483648 <= ... else other0(value0),
            'NAME': value1 if type(value1) is str else other1(value1),
        }

where `other` converts null and other values, or raises an error with the location.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from struct import Struct as Layout
from typing import Any, Generic, TypeVar

from broker.serde.program import Program
from connect.data import NO_DEFAULT, ConnectSchema, Struct, Type
from connect.errors import DataError

# Any: the functions check the types of their values.
Convert = Callable[[Any], Any]

_pack_float = Layout("<f").pack

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Compiled(dict[K, V], Generic[K, V]):
    """A cache of created objects by key; it is cleared when it is full."""

    def __init__(self, make: Callable[[K], V], *, capacity: int = 1_000) -> None:
        super().__init__()
        self._make = make
        self._capacity = capacity

    def __missing__(self, key: K) -> V:
        """Creates the object; racing threads create equal ones."""
        made = self._make(key)
        if len(self) >= self._capacity:
            self.clear()
        self[key] = made
        return made


@dataclass(frozen=True, slots=True)
class Conversion:
    """How values are converted; `simple` is a condition on {0} for values that are not changed.

    The function accepts every value, including null and simple ones. `quick` is a shorter one,
    which never fails, for values that meet a condition.
    """

    convert: Convert
    simple: str = ""
    quick: tuple[str, Convert] | None = None

    def expression(self, value: str, other: str) -> str:
        """The source of a converted value; `other` is the name of the function."""
        if self.quick is not None:
            condition = self.quick[0].format(value)
            return f"quick_{other}({value}) if {condition} else {other}({value})"
        if not self.simple:
            return f"{other}({value})"
        return f"{value} if {self.simple.format(value)} else {other}({value})"

    def functions(self, other: str, convert: Convert) -> dict[str, object]:
        """The functions for the names in the expression."""
        quick = {} if self.quick is None else {f"quick_{other}": self.quick[1]}
        return {other: convert, **quick}


_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}

# Conditions for the type of a value; floats that JSON cannot represent are not simple.
SIMPLE: dict[Type, str] = {
    Type.FLOAT64: "type({0}) is float and -1.7976931348623157e308 <= {0} <= 1.7976931348623157e308",
    Type.BOOLEAN: "({0} is True or {0} is False)",
    Type.STRING: "type({0}) is str",
    Type.BYTES: "type({0}) is bytes",
} | {
    kind: f"type({{0}}) is int and {-(1 << bits - 1)} <= {{0}} <= {(1 << bits - 1) - 1}"
    for kind, bits in _BITS.items()
}


def simple_for(schema: ConnectSchema) -> str:
    """The condition for a schema's type; null is also simple if it needs no conversion."""
    condition = SIMPLE[schema.type]
    if schema.optional and schema.default is NO_DEFAULT:
        return f"({{0}} is None or {condition})"
    return condition


def float32_bytes(value: object) -> bytes:
    """A number in single precision; DataError if it is not a number."""
    if not isinstance(value, float):
        raise DataError(f"Invalid type for FLOAT32: {type(value).__name__}")
    try:
        return _pack_float(value)
    except OverflowError:
        hint = "make the field a FLOAT64"
        raise DataError(f"{value} is out of range for FLOAT32", hint=hint) from None


def within(part: str, error: DataError) -> DataError:
    """The same error, with the location of a part."""
    at = f"{part}, {error.at}" if error.at else part
    return DataError(error.message, at=at, hint=error.hint)


def located(part: str, convert: Convert) -> Convert:
    """The same function, whose errors contain the location of a part."""

    def convert_part(value: object) -> object:
        try:
            return convert(value)
        except DataError as error:
            raise within(part, error) from error.__cause__

    return convert_part


def one_field(schema: ConnectSchema, place: int, value: object) -> Struct:
    """A struct that represents a union: one field is not null."""
    values: list[object] = [None] * len(schema.fields)
    values[place] = value
    return Struct(schema, values)


def struct_values(
    program: Program, schema: ConnectSchema, check: Callable[[object], None]
) -> list[str]:
    """The lines that assign the names v0, v1 and so on to the values of the struct x."""
    name, checked = program.constant("schema", schema), program.constant("check", check)
    names = "".join(f"v{at}, " for at in range(len(schema.fields)))
    return [
        f"if type(x) is not Struct or x.schema is not {name}: {checked}(x)",
        f"{names}= x.values" if names else "() = x.values",
    ]


def check_struct(
    schema: ConnectSchema, mismatch: str = "Mismatching schema."
) -> Callable[[object], None]:
    """A function that refuses values that are not a struct with a matching schema."""

    def check(value: object) -> None:
        if type(value) is not Struct:
            raise DataError(f"Invalid type for STRUCT: {type(value).__name__}")
        if not value.schema.matches(schema):
            raise DataError(
                mismatch,
                hint=f"the value's schema is {value.schema}, the record's schema is {schema}",
            )

    return check


def struct_to_dict(schema: ConnectSchema, parts: Sequence[tuple[str, Conversion]]) -> Convert:
    """From structs of a schema to dicts; `parts` are the names in the dict, in field order."""
    names = [f"value{index}" for index in range(len(parts))]
    lines = [
        "if type(value) is not Struct or value.schema is not schema: check(value)",
        f"{', '.join(names)}, = value.values" if names else "() = value.values",
        f"return {{{_items(schema, parts, with_names=True)}}}",
    ]
    scope = {"Struct": Struct, "schema": schema, "check": check_struct(schema)}
    return function_of(lines, {**scope, **_others(schema, parts)})


def dict_to_struct(
    schema: ConnectSchema, parts: Sequence[tuple[str, Conversion]], refuse: Callable[[object], None]
) -> Convert:
    """From dicts to structs; `refuse` raises for other types, and missing fields are null."""
    lines = ["if type(value) is not dict: refuse(value)", "get = value.get"]
    lines += [f"value{index} = get({name!r})" for index, (name, _) in enumerate(parts)]
    lines.append(f"return Struct(schema, [{_items(schema, parts, with_names=False)}])")
    scope = {"Struct": Struct, "schema": schema, "refuse": refuse}
    return function_of(lines, {**scope, **_others(schema, parts)})


def list_to_list(element: Conversion) -> Convert:
    """From lists to lists; the caller has checked the type."""
    expression = element.expression("one", "other")
    lines = [f"return [{expression} for one in value]"]
    scope = element.functions("other", element.convert)
    return _locating(function_of(lines, scope), element.convert)


def dict_to_dict(element: Conversion) -> Convert:
    """From dicts to dicts with the same keys; the caller has checked the type."""
    expression = element.expression("one", "other")
    lines = [f"return {{key: {expression} for key, one in value.items()}}"]
    scope = element.functions("other", element.convert)
    return _locating(function_of(lines, scope), element.convert)


def _locating(convert_all: Convert, convert: Convert) -> Convert:
    """The same function; if it fails, the element that caused the error is searched."""

    def convert_elements(value: Any) -> object:
        try:
            return convert_all(value)
        except DataError:
            elements = value.items() if isinstance(value, dict) else enumerate(value)
            for key, one in elements:
                located(f"element {key!r}", convert)(one)
            raise

    return convert_elements


def _items(
    schema: ConnectSchema, parts: Sequence[tuple[str, Conversion]], *, with_names: bool
) -> str:
    assert len(schema.fields) == len(parts), "a part for every field"
    items = []
    for index, (name, part) in enumerate(parts):
        label = f"{name!r}: " if with_names else ""
        items.append(label + part.expression(f"value{index}", f"other{index}"))
    return ", ".join(items)


def _others(schema: ConnectSchema, parts: Sequence[tuple[str, Conversion]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for index, (field, (_, part)) in enumerate(zip(schema.fields, parts, strict=True)):
        found |= part.functions(f"other{index}", located(f'field "{field.name}"', part.convert))
    return found


def function_of(lines: Sequence[str], scope: dict[str, object]) -> Convert:
    """A function of one argument, `value`; names in its lines are generated, or quoted."""
    text = "\n    ".join(["def convert(value):", *lines])
    exec(compile(text, "<generated converter>", "exec"), scope)
    found = scope["convert"]
    assert callable(found), "it was defined"
    return found
