"""Protobuf messages as rows: the conversion of their fields to columns."""

from collections.abc import Callable, Sequence

from google.protobuf.descriptor import (  # type: ignore[import-untyped]
    Descriptor,
    FieldDescriptor,
    OneofDescriptor,
)
from google.protobuf.message import Message  # type: ignore[import-untyped]

from broker.serde.program import Program
from broker.serde.protobuf_codec.decoding import (
    DecodedRecord,
    DecodedUnion,
    Decoding,
    is_unsigned_64,
    signed,
    symbol_of,
)
from broker.serde.schema.protobuf_fields import Member, fields_outside, union_name, unions
from sql.datatypes import (
    DATE,
    TIME,
    TIMESTAMP,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
)
from sql.numeric_types import fit_decimal
from sql.rows.coercion import Convert, coercion, mismatch
from sql.rows.place import Place
from sql.rows.protobuf_columns import WRAPPERS, scalar_type
from sql.rows.protobuf_values import date_of, decimal_of, time_of, timestamp_of
from sql.rows.row_format import Row

_TIMES: dict[DataType, Convert] = {DATE: date_of, TIME: time_of, TIMESTAMP: timestamp_of}
_UNSIGNED_WRAPPER = "google.protobuf.UInt64Value"


def row_reader(message: Descriptor, columns: Sequence[Column]) -> Callable[[Message], Row]:
    """A function from a message to a row; columns without a field are null."""
    program = Program("generated Protobuf reader of rows")
    return Decoding(program, _Columns(program)).function(message, Place(tuple(columns), ""))


class _Columns:
    """Creates values of columns: rows are tuples, structs are dicts, with ksqlDB's coercions."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def leaf(self, field: FieldDescriptor, wanted: Place, x: str) -> str | None:
        """Coerced to the type of the column; structs are messages."""
        written, data_type = scalar_type(field), wanted.type
        if written is None:
            if isinstance(data_type, StructType):
                return None
            name = f'the Protobuf message "{field.message_type.full_name}"'
            raise mismatch(name, data_type, wanted.path)
        assert not isinstance(data_type, tuple), "rows are of messages"
        convert, read = coercion(written, data_type, wanted.path), _reading(field, written)
        if isinstance(written, DecimalType) and isinstance(data_type, DecimalType):
            known = data_type
            convert, read = (lambda number: fit_decimal(number, known)), decimal_of
        if field.message_type is not None and field.message_type.full_name in WRAPPERS:
            x = f"{x}.value"
        for each in (read, convert):
            x = x if each is None else f"{self._program.constant('convert', each)}({x})"
        return x

    def record(self, message: Descriptor, wanted: Place) -> DecodedRecord[Place]:
        """A tuple of all columns, or a dict of all fields."""
        members: list[Member] = [*unions(message), *fields_outside(message)]
        if isinstance(wanted.type, tuple):
            return _made(members, wanted.type, "", "({})", "{value}, ")
        assert isinstance(wanted.type, StructType), "leaf has refused others"
        return _made(
            members, wanted.type.fields, f"{wanted.path}.", "{{{}}}", "{name!r}: {value}, "
        )

    def union(self, union: OneofDescriptor, wanted: Place) -> DecodedUnion[Place]:
        """The struct of a union's fields, of which at most one is not null."""
        data_type, path = wanted.type, wanted.path
        if not isinstance(data_type, StructType):
            raise mismatch(f'the Protobuf union "{union.full_name}"', data_type, path)
        by_name = _by_name(union.fields)
        empty = dict.fromkeys(each.name for each in data_type.fields)
        nothing = self._program.constant("empty", empty)

        def whole(name: str) -> Callable[[str], str]:
            return lambda x: f"{{**{nothing}, {name!r}: {x}}}"

        options = []
        for each in data_type.fields:
            field = by_name.get(each.name) or by_name.get(each.name.upper())
            if isinstance(field, FieldDescriptor):
                inner = Place(each.type, f"{path}.{each.name}")
                options.append((field, inner, whole(each.name)))
        return DecodedUnion(options, f"{nothing}.copy()", "None")

    def absent(self, field: FieldDescriptor, wanted: Place) -> str | None:
        """Null if the field is nullable; fields of proto2 have defaults instead."""
        union = field.containing_oneof
        is_optional = union is not None and union.name == f"_{field.name}"
        return "None" if field.message_type is not None or is_optional else None

    def items(self, field: FieldDescriptor, wanted: Place, x: str) -> tuple[Place, str]:
        """A list."""
        if not isinstance(wanted.type, ArrayType):
            raise _mismatch(field, wanted)
        return Place(wanted.type.element, wanted.path), x

    def entries(self, field: FieldDescriptor, wanted: Place) -> tuple[Place, Place]:
        """A dict."""
        if not isinstance(wanted.type, MapType):
            raise _mismatch(field, wanted)
        return Place(wanted.type.key, wanted.path), Place(wanted.type.value, wanted.path)


def _made(
    members: Sequence[Member], fields: Sequence[Column | Field], path: str, whole: str, item: str
) -> DecodedRecord[Place]:
    by_name = _by_name(members)
    found = [by_name.get(each.name) or by_name.get(each.name.upper()) for each in fields]
    wanted = [
        (member, Place(each.type, path + each.name))
        for member, each in zip(found, fields, strict=True)
        if member is not None
    ]

    def source(read: Sequence[str]) -> str:
        values = iter(read)
        return whole.format(
            "".join(
                item.format(name=each.name, value="None" if member is None else next(values))
                for member, each in zip(found, fields, strict=True)
            )
        )

    return DecodedRecord(wanted, source)


def _by_name(members: Sequence[Member]) -> dict[str, Member]:
    """By exact name, and in upper case unless another field has that name."""
    found = {
        union_name(each) if isinstance(each, OneofDescriptor) else each.name: each
        for each in members
    }
    return {name.upper(): each for name, each in found.items()} | found


def _reading(field: FieldDescriptor, written: DataType) -> Convert | None:
    """The conversion of upb's value to a value of the written type."""
    if field.type == FieldDescriptor.TYPE_ENUM:
        return symbol_of(field.enum_type)
    if field.message_type is None:
        return signed if is_unsigned_64(field) else None
    return signed if field.message_type.full_name == _UNSIGNED_WRAPPER else _TIMES.get(written)


def _mismatch(field: FieldDescriptor, wanted: Place) -> Exception:
    return mismatch(f'the Protobuf field "{field.full_name}"', wanted.type, wanted.path)
