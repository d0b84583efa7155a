"""Rows from Avro's binary encoding: the conversion of its types to columns.

The functions that read the bytes are generated for each writer's schema
(`broker/serde/avro_codec/decoding.py`), and read times and decimals without their logical types.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TypeVar

from broker.errors import SerdeError
from broker.serde.avro_codec.decoding import DecodedRecord, Decoding
from broker.serde.program import Program
from broker.serde.schema.avro_types import RECORDS, AvroType, branch_name, is_map_entry
from sql.datatypes import (
    STRING,
    ArrayType,
    Column,
    DecimalType,
    Field,
    MapType,
    StructType,
)
from sql.numeric_types import fit_decimal
from sql.rows.avro_columns import avro_type
from sql.rows.coercion import coercion, mismatch, scaled
from sql.rows.place import Place
from sql.rows.row_format import Row

T = TypeVar("T")
Decode = Callable[[bytes], Row | None]


def row_reader(node: AvroType, columns: Sequence[Column], *, skip: int) -> Decode:
    """A function from the bytes of a record to a row; columns without a field are null."""
    kind = (node.present or node).kind
    if kind not in RECORDS:
        raise SerdeError(
            f"the Avro schema must be a record, not {kind}",
            hint="set WRAP_SINGLE_VALUE to false if the topic holds single values",
        )
    return _decoding().function(node, Place(tuple(columns), ""), skip=skip)


def single_reader(node: AvroType, column: Column, *, skip: int) -> Decode:
    """A function from the bytes of an unwrapped value to a row of one column."""
    whole = "None if x is None else (x,)"
    return _decoding().function(node, Place(column.type, column.name), skip=skip, whole=whole)


def _decoding() -> Decoding[Place]:
    program = Program("generated Avro decoder of rows")
    return Decoding(program, _Columns(program))


class _Columns:
    """Creates values of columns: rows are tuples, structs are dicts, with ksqlDB's coercions."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def leaf(self, node: AvroType, wanted: Place, x: str) -> str:
        """Coerced to the type of the column."""
        data_type, path = wanted.type, wanted.path
        if isinstance(data_type, tuple | ArrayType | MapType | StructType):
            raise _mismatch(node, wanted)
        written = avro_type(node)
        convert = coercion(written, data_type, path)
        if isinstance(written, DecimalType) and isinstance(data_type, DecimalType):
            convert = _decimal_reader(written.scale, data_type)
        return x if convert is None else f"{self._program.constant('convert', convert)}({x})"

    def record(self, node: AvroType, wanted: Place) -> DecodedRecord[Place]:
        """A tuple of all columns, a dict of all fields; or the key and value of a map's entry."""
        path = wanted.path
        match wanted.type:
            case tuple() as columns:
                return _made(node, columns, "", "({})", "{value}, ")
            case StructType(fields):
                return _made(node, fields, f"{path}.", "{{{}}}", "{name!r}: {value}, ")
            case MapType(key, value) if wanted.is_entry:
                entry = [("key", Place(key, path)), ("value", Place(value, path))]
                return DecodedRecord(entry, lambda names: f"({', '.join(names)})")
        raise _mismatch(node, wanted)

    def items(self, node: AvroType, wanted: Place, x: str) -> tuple[Place, str]:
        """A list; or a dict of entries."""
        data_type = wanted.type
        is_map = node.element is not None and is_map_entry(node.element)
        if isinstance(data_type, MapType) and is_map:
            return Place(data_type, wanted.path, is_entry=True), f"dict({x})"
        if isinstance(data_type, ArrayType) and not is_map:
            return Place(data_type.element, wanted.path), x
        raise _mismatch(node, wanted)

    def entries(self, node: AvroType, wanted: Place, x: str) -> tuple[Place, str]:
        """A dict."""
        data_type = wanted.type
        if not isinstance(data_type, MapType):
            raise _mismatch(node, wanted)
        coercion(STRING, data_type.key, wanted.path)
        return Place(data_type.value, wanted.path), x

    def branches(self, node: AvroType, wanted: Place, x: str) -> Sequence[tuple[Place | None, str]]:
        """A struct with a field for each branch, of which one is not null."""
        data_type = wanted.type
        if not isinstance(data_type, StructType):
            raise _mismatch(node, wanted)
        present = [each for each in node.branches if each.kind != "null"]
        names = _by_name((branch_name(each), each) for each in present)
        fields = {id(_found(names, each.name)): each for each in data_type.fields}
        empty = dict.fromkeys(each.name for each in data_type.fields)
        nothing = self._program.constant("empty", empty)
        result: list[tuple[Place | None, str]] = []
        for each in present:
            field = fields.get(id(each))
            if field is None:
                result.append((None, f"{nothing}.copy()"))
            else:
                inner = Place(field.type, f"{wanted.path}.{field.name}")
                result.append((inner, f"{{**{nothing}, {field.name!r}: {x}}}"))
        return result


def _made(
    node: AvroType, fields: Sequence[Column | Field], path: str, whole: str, item: str
) -> DecodedRecord[Place]:
    names = _by_name((each.name, each) for each in node.fields)
    found = [_found(names, each.name) for each in fields]
    wanted: list[tuple[str, Place]] = [
        (written.name, Place(each.type, path + each.name))
        for written, each in zip(found, fields, strict=True)
        if written is not None
    ]

    def source(read: Sequence[str]) -> str:
        values = iter(read)
        return whole.format(
            "".join(
                item.format(name=each.name, value="None" if written is None else next(values))
                for written, each in zip(found, fields, strict=True)
            )
        )

    return DecodedRecord(wanted, source)


def _by_name(named: Iterable[tuple[str, T]]) -> dict[str, T]:
    """By exact name, and in upper case unless another field has that name."""
    found = dict(named)
    return {name.upper(): each for name, each in found.items()} | found


def _found(names: Mapping[str, T], name: str) -> T | None:
    # Names in Avro cannot contain dots, so columns with dots were written with _.
    return names.get(name) or names.get(name.upper().replace(".", "_"))


def _decimal_reader(scale: int, wanted: DecimalType) -> Callable[[bytes], Decimal]:
    return lambda data: fit_decimal(scaled(int.from_bytes(data, "big", signed=True), scale), wanted)


def _mismatch(node: AvroType, wanted: Place) -> SerdeError:
    return mismatch(f"Avro's {node.logical or node.kind}", wanted.type, wanted.path)
