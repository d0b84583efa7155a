"""Conversion of Connect's values to Avro's binary encoding and back.

The functions are generated for each schema (`broker/serde/avro_codec`). Values are written with the
Avro schema, so a registered one may differ from the one derived from Connect's schema: an INT32 may
be a long, and fields that Connect does not have may have defaults.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from typing import Any

from broker.serde.avro_codec.decoding import Decoding, Made
from broker.serde.avro_codec.defaults import default_bytes
from broker.serde.avro_codec.encoding import Choice, Encoding, Option, Parts
from broker.serde.avro_codec.plain_values import NotWritten
from broker.serde.avro_codec.wire import Write, number
from broker.serde.program import Program
from broker.serde.schema.avro_types import MISSING, AvroField, AvroType, is_map_entry
from connect.converters.avro_schemas import AvroOptions, is_union
from connect.converters.compiled import Convert, located, one_field, struct_values
from connect.data import DECIMAL_NAME, NO_DEFAULT, ConnectSchema, Struct, Type, validate
from connect.errors import DataError
from connect.logical_values import (
    NUMBERED,
    decimal_bytes,
    decimal_of_bytes,
    logical_name,
    scale_of,
    unscaled,
)

# Errors of writers for values that do not match.
_MISFITS = (NotWritten, ValueError, TypeError, KeyError, OverflowError)
_WIDER = {
    "int": (Type.INT8, Type.INT16, Type.INT32),
    "long": (Type.INT8, Type.INT16, Type.INT32, Type.INT64),
    "float": (Type.FLOAT32,),
    "double": (Type.FLOAT32, Type.FLOAT64),
    "boolean": (Type.BOOLEAN,),
    "string": (Type.STRING,),
    "bytes": (Type.BYTES,),
}


@dataclass(frozen=True, slots=True)
class Place:
    """The schema of values, or of a map as an array of entries; and their path, for errors."""

    schema: ConnectSchema
    path: str = ""
    is_entry: bool = False


def encoder(
    schema: ConnectSchema, node: AvroType, options: AvroOptions, prefix: bytes
) -> Callable[[object], bytes]:
    """A function from values to bytes with a prefix; DataError contains the path of a mismatch."""
    if node.kind == "bytes":
        write = _raw(schema)  # as in Confluent's converter: bytes without a length
    else:
        write = _encoding(options).function(node, Place(schema))

    def encode(value: object) -> bytes:
        try:
            return prefix + write(value)
        except _MISFITS as error:
            validate(schema, value)
            raise DataError(f"the value does not match its Avro schema: {error!r}") from error

    return encode


def _encoding(options: AvroOptions) -> Encoding[Place]:
    program = Program("generated Avro encoder of Connect")
    return Encoding(program, _Writing(program, options), _converted)


def _raw(schema: ConnectSchema) -> Write:
    if logical_name(schema) == DECIMAL_NAME:
        scale = scale_of(schema)
        return lambda value: decimal_bytes(_checked(schema)(value), scale)
    return lambda value: bytes(_checked(schema)(value))


# Any: the function checks the type.
def _checked(schema: ConnectSchema) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        validate(schema, value)
        return value

    return checked


# Any: values that writers of Avro's types do not expect.
def _converted(kind: str, value: Any) -> Any:
    if kind in ("float", "double") and isinstance(value, float):
        return float(value)
    if kind == "bytes" and isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise NotWritten


class _Writing:
    """Reads values by their schemas."""

    def __init__(self, program: Program, options: AvroOptions) -> None:
        self._program = program
        self._options = options
        program.shared(Struct=Struct, items=_items, pairs=_pairs)

    def null(self, node: AvroType, wanted: Place) -> str | None:
        """The schema's default, null, or an error."""
        schema = wanted.schema
        if wanted.is_entry:
            return None
        uses_default = not (schema.optional and self._options.ignore_default_for_nullables)
        if schema.default is not NO_DEFAULT and uses_default:
            write = _encoding(self._options).present_function(node, wanted)
            return repr(write(schema.default))
        if schema.optional and node.null_at is not None:
            return repr(number(node.null_at))
        return f"{self._program.constant('null', _refuse_null)}()"

    def leaf(self, node: AvroType, wanted: Place, x: str) -> str:
        """Numbers and bytes of logical types, and numbers whose range is checked."""
        schema = wanted.schema
        name = logical_name(schema)
        match node.kind, schema.type:
            case "enum", Type.STRING:
                return x
            case "fixed", Type.BYTES:
                return f"{self._program.constant('fixed', _fixed_writer(schema, node.size))}({x})"
            case "bytes", Type.BYTES if name == DECIMAL_NAME:
                return f"{self._program.constant('decimal', _decimal_writer(schema, node))}({x})"
        if schema.type not in _WIDER.get(node.kind, ()):
            raise _unsuitable(node, schema)
        checked = self._program.constant("checked", _checked(schema))
        if name is not None:
            kind, number_of = map(self._program.constant, ("kind", "number_of"), NUMBERED[name][:2])
            return f"{number_of}({x} if type({x}) is {kind} else {checked}({x}))"
        # The writers check the range of the Avro type, which may be larger.
        is_narrow = schema.type in _NARROW or (schema.type is Type.INT32 and node.kind == "long")
        return f"{checked}({x})" if is_narrow else x

    def record(self, node: AvroType, wanted: Place) -> Parts[Place]:
        """The values of a struct; or the key and value of an entry."""
        schema = wanted.schema
        if wanted.is_entry:
            entry = _entry(schema)
            return Parts(
                ["key, value = x"], [(each.name, entry[each.name]) for each in node.fields]
            )
        if schema.type is not Type.STRUCT:
            raise _unsuitable(node, schema)
        places = {self._options.name(each.name): at for at, each in enumerate(schema.fields)}
        if unknown := places.keys() - {each.name for each in node.fields}:
            raise DataError(
                f'the registered Avro schema has no field "{min(unknown)}"',
                hint="register a schema that has it, or set use.latest.version=false",
            )
        fields: list[bytes | tuple[str, Place]] = []
        types_of: list[tuple[int, AvroType]] = []
        for each in node.fields:
            place = places.get(each.name)
            if place is None:
                fields.append(_missing(each))
            else:
                fields.append((f"v{place}", Place(schema.fields[place].schema)))
                types_of.append((place, each.type))
        explain = self._program.constant("explained", self._explained(schema, types_of))
        return Parts(struct_values(self._program, schema, _check(schema)), fields, explain)

    def _explained(
        self, schema: ConnectSchema, types: Sequence[tuple[int, AvroType]]
    ) -> Callable[[Struct, Exception], Exception]:
        """Writes the fields one by one, to find the one that failed."""

        @cache
        def writes() -> list[tuple[int, Write]]:
            found = []
            for place, node in types:
                field = schema.fields[place]
                write = encoder_of_part(field.schema, node, self._options)
                found.append((place, located(f'field "{field.name}"', write)))
            return found

        def explained(value: Struct, error: Exception) -> Exception:
            for place, write in writes():
                write(value.values[place])
            return error

        return explained

    def items(self, node: AvroType, wanted: Place, x: str) -> tuple[str, Place]:
        """The items of a list; or the entries of a dict."""
        is_map = node.element is not None and is_map_entry(node.element)
        if is_map and wanted.schema.type is Type.MAP:
            return f"pairs({x})", Place(wanted.schema, is_entry=True)
        return f"items({x})", _part(wanted.schema, Type.ARRAY, node)

    def entries(self, node: AvroType, wanted: Place, x: str) -> tuple[str, Place]:
        """The entries of a dict."""
        return f"pairs({x})", _part(wanted.schema, Type.MAP, node)

    def union(
        self,
        node: AvroType,
        wanted: Place,
        fits: Callable[[AvroType, Place], bool],
    ) -> Choice[Place]:
        """The field of a struct that has a value; or the first branch that matches the schema."""
        schema, branches = wanted.schema, _present(node)
        if not is_union(schema):
            for at in branches:
                if fits(node.branches[at], wanted):
                    return Choice([], [Option("True", at, "x", wanted)], "")
            raise DataError(f"the registered Avro union has no branch for {schema}")
        if len(schema.fields) != len(branches):
            raise DataError(
                "the branches of the registered Avro union differ from the fields of the struct"
            )
        options = [
            Option(f"v{place} is not None", at, f"v{place}", Place(field.schema))
            for place, (at, field) in enumerate(zip(branches, schema.fields, strict=True))
        ]
        none = self._program.constant("none", _no_branch(node.null_at))
        return Choice(
            struct_values(self._program, schema, _check(schema)), options, f"return {none}()"
        )


