"""Schemas and values that connectors, transforms and converters exchange.

    schema = struct("customer", {"id": INT64, "name": OPTIONAL_STRING, "since": date()})
    row = Struct.from_dict(schema, {"id": 7, "since": datetime.date(2024, 5, 17)})
    row["id"]                                   # 7

Values are natural Python:

type      value          logical type    underlying schema      value
INT8-64   int            Decimal         BYTES, scale           decimal.Decimal
FLOAT32   float          Date            INT32, days            datetime.date
FLOAT64   float          Time            INT32, milliseconds    datetime.time
BOOLEAN   bool           Timestamp       INT64, milliseconds    datetime.datetime with a time zone
STRING    str
BYTES     bytes          ARRAY  list     MAP  dict     STRUCT  Struct
"""

import dataclasses
import datetime
import enum
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from decimal import Decimal
from typing import Final, Self

from broker.java.number_text import double_text
from connect.errors import DataError

_LOGICAL = "org.apache.kafka.connect.data."
DECIMAL_NAME: Final = _LOGICAL + "Decimal"
DATE_NAME: Final = _LOGICAL + "Date"
TIME_NAME: Final = _LOGICAL + "Time"
TIMESTAMP_NAME: Final = _LOGICAL + "Timestamp"
SCALE_PARAMETER: Final = "scale"

# As in Kafka: a default of null means that there is none.
NO_DEFAULT: Final = None


class Type(enum.Enum):
    """The types of values, by their names in the JSON converter's schemas."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"

    # Members are unique objects, and enum's own hash is a Python function: too slow for keys.
    __hash__ = object.__hash__

    @property
    def is_primitive(self) -> bool:
        """Whether values of this type are not containers."""
        return self not in (Type.ARRAY, Type.MAP, Type.STRUCT)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct's schema."""

    name: str
    schema: "ConnectSchema"


@dataclass(frozen=True, slots=True, eq=False)
class ConnectSchema:
    """The schema of a value; equal schemas are interchangeable, and all are hashable.

    An array or map without schemas of its elements is empty, or its types are unknown.
    """

    type: Type
    optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] | None = None
    default: object = NO_DEFAULT
    fields: tuple[Field, ...] = ()
    key_schema: "ConnectSchema | None" = None
    value_schema: "ConnectSchema | None" = None
    positions: Mapping[str, int] = dataclass_field(init=False, repr=False)
    _parts: tuple[object, ...] = dataclass_field(init=False, repr=False)
    _hash: int = dataclass_field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Validate the parts, and compute values that every record needs."""
        positions = {field.name: position for position, field in enumerate(self.fields)}
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "_parts", _comparable(self))
        object.__setattr__(self, "_hash", hash(self._parts))
        _check_parts(self)

    def field(self, name: str) -> Field | None:
        """The field of this name, if there is one."""
        position = self.positions.get(name)
        return None if position is None else self.fields[position]

    def with_(self, **changes: object) -> Self:
        """A copy of the schema with some parts changed."""
        # The names and types are checked by the constructor, not by the type checker.
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    def as_optional(self) -> "ConnectSchema":
        """A copy of the schema that allows null."""
        return self if self.optional else self.with_(optional=True)

    def matches(self, other: "ConnectSchema") -> bool:
        """Whether the schemas are equal, except for default and optional."""
        own, others = self._parts, other._parts  # noqa: SLF001 - of the same class
        return self == other or own[1:] == others[1:]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, ConnectSchema) or self._hash != other._hash:
            return False
        return self._parts == other._parts and self.default == other.default

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        """As in Kafka's messages."""
        return (
            f"Schema{{{self.name}:{self.type.name}}}"
            if self.name
            else f"Schema{{{self.type.name}}}"
        )


def _comparable(schema: ConnectSchema) -> tuple[object, ...]:
    # Without the default: lists and dicts have no hash.
    parameters = schema.parameters
    return (
        schema.optional,
        schema.type,
        schema.name,
        schema.version,
        schema.doc,
        None if parameters is None else frozenset(parameters.items()),
        schema.fields,
        schema.key_schema,
        schema.value_schema,
    )


