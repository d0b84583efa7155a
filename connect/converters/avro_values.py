"""Values of Connect as Avro's binary encoding and back, by functions prepared for each schema.

What is written goes by the Avro schema, so that a registered one may differ from the one that
Connect's schema would give: an INT32 may be a long, and fields that Connect has not may have
defaults.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from broker.serde.avro_flat_decoding import flat_reader, is_flat
from broker.serde.avro_physical import physical_reader
from broker.serde.avro_writers import NotWritten, writer_of
from broker.serde.schema.avro_tree import AvroNode, NodeField
from broker.serde.schema.avro_types import MISSING, AvroType
from connect.converters.avro_schemas import AvroOptions, is_union
from connect.converters.compiled import (
    Conversion,
    Convert,
    dict_to_dict,
    dict_to_struct,
    function_of,
    list_to_list,
    located,
    simple_for,
)
from connect.data import DECIMAL_NAME, NO_DEFAULT, ConnectSchema, Field, Struct, Type, validate
from connect.errors import DataError
from connect.logical_values import (
    NUMBERED,
    decimal_bytes,
    decimal_of_bytes,
    logical_name,
    scale_of,
    unscaled,
)

# Any: each looks at the type itself.
Write = Callable[[Any], bytes]

# What writers raise for values that do not fit.
_MISFITS = (NotWritten, ValueError, TypeError, KeyError, OverflowError)
_KINDS = ("boolean", "int", "long", "float", "double", "bytes", "string")


def _made(kind: str) -> Write:
    found = writer_of(AvroType(kind))
    assert found is not None, "it is a primitive"
    return found


_WRITERS: dict[str, Write] = {kind: _made(kind) for kind in _KINDS}
_varint = _WRITERS["long"]
_END = b"\0"
_WIDER = {
    "int": (Type.INT8, Type.INT16, Type.INT32),
    "long": (Type.INT8, Type.INT16, Type.INT32, Type.INT64),
    "float": (Type.FLOAT32,),
    "double": (Type.FLOAT32, Type.FLOAT64),
    "boolean": (Type.BOOLEAN,),
    "string": (Type.STRING,),
    "bytes": (Type.BYTES,),
}


def encoder(
    schema: ConnectSchema, node: AvroNode, options: AvroOptions, prefix: bytes
) -> Callable[[object], bytes]:
    """From values to bytes behind a prefix; DataError says what does not fit."""
    if node.kind == "bytes" and node.null_at is None:
        write = _raw(schema)  # as Confluent has it: bytes alone have no length
    else:
        write = _Writing(options).nullable(schema, node)

    def encode(value: object) -> bytes:
        try:
            return prefix + write(value)
        except _MISFITS as error:
            validate(schema, value)
            raise DataError(f"the value does not match its Avro schema: {error!r}") from error

    return encode


def _raw(schema: ConnectSchema) -> Write:
    if logical_name(schema) == DECIMAL_NAME:
        scale = scale_of(schema)
        return lambda value: decimal_bytes(_checked(schema, value), scale)
    return lambda value: bytes(_checked(schema, value))


def _checked(schema: ConnectSchema, value: Any) -> Any:
    validate(schema, value)
    return value


class _Writing:
    """Makes the writers of one schema."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options

    def nullable(self, schema: ConnectSchema, node: AvroNode) -> Write:
        """For values that may be null."""
        write, null = self.present(schema, node), self._null(schema, node)
        if isinstance(null, bytes):
            return lambda value: null if value is None else write(value)
        return lambda value: null() if value is None else write(value)

    def present(self, schema: ConnectSchema, node: AvroNode) -> Write:
        """For values that are not null, with the number of their branch in front."""
        if node.kind == "union":
            return self._union(schema, node)
        write = self._plain(schema, node)
        if node.null_at is None:
            return write
        branch = _varint(1 - node.null_at)
        return lambda value: branch + write(value)

    def _null(self, schema: ConnectSchema, node: AvroNode) -> bytes | Callable[[], bytes]:
        uses_default = not (schema.optional and self._options.ignore_default_for_nullables)
        if schema.default is not NO_DEFAULT and uses_default:
            return self.present(schema, node)(schema.default)
        if schema.optional and node.null_at is not None:
            return _varint(node.null_at)

        def refuse() -> bytes:
            raise DataError(
                "Found null value for non-optional schema",
                hint="set a value for the field, or make its schema optional",
            )

        return refuse

    def _plain(self, schema: ConnectSchema, node: AvroNode) -> Write:
        match node.kind, schema.type:
            case "record", Type.STRUCT:
                return self._record(schema, node)
            case "array", Type.ARRAY if schema.value_schema and node.item:
                return _array(self.nullable(schema.value_schema, node.item))
            case "map", Type.MAP if schema.value_schema and node.item:
                return _map(self.nullable(schema.value_schema, node.item))
            case "entries", Type.MAP if schema.key_schema and schema.value_schema:
                return self._entries(schema.key_schema, schema.value_schema, node)
            case "enum", Type.STRING:
                return {each: _varint(at) for at, each in enumerate(node.symbols)}.__getitem__
            case "fixed", Type.BYTES:
                return _fixed(schema, node)
            case "bytes", Type.BYTES if logical_name(schema) == DECIMAL_NAME:
                return _decimal(schema, node)
        if schema.type in _WIDER.get(node.kind, ()):
            return _scalar(schema, node)
        raise DataError(f"the Avro schema has {node.kind}, but the values are {schema}")

    def _record(self, schema: ConnectSchema, node: AvroNode) -> Write:
        places = {self._options.name(each.name): at for at, each in enumerate(schema.fields)}
        unknown = places.keys() - {each.name for each in node.fields}
        if unknown:
            raise DataError(
                f'the registered Avro schema has no field "{min(unknown)}"',
                hint="register a schema that has it, or set use.latest.version=false",
            )
        scope: dict[str, object] = {"Struct": Struct, "schema": schema, "join": b"".join}
        parts, writes = [], []
        for index, each in enumerate(node.fields):
            place = places.get(each.name)
            if place is None:
                scope[f"null{index}"] = self._missing(each)
                parts.append(f"null{index}")
                continue
            field = schema.fields[place]
            parts.append(self._part(scope, index, place, (field.schema, each.type)))
            writes.append((place, _located(field, self.nullable(field.schema, each.type))))
        names = "".join(f"value{at}, " for at in range(len(schema.fields)))
        scope["check"], scope["explained"] = _check(schema), _explained(writes)
        return function_of(
            [
                "if type(value) is not Struct or value.schema is not schema: check(value)",
                f"{names}= value.values" if names else "() = value.values",
                "try:",
                f"    return join(({''.join(f'{part}, ' for part in parts)}))",
                "except Exception as error:",
                "    raise explained(value, error)",
            ],
            scope,
        )

    def _part(
        self,
        scope: dict[str, object],
        index: int,
        place: int,
        types: tuple[ConnectSchema, AvroNode],
    ) -> str:
        """The source of a field's bytes: two calls fewer than by `nullable`."""
        schema, node = types
        null = scope[f"null{index}"] = self._null(schema, node)
        call = "" if isinstance(null, bytes) else "()"
        if node.kind == "union" or node.null_at is None:
            scope[f"write{index}"] = self.present(schema, node)
            written = f"write{index}(value{place})"
        else:
            scope[f"branch{index}"] = _varint(1 - node.null_at)
            scope[f"write{index}"] = self._plain(schema, node)
            written = f"branch{index} + write{index}(value{place})"
        return f"null{index}{call} if value{place} is None else {written}"

    def _missing(self, field: NodeField) -> bytes:
        node = field.type
        if field.default is None and node.null_at is not None:
            return _varint(node.null_at)
        write = None if field.default is MISSING else _WRITERS.get(node.kind)
        if write is None:
            raise DataError(
                f'the registered Avro schema has a field "{field.name}" that the value does '
                "not have",
                hint="give the field a default, or set use.latest.version=false",
            )
        branch = b"" if node.null_at is None else _varint(1 - node.null_at)
        return branch + write(field.default)

    def _entries(self, keys: ConnectSchema, values: ConnectSchema, node: AvroNode) -> Write:
        types = {each.name: each.type for each in node.fields}
        write_key = self.nullable(keys, types["key"])
        write_value = self.nullable(values, types["value"])
        if node.fields[0].name == "value":
            return _blocks(lambda item: write_value(item[1]) + write_key(item[0]))
        return _blocks(lambda item: write_key(item[0]) + write_value(item[1]))

    def _union(self, schema: ConnectSchema, node: AvroNode) -> Write:
        branches = [
            (_varint(at + (node.null_at is not None and at >= node.null_at)), each.type)
            for at, each in enumerate(node.fields)
        ]
        if not is_union(schema):
            return self._branch_for(schema, branches)
        if len(schema.fields) != len(branches):
            raise DataError(
                "the branches of the registered Avro union differ from the fields of the struct"
            )
        writes = [
            (branch, self.present(each.schema, inner))
            for each, (branch, inner) in zip(schema.fields, branches, strict=True)
        ]
        null = b"" if node.null_at is None else _varint(node.null_at)

        def write(value: Any) -> bytes:
            for each, (branch, write_branch) in zip(value.values, writes, strict=True):
                if each is not None:
                    return branch + write_branch(each)
            if not null:
                raise DataError("no branch of the union has a value")
            return null

        return write

    def _branch_for(self, schema: ConnectSchema, branches: list[tuple[bytes, AvroNode]]) -> Write:
        for branch, inner in branches:
            try:
                found = self.present(schema, inner)
            except DataError:
                continue
            return lambda value, branch=branch, found=found: branch + found(value)  # type: ignore[misc]
        raise DataError(f"the registered Avro union has no branch for {schema}")


