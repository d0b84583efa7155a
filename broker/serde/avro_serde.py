"""AvroSerde: Avro's binary encoding with a given schema; no registry, no prefix."""

from broker.errors import SchemaError, SerdeError
from broker.serde.avro_codec.fastavro_codec import decoder, encoder
from broker.serde.declaration import Declaration, as_schema
from broker.serde.schema.avro_schema import AvroSchema, parse_avro
from broker.serde.schema.schema import SchemaKind
from broker.serde.serde import cannot_decode, cannot_encode


class AvroSerde:
    """Values of one Avro schema; a reader's schema, if given, resolves written values."""

    def __init__(self, schema: Declaration, *, reader_schema: Declaration | None = None) -> None:
        """Parse the schemas; an invalid one raises SerdeError here, not at the first record."""
        try:
            writer = _parsed(schema)
            reader = None if reader_schema is None else _parsed(reader_schema)
            self._decode = decoder(writer, reader)
        except SchemaError as error:
            raise SerdeError(
                f"the Avro schema is invalid: {error.message}",
                hint=error.hint or "pass the schema as JSON text or as a dict",
            ) from error
        self._encode = encoder(writer)

    def serialize(self, topic: str, value: object) -> bytes | None:
        """The value's Avro bytes."""
        if value is None:
            return None
        try:
            return self._encode(value)
        except Exception as error:  # fastavro raises whatever the value's type raises
            raise cannot_encode(topic, "Avro", f"{type(error).__name__}: {error}") from error

    def deserialize(self, topic: str, data: bytes | None) -> object:
        """The value of Avro bytes; remaining bytes are an error."""
        if data is None:
            return None
        try:
            return self._decode(data)
        except Exception as error:  # fastavro raises many kinds of errors for invalid bytes
            raise cannot_decode(topic, "Avro", f"{type(error).__name__}: {error}") from error


def _parsed(schema: Declaration) -> AvroSchema:
    return parse_avro(as_schema(schema, SchemaKind.AVRO).text, {})
