"""default_bytes: converts a field's default from the schema's JSON to Avro's binary encoding."""

from typing import Any

from broker.serde.avro_codec.wire import number, primitive_writers, write_block
from broker.serde.schema.avro_defaults import fits
from broker.serde.schema.avro_types import MISSING, RECORDS, AvroField, AvroType


def default_bytes(field: AvroField) -> bytes | None:
    """The bytes of a field's default; those of null if it has none and is nullable."""
    if field.default is not MISSING:
        return _bytes(field.type, field.default)
    return None if field.type.null_at is None else number(field.type.null_at)


# Any: JSON.
def _bytes(node: AvroType, value: Any) -> bytes:
    match node.kind:
        case "union":
            at = next(at for at, each in enumerate(node.branches) if fits(each, value, 0))
            return number(at) + _bytes(node.branches[at], value)
        case "enum":
            return number(node.symbols.index(value))
        case "fixed":
            return bytes(value.encode("latin-1"))
        case "bytes":
            return _WRITERS["bytes"](value.encode("latin-1"))
        case "array" if node.element is not None:
            return write_block([_bytes(node.element, each) for each in value])
        case "map" if node.element is not None:
            write = _WRITERS["string"]
            return write_block(
                [write(key) + _bytes(node.element, each) for key, each in value.items()]
            )
        case kind if kind in RECORDS:
            return b"".join(
                _bytes(each.type, value.get(each.name, each.default)) for each in node.fields
            )
    return _WRITERS[node.kind](value)


def _number_as_float(kind: str, value: Any) -> Any:
    if kind in ("float", "double"):
        return float(value)
    raise ValueError(f"{value!r} is not a value of type {kind}")


_WRITERS = primitive_writers(_number_as_float)