def _check(schema: ConnectSchema) -> Callable[[object], None]:
    def check(value: object) -> None:
        if not isinstance(value, Struct) or not value.schema.matches(schema):
            raise DataError("Mismatching struct schema", hint=f"the record's schema is {schema}")

    return check


def _located(field: Field, write: Write) -> Write:
    schema = field.schema

    def write_field(value: object) -> bytes:
        try:
            return write(value)
        except _MISFITS as error:
            validate(schema, value)
            raise DataError(f"{value!r} does not match its Avro schema") from error

    return located(f'field "{field.name}"', write_field)


def _explained(writes: list[tuple[int, Write]]) -> Callable[[Struct, Exception], Exception]:
    """Writes the fields one by one, to find out which one it was."""

    def explained(value: Struct, error: Exception) -> Exception:
        for place, write in writes:
            write(value.values[place])
        return error

    return explained


def _array(write: Write) -> Write:
    blocks = _blocks(write)

    def write_array(value: Any) -> bytes:
        if not isinstance(value, list):
            raise NotWritten
        return blocks(value)

    return write_array


def _map(write: Write) -> Write:
    write_key = _WRITERS["string"]
    blocks = _blocks(lambda item: write_key(item[0]) + write(item[1]))
    return lambda value: blocks(value.items())


