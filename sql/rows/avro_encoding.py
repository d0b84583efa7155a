"""Rows as Avro's binary encoding: the conversion of columns to the types of the schema.

The functions that write the bytes are generated for each schema
(`broker/serde/avro_codec/encoding.py`). If the schema does not allow null, the field's default is
written, if there is one.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from operator import index
from typing import Any, NoReturn

from broker.errors import SchemaError, SerdeError
from broker.serde.avro_codec.defaults import default_bytes
from broker.serde.avro_codec.encoding import Choice, Encoding, Option, Parts
from broker.serde.avro_codec.wire import INT_END, LONG_END, Write, number
from broker.serde.program import Program
from broker.serde.schema.avro_types import (
    MISSING,
    RECORDS,
    AvroField,
    AvroType,
    branch_name,
    is_map_entry,
)
from sql.datatypes import (
    BIGINT,
    INT,
    STRING,
    ArrayType,
    Column,
    DecimalType,
    Field,
    MapType,
    StructType,
)
from sql.rows.avro_columns import avro_type
from sql.rows.coercion import two_complement, unscaled
from sql.rows.place import Place


def row_writer(node: AvroType, columns: Sequence[Column], prefix: bytes) -> Write:
    """A function from a row to the bytes of a record, with a prefix."""
    kind = (node.present or node).kind
    if kind not in RECORDS:
        raise SchemaError(f"the Avro schema has {kind} where the columns are a record")
    return _encoding().present_function(node, Place(tuple(columns), ""), prefix)


def single_writer(
    node: AvroType, column: Column, prefix: bytes
) -> Callable[[Sequence[object]], bytes | None]:
    """A function from a row of one column to the bytes of its value; null is a tombstone."""
    write = _encoding().present_function(node, Place(column.type, column.name), prefix)

    def write_single(row: Sequence[object]) -> bytes | None:
        value = row[0]
        return None if value is None else write(value)

    return write_single


def _encoding() -> Encoding[Place]:
    program = Program("generated Avro encoder of rows")
    return Encoding(program, _Columns(program), _other)


# Any: values that writers of Avro's types do not expect.
def _other(kind: str, value: Any) -> Any:
    match kind:
        case "int" | "long":
            end = INT_END if kind == "int" else LONG_END
            if not -end <= (result := index(value)) < end:
                raise SerdeError(f"{value} is out of the range of Avro's {kind}")
            return result
        case "float" | "double":
            return value  # packing refuses it
        case "string" if isinstance(value, str):
            return str(value)
        case "bytes" if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
    raise SerdeError(f"{value!r} is not a {kind}")


class _Columns:
    """Reads rows, which are tuples, and structs, which are dicts."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def null(self, node: AvroType, wanted: Place) -> str | None:
        """Null, or the default."""
        if wanted.is_entry:
            return None
        if node.null_at is not None:
            return repr(number(node.null_at))
        if wanted.default is not None:
            return repr(wanted.default)
        return f"{self._program.constant('null', _null_refusal(wanted.path))}()"

    def leaf(self, node: AvroType, wanted: Place, x: str) -> str:
        """The value itself, except for decimals."""
        data_type = wanted.type
        found = avro_type(node)
        if found != data_type and not (found is BIGINT and data_type is INT):
            raise _unsuitable(node, wanted)
        if isinstance(data_type, DecimalType):
            return f"{self._program.constant('decimal', _decimal_writer(node, data_type))}({x})"
        if node.kind == "fixed":
            return f"{self._program.constant('fixed', _fixed_writer(node.size))}({x})"
        return x

    def record(self, node: AvroType, wanted: Place) -> Parts[Place]:
        """The columns of a row, or the fields of a struct; or the key and value of an entry."""
        match wanted.type:
            case tuple() as columns:
                names = [f"v{at}" for at in range(len(columns))]
                lines = [f"{', '.join(names)}, = x" if names else "() = x"]
                return _parts(node, columns, names, "", lines)
            case StructType(fields):
                names = [f"v{at}" for at in range(len(fields))]
                pairs = zip(names, fields, strict=True)
                lines = ["get = x.get", *(f"{name} = get({each.name!r})" for name, each in pairs)]
                return _parts(node, fields, names, f"{wanted.path}.", lines)
            case MapType(key, value) if wanted.is_entry:
                types = {"key": Place(key, wanted.path), "value": Place(value, wanted.path)}
                entry = [(each.name, types[each.name]) for each in node.fields]
                return Parts(["key, value = x"], entry)
        raise _unsuitable(node, wanted)

    def items(self, node: AvroType, wanted: Place, x: str) -> tuple[str, Place]:
        """The items of a list; or the entries of a dict."""
        is_map = node.element is not None and is_map_entry(node.element)
        match wanted.type:
            case MapType(key) if is_map and key is STRING:
                return f"{x}.items()", Place(wanted.type, wanted.path, is_entry=True)
            case ArrayType(element) if not is_map:
                return x, Place(element, wanted.path)
        raise _unsuitable(node, wanted)

    def entries(self, node: AvroType, wanted: Place, x: str) -> tuple[str, Place]:
        """The entries of a dict."""
        match wanted.type:
            case MapType(key, value) if key is STRING:
                return f"{x}.items()", Place(value, wanted.path)
        raise _unsuitable(node, wanted)

    def union(
        self, node: AvroType, wanted: Place, fits: Callable[[AvroType, Place], bool]
    ) -> Choice[Place]:
        """A struct with a field for each branch, of which at most one is not null."""
        if not isinstance(wanted.type, StructType):
            raise _unsuitable(node, wanted)
        places = {branch_name(each): at for at, each in enumerate(node.branches)}
        types = {each.name: each.type for each in wanted.type.fields}
        if unknown := types.keys() - places.keys():
            raise SchemaError(f'the Avro union at "{wanted.path}" has no branch "{min(unknown)}"')
        options = [
            Option(
                f"present == [{name!r}]",
                places[name],
                f"x[{name!r}]",
                Place(data_type, f"{wanted.path}.{name}"),
            )
            for name, data_type in types.items()
        ]
        lines = [f"present = [each for each in {tuple(types)!r} if x.get(each) is not None]"]
        none = self._program.constant("none", _no_branch(node, wanted.path))
        return Choice(lines, options, f"return {none}(present)")