def _check_parts(schema: ConnectSchema) -> None:
    if len(schema.positions) != len(schema.fields):
        names = [field.name for field in schema.fields]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"Cannot create field because of field name duplication {twice}")
    if schema.default is not NO_DEFAULT:
        try:
            validate(schema, schema.default)
        except DataError as error:
            raise DataError(f"Invalid default value: {error.message}", hint=error.hint) from None


INT8: Final = ConnectSchema(Type.INT8)
INT16: Final = ConnectSchema(Type.INT16)
INT32: Final = ConnectSchema(Type.INT32)
INT64: Final = ConnectSchema(Type.INT64)
FLOAT32: Final = ConnectSchema(Type.FLOAT32)
FLOAT64: Final = ConnectSchema(Type.FLOAT64)
BOOLEAN: Final = ConnectSchema(Type.BOOLEAN)
STRING: Final = ConnectSchema(Type.STRING)
BYTES: Final = ConnectSchema(Type.BYTES)
OPTIONAL_INT8: Final = INT8.as_optional()
OPTIONAL_INT16: Final = INT16.as_optional()
OPTIONAL_INT32: Final = INT32.as_optional()
OPTIONAL_INT64: Final = INT64.as_optional()
OPTIONAL_FLOAT32: Final = FLOAT32.as_optional()
OPTIONAL_FLOAT64: Final = FLOAT64.as_optional()
OPTIONAL_BOOLEAN: Final = BOOLEAN.as_optional()
OPTIONAL_STRING: Final = STRING.as_optional()
OPTIONAL_BYTES: Final = BYTES.as_optional()


def struct(
    name: str | None,
    fields: Mapping[str, ConnectSchema] | Iterable[Field],
    *,
    optional: bool = False,
) -> ConnectSchema:
    """The schema of a struct, from its fields or from a mapping of names to schemas."""
    if isinstance(fields, Mapping):
        fields = (Field(field, schema) for field, schema in fields.items())
    return ConnectSchema(Type.STRUCT, optional, name, fields=tuple(fields))


def array(of: ConnectSchema, *, optional: bool = False) -> ConnectSchema:
    """The schema of a list."""
    return ConnectSchema(Type.ARRAY, optional, value_schema=of)


def map_of(keys: ConnectSchema, values: ConnectSchema, *, optional: bool = False) -> ConnectSchema:
    """The schema of a dict."""
    return ConnectSchema(Type.MAP, optional, key_schema=keys, value_schema=values)


def decimal(scale: int, *, optional: bool = False) -> ConnectSchema:
    """The schema of decimal numbers with this many digits after the decimal point."""
    parameters = {SCALE_PARAMETER: str(scale)}
    return ConnectSchema(Type.BYTES, optional, DECIMAL_NAME, 1, parameters=parameters)


def date(*, optional: bool = False) -> ConnectSchema:
    """The schema of a date."""
    return ConnectSchema(Type.INT32, optional, DATE_NAME, 1)


def time(*, optional: bool = False) -> ConnectSchema:
    """The schema of a time of day, to the millisecond."""
    return ConnectSchema(Type.INT32, optional, TIME_NAME, 1)


def timestamp(*, optional: bool = False) -> ConnectSchema:
    """The schema of a point in time, to the millisecond."""
    return ConnectSchema(Type.INT64, optional, TIMESTAMP_NAME, 1)