def _blocks(write: Write) -> Write:
    def write_blocks(value: Any) -> bytes:
        items = value.items() if isinstance(value, dict) else value
        written = [write(each) for each in items]
        return b"".join([_varint(len(written)), *written, _END]) if written else _END

    return write_blocks


def _fixed(schema: ConnectSchema, node: AvroNode) -> Write:
    size = node.size
    if logical_name(schema) == DECIMAL_NAME:
        scale = scale_of(schema)
        return lambda value: unscaled(value, scale).to_bytes(size, "big", signed=True)

    def write(value: Any) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview) or len(value) != size:
            raise DataError(f"a fixed of {size} bytes cannot hold this value")
        return bytes(value)

    return write


def _decimal(schema: ConnectSchema, node: AvroNode) -> Write:
    scale, write_bytes = scale_of(schema), _WRITERS["bytes"]
    if node.logical == "decimal" and type(node.scale) is int:
        scale = node.scale

    def write(value: Any) -> bytes:
        if not isinstance(value, Decimal):
            raise NotWritten
        return write_bytes(decimal_bytes(value, scale))

    return write


def _scalar(schema: ConnectSchema, node: AvroNode) -> Write:
    write = _WRITERS[node.kind]
    name = logical_name(schema)
    if name is not None:
        kind, number_of, _ = NUMBERED[name]

        def write_logical(value: Any) -> bytes:
            if type(value) is not kind:
                validate(schema, value)
            return write(number_of(value))

        return write_logical
    if schema.type in (Type.INT8, Type.INT16, Type.INT32) and not _is_exact(schema.type, node.kind):
        return lambda value: write(_checked(schema, value))
    if schema.type in (Type.FLOAT32, Type.FLOAT64, Type.BYTES):
        return _converted(schema, write)
    return write