_NARROW = (Type.INT8, Type.INT16)


def encoder_of_part(schema: ConnectSchema, node: AvroType, options: AvroOptions) -> Write:
    """A function from values in a struct to bytes; DataError if a value does not match."""
    write = _encoding(options).function(node, Place(schema))

    def write_part(value: object) -> bytes:
        try:
            return write(value)
        except _MISFITS as error:
            validate(schema, value)
            raise DataError(f"{value!r} does not match its Avro schema") from error

    return write_part


def _refuse_null() -> bytes:
    raise DataError(
        "Found null value for non-optional schema",
        hint="set a value for the field, or make its schema optional",
    )


def _no_branch(null_at: int | None) -> Callable[[], bytes]:
    def none() -> bytes:
        if null_at is None:
            raise DataError("no branch of the union has a value")
        return number(null_at)

    return none


def _present(node: AvroType) -> list[int]:
    """The indexes of a union's branches without null."""
    return [at for at, each in enumerate(node.branches) if each.kind != "null"]


def _part(schema: ConnectSchema, kind: Type, node: AvroType, path: str = "") -> Place:
    if schema.type is not kind or schema.value_schema is None:
        raise _unsuitable(node, schema)
    return Place(schema.value_schema, path)


def _entry(schema: ConnectSchema, path: str = "") -> dict[str, Place]:
    assert schema.key_schema is not None, "it is a map"
    assert schema.value_schema is not None, "it is a map"
    return {"key": Place(schema.key_schema, path), "value": Place(schema.value_schema, path)}