class Struct:
    """A row: values in the order of the schema's fields.

    The constructor does not validate its list; `put` and `from_dict` validate their values.
    """

    __slots__ = ("schema", "values")

    def __init__(self, schema: ConnectSchema, values: list[object] | None = None) -> None:
        """A struct of these values (not copied and not validated), or an empty one."""
        if schema.type is not Type.STRUCT:
            raise DataError(f"Not a struct schema: {schema}")
        if values is not None and len(values) != len(schema.fields):
            raise DataError(f"{len(values)} values for the {len(schema.fields)} fields of {schema}")
        self.schema = schema
        self.values: list[object] = [None] * len(schema.fields) if values is None else values

    @classmethod
    def from_dict(cls, schema: ConnectSchema, values: Mapping[str, object]) -> Self:
        """A validated struct; nested dicts become structs if the schema has them."""
        made = cls(schema)
        for name, value in values.items():
            made.put(name, _with_structs(made._field(name).schema, value))
        made.validate()
        return made

    def __getitem__(self, name: str) -> object:
        """The value of a field, or its default if it has no value."""
        position = self.schema.positions.get(name)
        if position is None:
            raise self._no_field(name)
        value = self.values[position]
        return self.schema.fields[position].schema.default if value is None else value

    def get(self, name: str, *, with_default: bool = True) -> object:
        """The value of a field, by default its default if it has no value."""
        if with_default:
            return self[name]
        position = self.schema.positions.get(name)
        if position is None:
            raise self._no_field(name)
        return self.values[position]

    def put(self, name: str, value: object) -> Self:
        """Set the value of a field; DataError if it does not match its schema."""
        field = self._field(name)
        _validate(field.schema, value, f'field: "{name}"')
        self.values[self.schema.positions[name]] = value
        return self

    def validate(self) -> None:
        """Check every value against its field's schema."""
        for field, value in zip(self.schema.fields, self.values, strict=True):
            if value is not None or field.schema.default is NO_DEFAULT:
                _validate(field.schema, value, f'field: "{field.name}"')

    def to_dict(self) -> dict[str, object]:
        """Names and values; nested structs become dicts, too."""
        return {field.name: _without_structs(self[field.name]) for field in self.schema.fields}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct):
            return NotImplemented
        return self.values == other.values and self.schema.matches(other.schema)

    __hash__ = None  # type: ignore[assignment]  # values may change

    def __repr__(self) -> str:
        """As in Kafka: without fields that have no value."""
        pairs = zip(self.schema.fields, self.values, strict=True)
        shown = (f"{field.name}={text_of(value)}" for field, value in pairs if value is not None)
        return f"Struct{{{','.join(shown)}}}"

    def _field(self, name: str) -> Field:
        field = self.schema.field(name)
        if field is None:
            raise self._no_field(name)
        return field

    def _no_field(self, name: str) -> DataError:
        names = ", ".join(self.schema.positions)
        return DataError(f"{name} is not a valid field name", hint=f"the fields are {names}")


def _with_structs(schema: ConnectSchema, value: object) -> object:
    if isinstance(value, Mapping) and schema.type is Type.STRUCT:
        return Struct.from_dict(schema, value)
    if isinstance(value, list) and schema.type is Type.ARRAY and schema.value_schema is not None:
        return [_with_structs(schema.value_schema, element) for element in value]
    if isinstance(value, Mapping) and schema.type is Type.MAP and schema.value_schema is not None:
        return {key: _with_structs(schema.value_schema, one) for key, one in value.items()}
    return value


def _without_structs(value: object) -> object:
    if isinstance(value, Struct):
        return value.to_dict()
    if isinstance(value, list):
        return [_without_structs(element) for element in value]
    if isinstance(value, dict):
        return {key: _without_structs(one) for key, one in value.items()}
    return value


def validate(schema: ConnectSchema, value: object) -> None:
    """Validate a value; DataError, with Kafka's message, if it does not match its schema."""
    _validate(schema, value, "value")


def _validate(schema: ConnectSchema | None, value: object, where: str) -> None:
    if schema is None:
        raise DataError(f"No schema defined for {where}")
    if value is None:
        if schema.optional:
            return
        raise DataError(
            f"Invalid value: null used for required {where}, schema type: {schema.type.name}"
        )
    fits = _LOGICAL_FITS.get(schema.name or "") or _FITS[schema.type]
    if not fits(value):
        raise _misfit(schema, value, where)
    if isinstance(value, Struct):
        if not value.schema.matches(schema):
            raise DataError("Struct schemas do not match.")
        value.validate()
    elif isinstance(value, list):
        for element in value:
            _validate(schema.value_schema, element, f"element of array {where}")
    elif isinstance(value, dict):
        _validate_entries(schema, value, where)


