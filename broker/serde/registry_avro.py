"""RegistryAvroSerde: Avro with schemas in a registry, as Confluent's serializers."""

from typing import cast

from broker.serde.avro_codec.fastavro_codec import decoder, encoder
from broker.serde.declaration import Declaration, as_schema
from broker.serde.framing import (
    Codec,
    Convert,
    Decode,
    Encode,
    Framing,
    converted_decoder,
    converted_encoder,
)
from broker.serde.registry.api import SchemaRegistry
from broker.serde.registry.cached_registry import CachedRegistry
from broker.serde.schema.avro_schema import AvroSchema
from broker.serde.schema.schema import ParsedSchema, SchemaKind
from broker.serde.subjects import SubjectSchemas, SubjectStrategy, topic_name
from broker.serde.wire_format import PREFIX_BYTES, frame


class RegistryAvroSerde:
    """Avro records with the id of their schema; values are dicts, as in fastavro.

        serde = RegistryAvroSerde(HttpSchemaRegistry("http://127.0.0.1:8081"), schema)

    Without a schema the serde only reads; it writes with `use_latest`.
    """

    def __init__(  # noqa: PLR0913 - one argument per option
        self,
        registry: SchemaRegistry,
        schema: Declaration | None = None,
        *,
        is_key: bool = False,
        subject: SubjectStrategy = topic_name,
        auto_register: bool = True,
        use_latest: bool = False,
        normalize: bool = False,
        reader: Declaration | None = None,
        to_value: Convert | None = None,
        from_value: Convert | None = None,
    ) -> None:
        """No request is sent before the first record.

        The schema is registered with the first record of a topic, or looked up without
        `auto_register`; `use_latest` writes with the registry's latest schema instead. Bytes are
        read with the schema that they were written with; `reader` is a reader's schema, applied by
        Avro's schema resolution. `to_value` converts values to dicts before they are written, and
        `from_value` converts dicts after they are read.
        """
        self._reader = None if reader is None else as_schema(reader, SchemaKind.AVRO)
        self._to_value = to_value
        self._from_value = from_value
        schemas = SubjectSchemas(
            registry=CachedRegistry.of(registry),
            subject=subject,
            is_key=is_key,
            auto_register=auto_register,
            use_latest=use_latest,
            normalize=normalize,
        )
        given = None if schema is None else as_schema(schema, SchemaKind.AVRO)
        codec = Codec(
            label="Avro",
            kind=SchemaKind.AVRO,
            open_encoder=self._open_encoder,
            open_decoder=self._open_decoder,
        )
        self._framing = Framing(codec, schemas, given)
        if self._reader is not None and not self._reader.references:
            self._framing.parsed(self._reader)

    def serialize(self, topic: str, value: object) -> bytes | None:
        """The value's bytes; the first record of a topic may register the schema."""
        return self._framing.serialize(topic, value)

    def deserialize(self, topic: str, data: bytes | None) -> object:
        """The value of bytes; remaining bytes are an error."""
        return self._framing.deserialize(topic, data)

    def _open_encoder(self, schema_id: int, schema: ParsedSchema) -> Encode:
        encode = encoder(cast(AvroSchema, schema), frame(schema_id))
        return converted_encoder(encode, self._to_value)

    def _open_decoder(self, writer: ParsedSchema) -> Decode:
        reader = None if self._reader is None else self._framing.parsed(self._reader)
        decode = decoder(
            cast(AvroSchema, writer), cast(AvroSchema | None, reader), skip=PREFIX_BYTES
        )
        return converted_decoder(decode, self._from_value)
