"""Avro's binary encoding with fastavro, made safe for untrusted schemas and bytes.

fastavro recurses in C without a limit, so that deeply nested bytes of a recursive type crash the
process. It loops over arrays whose items take no bytes for as long as the encoded count. Both are
prevented:

    what                            what is done
    types that contain themselves   SchemaError: no value of them ends
    types that are too deep         SchemaError
    recursive types, few bytes      read by fastavro's C code: each level takes at least a byte
    recursive types, many bytes     read by fastavro's Python code, which raises RecursionError
    arrays of items without bytes   SchemaError when they are to be read
    decimals of very many digits    ValueError; see decimals.py
"""

import copy
import io
from collections.abc import Callable

import fastavro
from fastavro import _read_py

from broker.errors import SchemaError
from broker.serde.avro_codec.decimals import with_exact_decimals
from broker.serde.avro_codec.default_values import with_default_values
from broker.serde.avro_codec.limits import DEPTH_MAX, check_finite, depth_exceeds, is_recursive
from broker.serde.avro_codec.plain_values import writer_of
from broker.serde.schema.avro_schema import AvroSchema
from broker.serde.schema.avro_types import AvroType, children

VALUE_DEPTH_MAX = 100  # of values of recursive types that are written

Encode = Callable[[object], bytes]
Decode = Callable[[bytes], object]


def encoder(schema: AvroSchema, prefix: bytes = b"") -> Encode:
    """A function from a value to bytes; it may raise any exception."""
    parsed, fast = _with_defaults(schema), writer_of(schema.root)
    write, buffer = fastavro.schemaless_writer, io.BytesIO

    def encode(value: object) -> bytes:
        if fast is not None:
            try:
                return prefix + fast(value)
            except Exception:  # whatever it was, fastavro's error is better
                pass
        out = buffer()
        out.write(prefix)
        write(out, parsed, value)
        return out.getvalue()

    if not is_recursive(schema.root):
        return encode

    def encode_recursive(value: object) -> bytes:
        if depth_exceeds(value, VALUE_DEPTH_MAX):
            raise ValueError(f"the value is nested more than {VALUE_DEPTH_MAX} deep")
        return encode(value)

    return encode_recursive


def decoder(writer: AvroSchema, reader: AvroSchema | None = None, *, skip: int = 0) -> Decode:
    """A function from bytes to a value of the reader's schema; the first bytes may be skipped."""
    recursive = is_recursive(writer.root)
    check_finite(writer.root)
    written = with_exact_decimals(writer.fastavro)
    wanted = None
    if reader is not None and reader.resolved != writer.resolved:
        wanted = with_exact_decimals(_with_defaults(reader))
    decode = _reading(fastavro.schemaless_reader, written, wanted, skip)
    if recursive:
        carefully = _reading(_read_py.schemaless_reader, written, wanted, skip)
        decode = _by_length(decode, carefully, DEPTH_MAX + skip)
    if reader is None or wanted is None or not _has_changeable_default(reader.root):
        return decode
    # fastavro uses the same list for each record; a change would affect later records.
    return lambda data: copy.deepcopy(decode(data))


def _by_length(short: Decode, long: Decode, limit: int) -> Decode:
    return lambda data: short(data) if len(data) <= limit else long(data)


def _reading(read: Callable[..., object], written: object, wanted: object, skip: int) -> Decode:
    buffer = io.BytesIO

    def decode(data: bytes) -> object:
        source = buffer(data)
        source.seek(skip)
        found = read(source, written, wanted)
        if source.tell() != len(data):
            raise ValueError(f"{len(data) - source.tell()} bytes are left over")
        return found

    return decode


def _has_changeable_default(root: AvroType) -> bool:
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            waiting += children(each)
            if any(isinstance(field.default, dict | list) for field in each.fields):
                return True
    return False


def _with_defaults(schema: AvroSchema) -> object:
    try:
        return with_default_values(schema.fastavro)
    except Exception as error:  # a date that Python's calendar does not have
        raise SchemaError(f"a default of the Avro schema is invalid: {error}") from error