def _is_exact(kind: Type, written: str) -> bool:
    return kind is Type.INT32 and written == "int"


def _converted(schema: ConnectSchema, write: Write) -> Write:
    kind = bytes if schema.type is Type.BYTES else float

    def write_converted(value: Any) -> bytes:
        if type(value) is not kind:
            validate(schema, value)
            value = kind(value)
        return write(value)

    return write_converted


def decoder(schema: ConnectSchema, node: AvroNode, *, skip: int) -> Callable[[bytes], object]:
    """From bytes to values; what it raises is as various as bytes are."""
    if node.kind == "bytes" and node.null_at is None:
        convert = _reading(schema, node).convert
        return lambda data: convert(data[skip:])
    if is_flat(node):
        parts = zip(schema.fields, node.fields, strict=True)
        wanted = [(each.name, _flat_part(field.schema, each.type)) for field, each in parts]
        read = flat_reader(node, wanted, skip=skip)
        return lambda data: Struct(schema, list(read(data)))
    return physical_reader(node, _reading(schema, node).convert, skip=skip)


def _flat_part(schema: ConnectSchema, node: AvroNode) -> Convert | None:
    """What is to do after a scalar was read, which looks at ranges itself."""
    checked = schema.type not in (Type.INT8, Type.INT16)
    if logical_name(schema) is None and checked:
        return None
    return _reading(schema, node).convert


def _reading(schema: ConnectSchema, node: AvroNode) -> Conversion:
    """From what fastavro read; null stays null wherever it can be."""
    plain = _read_present(schema, node)
    if plain.simple:
        return plain
    convert = plain.convert
    return Conversion(lambda value: None if value is None else convert(value))


def _read_present(schema: ConnectSchema, node: AvroNode) -> Conversion:
    name = logical_name(schema)
    if name == DECIMAL_NAME:
        scale = scale_of(schema)
        return Conversion(lambda value: decimal_of_bytes(value, scale))
    if name is not None:
        return Conversion(NUMBERED[name][2])
    match node.kind:
        case "union":
            return Conversion(_read_union(schema, node))
        case "record":
            parts = [
                (each.name, _reading(field.schema, each.type))
                for field, each in zip(schema.fields, node.fields, strict=True)
            ]
            return Conversion(dict_to_struct(schema, parts, _no_record))
        case "array" if schema.value_schema and node.item:
            return Conversion(list_to_list(_reading(schema.value_schema, node.item)))
        case "map" if schema.value_schema and node.item:
            return Conversion(dict_to_dict(_reading(schema.value_schema, node.item)))
        case "entries" if schema.key_schema and schema.value_schema and node.key and node.item:
            key = _reading(schema.key_schema, node.key).convert
            value = _reading(schema.value_schema, node.item).convert
            return Conversion(
                lambda entries: {key(each["key"]): value(each["value"]) for each in entries}
            )
    return Conversion(_accepted(schema), _simple(schema))


def _simple(schema: ConnectSchema) -> str:
    # Every float is one here, and those of single precision too.
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        return "({0} is None or type({0}) is float)"
    return simple_for(schema.with_(default=NO_DEFAULT))


def _accepted(schema: ConnectSchema) -> Convert:
    def accept(value: object) -> object:
        if value is not None:
            validate(schema, value)
        return value

    return accept


def _no_record(value: object) -> None:
    raise DataError(f"Invalid type for STRUCT: {type(value).__name__}")


def _read_union(schema: ConnectSchema, node: AvroNode) -> Convert:
    if not is_union(schema):  # a union of one type
        ((name, inner),) = [(each.name, each.type) for each in node.fields]
        convert = _reading(schema, inner).convert
        return lambda value: convert(value[name])
    branches = {
        each.name: (at, _reading(field.schema, each.type).convert)
        for at, (field, each) in enumerate(zip(schema.fields, node.fields, strict=True))
    }
    count = len(schema.fields)

    def read(value: Any) -> object:
        ((name, inner),) = value.items()
        at, convert = branches[name]
        values: list[object] = [None] * count
        values[at] = convert(inner)
        return Struct(schema, values)

    return read
