"""The codecs of models for each format, as Framing uses them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from broker.serde.avro_codec.fastavro_codec import decoder, encoder
from broker.serde.framing import Codec, Decode, Encode, NotAllowed
from broker.serde.models.avro_accessors import bytes_reader, bytes_writer
from broker.serde.models.avro_conversion import AvroReading, AvroWriting
from broker.serde.models.avro_derivation import avro_schema_of
from broker.serde.models.hints import shape_of
from broker.serde.models.json_codec import JsonCodec
from broker.serde.models.json_derivation import json_schema_of
from broker.serde.models.mismatch import find_mismatch
from broker.serde.models.protobuf_conversion import fields_writer, message_reader
from broker.serde.models.protobuf_derivation import protobuf_schema_of
from broker.serde.models.shapes import Shape, is_recursive, models_in
from broker.serde.schema.avro_schema import AvroSchema, parse_avro
from broker.serde.schema.protobuf_schema import ProtobufSchema, parse_protobuf
from broker.serde.schema.schema import ParsedSchema, Schema, SchemaKind
from broker.serde.wire_format import PREFIX_BYTES, frame, frame_indexes, read_indexes


@dataclass(frozen=True, slots=True)
class ModelCodec:
    """The schema of a model, and the functions of its format."""

    schema: Schema
    codec: Codec


# Any in this file: `list[Order]` and `Order | None` are types that `type` does not accept.


def avro_codec(wanted: Any, namespace: str | None) -> ModelCodec:
    """Avro: generated functions for the derived schema, fastavro for other schemas."""
    shape = shape_of(wanted, namespace=namespace)
    schema, title = avro_schema_of(shape), _name(wanted)
    reader = parse_avro(schema.text, {})
    to_value = AvroWriting(f"{title} to Avro").function(shape)
    deep = is_recursive(shape)
    to_bytes = None if deep else bytes_writer(f"{title} to bytes", shape, reader.root)
    from_value = AvroReading(f"Avro to {title}").function(shape)

    def open_encoder(schema_id: int, parsed: ParsedSchema) -> Encode:
        prefix = frame(schema_id)
        if to_bytes is not None and cast(AvroSchema, parsed).canonical == reader.canonical:
            return checked(shape, lambda value: prefix + to_bytes(value))
        # Another schema, or values that may be nested too deeply.
        encode = encoder(cast(AvroSchema, parsed), prefix)
        return checked(shape, lambda value: encode(to_value(value)))

    # Arrays of models without fields take no bytes, so their length is unlimited.
    empty = not all(model.fields for model in models_in(shape))
    from_bytes = None
    if not deep and not empty:
        from_bytes = bytes_reader(f"bytes to {title}", shape, reader.root, PREFIX_BYTES)

    def open_decoder(writer: ParsedSchema) -> Decode:
        if from_bytes is not None and cast(AvroSchema, writer).canonical == reader.canonical:
            return from_bytes
        decode = decoder(cast(AvroSchema, writer), reader, skip=PREFIX_BYTES)
        return lambda data: from_value(decode(data))

    codec = Codec(
        label=title, kind=SchemaKind.AVRO, open_encoder=open_encoder, open_decoder=open_decoder
    )
    return ModelCodec(schema, codec)


def json_codec(wanted: Any, namespace: str | None) -> ModelCodec:
    """JSON with msgspec or pydantic. Written values are read again, which validates every field."""
    schema, title = json_schema_of(wanted), _name(wanted)
    both: JsonCodec[object] = JsonCodec(wanted)
    to_text, from_text = both.encode, both.decode

    def open_encoder(schema_id: int, parsed: ParsedSchema) -> Encode:
        prefix = frame(schema_id)

        def encode(value: object) -> bytes:
            text = to_text(value)
            try:
                from_text(text)
            except Exception as error:  # validation of a class may raise anything
                raise NotAllowed(str(error)) from error
            return prefix + text

        return encode

    def open_decoder(writer: ParsedSchema) -> Decode:
        return lambda data: from_text(data[PREFIX_BYTES:])

    codec = Codec(
        label=title, kind=SchemaKind.JSON, open_encoder=open_encoder, open_decoder=open_decoder
    )
    return ModelCodec(schema, codec)


def protobuf_codec(wanted: Any, namespace: str | None) -> ModelCodec:
    """Protobuf messages, read as the model's own messages, by field numbers."""
    shape = shape_of(wanted, namespace=namespace)
    schema, title = protobuf_schema_of(shape), _name(wanted)
    own = parse_protobuf(schema.text, {})
    name = own.default_message
    message_class = cast(Any, own.message_class(name))
    fields = fields_writer(f"{title} to Protobuf", shape, message_class.DESCRIPTOR)
    from_message = message_reader(f"Protobuf to {title}", shape, message_class.DESCRIPTOR)
    parse = message_class.FromString

    def open_encoder(schema_id: int, parsed: ParsedSchema) -> Encode:
        place = cast(ProtobufSchema, parsed).indexes_of(name)
        prefix = frame(schema_id) + frame_indexes(place)
        return checked(
            shape, lambda value: prefix + message_class(**fields(value)).SerializeToString()
        )

    def open_decoder(writer: ParsedSchema) -> Decode:
        written = cast(ProtobufSchema, writer)
        is_first = written.default_message == name

        def decode(data: bytes) -> object:
            if is_first and data[PREFIX_BYTES : PREFIX_BYTES + 1] == b"\0":
                return from_message(parse(data[PREFIX_BYTES + 1 :]))
            place, start = read_indexes("", data)
            if written.name_at(place) != name:
                raise ValueError(f'the record is a "{written.name_at(place)}", not a "{name}"')
            return from_message(parse(data[start:]))

        return decode

    codec = Codec(
        label=title, kind=SchemaKind.PROTOBUF, open_encoder=open_encoder, open_decoder=open_decoder
    )
    return ModelCodec(schema, codec)


def checked(shape: Shape, encode: Callable[[Any], bytes]) -> Encode:
    """Add the location of a mismatch to errors of an encoder."""

    def encode_checked(value: object) -> bytes:
        try:
            return encode(value)
        except Exception as error:  # libraries and values may raise anything
            wrong = find_mismatch(shape, value)
            if wrong is None:
                raise
            raise NotAllowed(wrong) from error

    return encode_checked


def _name(wanted: Any) -> str:
    return wanted.__name__ if isinstance(wanted, type) else str(wanted)