def _unsuitable(node: AvroType, schema: ConnectSchema) -> DataError:
    return DataError(f"the Avro schema has {node.kind}, but the values are {schema}")


def _missing(field: AvroField) -> bytes:
    found = None if field.default is MISSING else default_bytes(field)
    if found is None:
        raise DataError(
            f'the registered Avro schema has a field "{field.name}" that the value does not have',
            hint="give the field a default, or set use.latest.version=false",
        )
    return found


def _check(schema: ConnectSchema) -> Callable[[object], None]:
    def check(value: object) -> None:
        if not isinstance(value, Struct) or not value.schema.matches(schema):
            raise DataError("Mismatching struct schema", hint=f"the record's schema is {schema}")

    return check


def _items(value: object) -> list[object]:
    if not isinstance(value, list):
        raise NotWritten
    return value


def _pairs(value: object) -> Iterable[tuple[object, object]]:
    if not isinstance(value, dict):
        raise NotWritten
    return value.items()


def _fixed_writer(schema: ConnectSchema, size: int) -> Write:
    if logical_name(schema) == DECIMAL_NAME:
        scale = scale_of(schema)
        return lambda value: unscaled(value, scale).to_bytes(size, "big", signed=True)

    def write(value: object) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview) or len(value) != size:
            raise DataError(f"a fixed of {size} bytes cannot hold this value")
        return bytes(value)

    return write


def _decimal_writer(schema: ConnectSchema, node: AvroType) -> Write:
    scale, given = scale_of(schema), node.properties.get("scale")
    if node.logical == "decimal" and type(given) is int:
        scale = given

    def write(value: object) -> bytes:
        if not isinstance(value, Decimal):
            raise NotWritten
        return decimal_bytes(value, scale)

    return write


def decoder(schema: ConnectSchema, node: AvroType, *, skip: int) -> Callable[[bytes], object]:
    """A function from bytes to values; it may raise any exception."""
    if node.kind == "bytes":
        convert = _read(schema)
        if convert is None:
            return lambda data: data[skip:]
        known = convert
        return lambda data: known(data[skip:])
    program = Program("generated Avro decoder of Connect")
    return Decoding(program, _Reading(program)).function(node, Place(schema), skip=skip)


def _read(schema: ConnectSchema) -> Convert | None:
    """The conversion after a value was read; None if there is none."""
    name = logical_name(schema)
    if name == DECIMAL_NAME:
        scale = scale_of(schema)
        return lambda value: decimal_of_bytes(value, scale)
    if name is not None:
        return NUMBERED[name][2]
    return _checked(schema) if schema.type in (Type.INT8, Type.INT16) else None


class _Reading:
    """Creates values of schemas."""

    def __init__(self, program: Program) -> None:
        self._program = program
        program.shared(Struct=Struct)

    def leaf(self, node: AvroType, wanted: Place, x: str) -> str:
        """The value of its logical type."""
        convert = _read(wanted.schema)
        if convert is None:
            return x
        if wanted.path:
            convert = located(wanted.path, convert)
        return f"{self._program.constant('convert', convert)}({x})"

    def record(self, node: AvroType, wanted: Place) -> Made[Place]:
        """A struct; or the key and value of an entry."""
        schema, path = wanted.schema, wanted.path
        if wanted.is_entry:
            entry = [*_entry(schema, path).items()]
            return Made(entry, lambda names: f"({', '.join(names)})")
        before = f"{path}, " if path else ""
        fields = [
            (each.name, Place(field.schema, f'{before}field "{field.name}"'))
            for field, each in zip(schema.fields, node.fields, strict=True)
        ]
        constant = self._program.constant("schema", schema)
        return Made(fields, lambda names: f"Struct({constant}, [{', '.join(names)}])")

    def items(self, node: AvroType, wanted: Place, x: str) -> tuple[Place, str]:
        """A list; or a dict of entries."""
        schema, path = wanted.schema, wanted.path
        if schema.type is Type.MAP:
            return Place(schema, path, is_entry=True), f"dict({x})"
        return _part(schema, Type.ARRAY, node, path), x

    def entries(self, node: AvroType, wanted: Place, x: str) -> tuple[Place, str]:
        """A dict."""
        return _part(wanted.schema, Type.MAP, node, wanted.path), x

    def branches(self, node: AvroType, wanted: Place, x: str) -> Sequence[tuple[Place | None, str]]:
        """A struct with a field for each branch; but a union of one type is that type."""
        schema = wanted.schema
        if not is_union(schema):
            return [(wanted, x)]
        one_of = self._program.constant("one_of", partial(one_field, schema))
        return [
            (Place(field.schema, wanted.path), f"{one_of}({at}, {x})")
            for at, field in enumerate(schema.fields)
        ]
