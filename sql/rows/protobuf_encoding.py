"""Rows as Protobuf messages: the conversion of columns to fields."""

from collections.abc import Callable, Sequence

from google.protobuf.descriptor import (  # type: ignore[import-untyped]
    Descriptor,
    FieldDescriptor,
    OneofDescriptor,
)
from google.protobuf.message import Message  # type: ignore[import-untyped]

from broker.errors import SchemaError, SerdeError
from broker.serde.program import Program
from broker.serde.protobuf_codec.encoding import Choice, Encoding, Parts
from broker.serde.schema.protobuf_fields import Member, fields_outside, union_name, unions
from sql.datatypes import (
    BIGINT,
    DATE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    Field,
    MapType,
    Primitive,
    StructType,
)
from sql.rows.coercion import Convert
from sql.rows.place import Place
from sql.rows.protobuf_columns import WRAPPERS, scalar_type
from sql.rows.protobuf_values import date_fields, decimal_fields, time_fields, timestamp_fields
from sql.rows.row_format import Row

_TIMES: dict[DataType, Convert] = {
    DATE: date_fields,
    TIME: time_fields,
    TIMESTAMP: timestamp_fields,
}
# Replaces null inside a list or map, where null cannot be represented.
_DEFAULTS: dict[int, object] = {
    FieldDescriptor.CPPTYPE_BOOL: False,
    FieldDescriptor.CPPTYPE_STRING: "",
    FieldDescriptor.CPPTYPE_FLOAT: 0.0,
    FieldDescriptor.CPPTYPE_DOUBLE: 0.0,
}


def row_writer(
    message_class: type[Message], columns: Sequence[Column], prefix: bytes
) -> Callable[[Row], bytes]:
    """A function from a row to the bytes of a message; null fields are not set."""
    program = Program("generated Protobuf writer of rows")
    encoding = Encoding(program, _Columns(program))
    fields = encoding.function(message_class.DESCRIPTOR, Place(tuple(columns), ""))

    def write(row: Row) -> bytes:
        result: bytes = prefix + message_class(**fields(row)).SerializeToString()
        return result

    return write


class _Columns:
    """Reads rows, which are tuples, and structs, which are dicts."""

    def __init__(self, program: Program) -> None:
        self._program = program
        program.shared(list_of=_list)

    def leaf(self, field: FieldDescriptor, wanted: Place, x: str) -> str | None:
        """Times and decimals as the fields of their messages; structs are messages."""
        found, data_type = scalar_type(field), wanted.type
        if isinstance(data_type, StructType) and found is None:
            return None
        if isinstance(data_type, DecimalType) and isinstance(found, DecimalType):
            return f"{self._program.constant('decimal', _decimal_writer(data_type))}({x})"
        if not isinstance(data_type, Primitive) or not (
            found == data_type or (found is BIGINT and data_type is INT)
        ):
            raise _unsuitable(field, wanted)
        if data_type in _TIMES:
            return f"{self._program.constant('fields', _TIMES[data_type])}({x})"
        if field.message_type is not None and field.message_type.full_name in WRAPPERS:
            return f"{{'value': {x}}}"
        return x

    def null(self, field: FieldDescriptor, wanted: Place) -> str:
        """Null fields are not set."""
        return "None"

    def null_item(self, field: FieldDescriptor, wanted: Place) -> str:
        """A default, because lists and maps cannot contain nulls."""
        if scalar_type(field) is DATE:
            return repr(date_fields(0))
        if field.message_type is not None:
            return "{}"
        if field.type == FieldDescriptor.TYPE_BYTES:
            return repr(b"")
        return repr(_DEFAULTS.get(field.cpp_type, 0))

    def record(self, message: Descriptor, wanted: Place) -> Parts[Place]:
        """The columns of a row, or the fields of a struct."""
        if isinstance(wanted.type, tuple):
            names = [f"v{at}" for at in range(len(wanted.type))]
            lines = [f"{', '.join(names)}, = x" if names else "() = x"]
            return Parts(lines, _members(message, wanted.type, names, ""))
        assert isinstance(wanted.type, StructType), "leaf has refused others"
        fields = wanted.type.fields
        names = [f"v{at}" for at in range(len(fields))]
        pairs = zip(names, fields, strict=True)
        lines = ["get = x.get", *(f"{name} = get({each.name!r})" for name, each in pairs)]
        return Parts(lines, _members(message, fields, names, f"{wanted.path}."))

    def union(self, union: OneofDescriptor, wanted: Place) -> Choice[Place]:
        """The one field of a struct that has a value."""
        path = wanted.path
        if not isinstance(wanted.type, StructType):
            raise SchemaError(f'"{path}" is a union in Protobuf, but the column is {wanted.type}')
        by_name = {each.name: each for each in union.fields}
        options = []
        for each in wanted.type.fields:
            if each.name not in by_name:
                raise SchemaError(f'the union "{path}" has no field "{each.name}"')
            place = Place(each.type, f"{path}.{each.name}")
            test, value = f"present == [{each.name!r}]", f"x[{each.name!r}]"
            options.append((test, by_name[each.name], value, place))
        names = tuple(each.name for each in wanted.type.fields)
        lines = [
            "if x is None: return {}",
            f"present = [each for each in {names!r} if x.get(each) is not None]",
        ]
        none = self._program.constant("none", _no_option(path))
        return Choice(lines, options, f"return {none}(present)")

    def items(self, field: FieldDescriptor, wanted: Place, x: str) -> tuple[str, Place, str]:
        """The items of a list."""
        if not isinstance(wanted.type, ArrayType):
            raise _unsuitable(field, wanted)
        return f"list_of({x})", Place(wanted.type.element, wanted.path), ""

    def entries(self, field: FieldDescriptor, wanted: Place, x: str) -> tuple[str, Place, Place]:
        """The entries of a dict."""
        data_type = wanted.type
        if not isinstance(data_type, MapType) or data_type.key is not STRING:
            raise _unsuitable(field, wanted)
        key, value = (Place(each, wanted.path) for each in (data_type.key, data_type.value))
        return f"{x}.items()", key, value


def _members(
    message: Descriptor, columns: Sequence[Column | Field], names: list[str], path: str
) -> list[tuple[Member, str, Place]]:
    by_name: dict[str, Member] = {union_name(each): each for each in unions(message)}
    by_name |= {each.name: each for each in fields_outside(message)}
    result: list[tuple[Member, str, Place]] = []
    for name, each in zip(names, columns, strict=True):
        if each.name not in by_name:
            raise SchemaError(
                f'the Protobuf message "{message.full_name}" lacks field "{path}{each.name}"',
                hint=f"its fields are {', '.join(by_name)}",
            )
        result.append((by_name[each.name], name, Place(each.type, path + each.name)))
    return result


def _decimal_writer(wanted: DecimalType) -> Convert:
    return lambda value: decimal_fields(value, wanted)


def _list(items: object) -> list[object]:
    # Otherwise, a string would be a list of characters.
    if not isinstance(items, list):
        raise SerdeError(f"{type(items).__name__} is not a list")
    return items


def _no_option(path: str) -> Callable[[list[str]], dict[str, object]]:
    def none(present: list[str]) -> dict[str, object]:
        if present:
            raise SerdeError(f'{len(present)} fields of the union "{path}" have values')
        return {}

    return none


def _unsuitable(field: FieldDescriptor, wanted: Place) -> SchemaError:
    return SchemaError(
        f'the Protobuf field "{field.full_name}" cannot have values of column "{wanted.path}", '
        f"which are {wanted.type}"
    )