def _parts(
    node: AvroType, columns: Sequence[Column | Field], names: list[str], path: str, lines: list[str]
) -> Parts[Place]:
    places = {each.name: (name, each) for name, each in zip(names, columns, strict=True)}
    if missing := places.keys() - {each.name for each in node.fields}:
        raise SchemaError(
            f'the Avro schema lacks field "{path}{min(missing)}"',
            hint=f"its fields are {', '.join(each.name for each in node.fields)}",
        )
    fields: list[bytes | tuple[str, Place]] = []
    for each in node.fields:
        if each.name not in places:
            fields.append(_without_column(each, path))
            continue
        name, column = places[each.name]
        default = None if each.default is MISSING else default_bytes(each)
        fields.append((name, Place(column.type, path + each.name, default)))
    return Parts(lines, fields)


def _without_column(field: AvroField, path: str) -> bytes:
    result = default_bytes(field)
    if result is None:
        raise SchemaError(
            f'the Avro schema has a field "{path}{field.name}" that has no column',
            hint="add a default to the field, or make it nullable",
        )
    return result


def _null_refusal(path: str) -> Callable[[], NoReturn]:
    def refuse() -> NoReturn:
        raise SerdeError(
            f'field "{path}" is null, but its Avro schema has neither null nor a default'
        )

    return refuse


def _no_branch(node: AvroType, path: str) -> Callable[[list[str]], bytes]:
    null_at = node.null_at

    def none_of(present: list[str]) -> bytes:
        if present or null_at is None:
            raise SerdeError(f'{len(present)} branches of the Avro union at "{path}" have values')
        return number(null_at)

    return none_of


def _decimal_writer(node: AvroType, wanted: DecimalType) -> Callable[[Decimal], bytes]:
    if node.kind == "fixed":
        size = node.size
        return lambda value: unscaled(value, wanted).to_bytes(size, "big", signed=True)
    return lambda value: two_complement(unscaled(value, wanted))


def _fixed_writer(size: int) -> Callable[[object], bytes]:
    def write(value: object) -> bytes:
        if not isinstance(value, bytes) or len(value) != size:
            raise SerdeError(f"a value is not {size} bytes long, as its Avro schema requires")
        return value

    return write


def _unsuitable(node: AvroType, wanted: Place) -> SchemaError:
    data_type = "a record" if isinstance(wanted.type, tuple) else wanted.type
    return SchemaError(
        f'the Avro schema has {node.logical or node.kind} for "{wanted.path}", which is {data_type}'
    )
