"""RegistryJsonSerde: JSON with schemas in a registry, as Confluent's serializers."""

from collections.abc import Callable
from typing import cast

import jsonschema_rs
import orjson

from broker.serde.declaration import Declaration, as_schema
from broker.serde.framing import (
    Codec,
    Convert,
    Decode,
    Encode,
    Framing,
    NotAllowed,
    converted_decoder,
    converted_encoder,
)
from broker.serde.registry.api import SchemaRegistry
from broker.serde.registry.cached_registry import CachedRegistry
from broker.serde.schema.json_schema import JsonSchema
from broker.serde.schema.schema import ParsedSchema, SchemaKind
from broker.serde.subjects import SubjectSchemas, SubjectStrategy, topic_name
from broker.serde.wire_format import PREFIX_BYTES, frame

SHOWN_MAX = 300


class RegistryJsonSerde:
    """JSON with the id of its schema; values are those of JSON: dicts, lists, strings, numbers.

        serde = RegistryJsonSerde(HttpSchemaRegistry("http://127.0.0.1:8081"), schema)

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
        validate: bool = True,
        reader: Declaration | None = None,
        to_value: Convert | None = None,
        from_value: Convert | None = None,
    ) -> None:
        """No request is sent before the first record.

        The schema is registered with the first record of a topic, or looked up without
        `auto_register`; `use_latest` writes with the registry's latest schema instead. With
        `validate`, written values must be valid for the schema, and read values for that of
        `reader` or, without one, for the schema that they were written with. `to_value` converts
        values to JSON values before they are written, and `from_value` converts them after they are
        read.
        """
        self._reader = None if reader is None else as_schema(reader, SchemaKind.JSON)
        self._validate = validate
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
        given = None if schema is None else as_schema(schema, SchemaKind.JSON)
        codec = Codec(
            label="JSON",
            kind=SchemaKind.JSON,
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
        """The value of bytes."""
        return self._framing.deserialize(topic, data)

    def _open_encoder(self, schema_id: int, schema: ParsedSchema) -> Encode:
        prefix, dumps, check = frame(schema_id), orjson.dumps, _checker(schema)

        def encode(value: object) -> bytes:
            return prefix + dumps(value)

        def encode_checked(value: object) -> bytes:
            check(value)
            return prefix + dumps(value)

        return converted_encoder(encode_checked if self._validate else encode, self._to_value)

    def _open_decoder(self, writer: ParsedSchema) -> Decode:
        schema = writer if self._reader is None else self._framing.parsed(self._reader)
        loads, check = orjson.loads, _checker(schema)

        def decode(data: bytes) -> object:
            return loads(data[PREFIX_BYTES:])

        def decode_checked(data: bytes) -> object:
            found = loads(data[PREFIX_BYTES:])
            check(found)
            return found

        return converted_decoder(decode_checked if self._validate else decode, self._from_value)


def _checker(schema: ParsedSchema) -> Callable[[object], None]:
    """A function that raises ValueError for invalid values."""
    validate = cast(JsonSchema, schema).validator().validate
    invalid = jsonschema_rs.ValidationError

    def check(value: object) -> None:
        try:
            validate(value)
        except invalid as error:
            path = "".join(f"/{each}" for each in error.instance_path)
            raise NotAllowed(f"{error.message[:SHOWN_MAX]} at #{path}") from error

    return check
