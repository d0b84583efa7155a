"""Avro's binary encoding through fastavro, with the schema given; no registry, no prefix."""

import io
import json
from collections.abc import Mapping, Sequence

import fastavro

from broker.client.serde.serde import cannot_decode, cannot_encode
from broker.errors import SerdeError

Schema = str | Mapping[str, object] | Sequence[object]


class AvroSerde:
    """Values of one Avro schema; a reader's schema, when given, resolves what was written."""

    def __init__(self, schema: Schema, *, reader_schema: Schema | None = None) -> None:
        """Parse the schemas; a wrong one raises SerdeError here, not at the first record."""
        self._writer = _parsed(schema)
        self._reader = None if reader_schema is None else _parsed(reader_schema)

    def serialize(self, topic: str, value: object) -> bytes | None:
        """The value's Avro bytes."""
        if value is None:
            return None
        out = io.BytesIO()
        try:
            fastavro.schemaless_writer(out, self._writer, value)
        except Exception as error:  # fastavro raises whatever the value's own type raises
            raise cannot_encode(topic, "Avro", f"{type(error).__name__}: {error}") from error
        return out.getvalue()

    def deserialize(self, topic: str, data: bytes | None) -> object:
        """The value of Avro bytes; bytes left over are an error."""
        if data is None:
            return None
        source = io.BytesIO(data)
        try:
            found: object = fastavro.schemaless_reader(source, self._writer, self._reader)
        except Exception as error:  # fastavro has no one error for bytes that are no Avro
            raise cannot_decode(topic, "Avro", f"{type(error).__name__}: {error}") from error
        if source.tell() != len(data):
            raise cannot_decode(topic, "Avro", f"{len(data) - source.tell()} bytes are left over")
        return found


def _parsed(schema: Schema) -> object:
    try:
        return fastavro.parse_schema(json.loads(schema) if isinstance(schema, str) else schema)
    except Exception as error:  # unknown types, repeated names and bad JSON have no common error
        raise SerdeError(
            f"the Avro schema is wrong: {type(error).__name__}: {error}",
            hint="give Avro's JSON, as text or as a dict",
        ) from error