def _validate_entries(schema: ConnectSchema, entries: dict[object, object], where: str) -> None:
    for key, value in entries.items():
        _validate(schema.key_schema, key, f"key of map {where}")
        _validate(schema.value_schema, value, f"value of map {where}")


def _misfit(schema: ConnectSchema, value: object, where: str) -> DataError:
    name = f' "{schema.name}"' if schema.name else ""
    kind = type(value).__name__
    hint = ""
    if isinstance(value, int) and not isinstance(value, bool) and schema.type in _INTEGER_BITS:
        hint = f"{value} is out of range for {_INTEGER_BITS[schema.type]} bits"
    elif isinstance(value, datetime.datetime):
        hint = "a Timestamp must be a datetime with a time zone, such as datetime.now(UTC)"
    return DataError(
        f"Invalid Python object for schema{name} with type {schema.type.name}: {kind} for {where}",
        hint=hint,
    )


_INTEGER_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}


def _is_integer(bits: int) -> Callable[[object], bool]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return lambda value: type(value) is int and low <= value <= high


def _is(*kinds: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kinds)


# A bool is not an integer and a datetime not a date, although they are subclasses in Python.
_FITS: dict[Type, Callable[[object], bool]] = {
    **{kind: _is_integer(bits) for kind, bits in _INTEGER_BITS.items()},
    Type.FLOAT32: _is(float),
    Type.FLOAT64: _is(float),
    Type.BOOLEAN: _is(bool),
    Type.STRING: _is(str),
    Type.BYTES: _is(bytes, bytearray, memoryview),
    Type.ARRAY: _is(list),
    Type.MAP: _is(dict),
    Type.STRUCT: _is(Struct),
}
_LOGICAL_FITS: dict[str, Callable[[object], bool]] = {
    DECIMAL_NAME: _is(Decimal),
    DATE_NAME: lambda value: type(value) is datetime.date,
    TIME_NAME: _is(datetime.time),
    TIMESTAMP_NAME: lambda value: isinstance(value, datetime.datetime) and value.tzinfo is not None,
}


def schema_of(value: object) -> ConnectSchema | None:
    """The schema of a value; None if it cannot be inferred (null, empty or mixed lists)."""
    match value:
        case Struct():
            return value.schema
        case list():
            return _schema_of_elements(value, array)
        case dict():
            keys = _schema_of_elements(value.keys(), _itself)
            if keys is None:
                return None
            return _schema_of_elements(value.values(), lambda values: map_of(keys, values))
        case Decimal():
            exponent = value.as_tuple().exponent
            return decimal(-exponent) if isinstance(exponent, int) else None
    for schema in _INFERRED:
        if (_LOGICAL_FITS.get(schema.name or "") or _FITS[schema.type])(value):
            return schema
    return None


def _itself(schema: ConnectSchema) -> ConnectSchema:
    return schema


def _schema_of_elements(
    elements: Iterable[object], make: Callable[[ConnectSchema], ConnectSchema]
) -> ConnectSchema | None:
    inferred = {schema_of(element) for element in elements if element is not None}
    if len(inferred) != 1 or None in inferred:
        return None
    (schema,) = inferred
    assert schema is not None
    return make(schema.as_optional() if any(one is None for one in elements) else schema)


_INFERRED = (STRING, BOOLEAN, INT64, FLOAT64, BYTES, timestamp(), date(), time())


def text_of(value: object) -> str:
    """A value as a string, like Java's toString; times in ISO 8601, bytes as base64."""
    match value:
        case str():
            return value
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case bytes() | bytearray() | memoryview():
            return b2a_base64(value, newline=False).decode("ascii")
        case list():
            return f"[{', '.join(map(text_of, value))}]"
        case dict():
            pairs = (f"{text_of(key)}={text_of(one)}" for key, one in value.items())
            return f"{{{', '.join(pairs)}}}"
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
    return str(value)
