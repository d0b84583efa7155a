"""Converts JSON to records with schemas of a registry and back, for `produce` and `consume`."""

import base64
from collections.abc import Callable
from typing import Any

import click
import orjson
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from google.protobuf.message import Message  # type: ignore[import-untyped]

from broker.errors import RegistryError, SerdeError
from broker.serde import RegistryAvroSerde, RegistryJsonSerde, RegistryProtobufSerde, Serde
from broker.serde.registry import CachedRegistry, HttpSchemaRegistry, SchemaRegistry
from broker.serde.schema.schema import SchemaKind
from broker.serde.wire_format import schema_id_of

NOT_FOUND = 404


def reader(url: str, topic: str) -> Callable[[bytes | None], object]:
    """A function that converts bytes to a JSON value; without a schema they become a hex string."""
    registry = CachedRegistry.of(_opened(url))
    serdes = {kind: _serde(kind, registry, is_key=False) for kind in SchemaKind}

    def read(data: bytes | None) -> object:
        if data is None:
            return None
        try:
            kind = registry.schema(schema_id_of(topic, data)).kind
            return _shown(serdes[kind].deserialize(topic, data))
        except SerdeError:
            return f"0x{data.hex()}"

    return read


def writer(url: str, topic: str, *, is_key: bool) -> Callable[[str], bytes | None]:
    """A function that encodes JSON text with the latest schema of the topic's subject."""
    registry = _opened(url)
    subject = f"{topic}-{'key' if is_key else 'value'}"
    try:
        kind = registry.version(subject).schema.kind
    except RegistryError as error:
        if error.status != NOT_FOUND:
            raise
        raise click.UsageError(
            f'the registry has no schema for "{subject}"; register one with '
            f"`millstream schemas register {subject} FILE`"
        ) from None
    serde = _serde(kind, registry, is_key=is_key)

    def write(text: str) -> bytes | None:
        try:
            value = orjson.loads(text)
        except ValueError as error:
            raise click.UsageError(f'"{text}" is not valid JSON: {error}') from None
        return serde.serialize(topic, value)

    return write


def _opened(url: str) -> HttpSchemaRegistry:
    registry = HttpSchemaRegistry(url)
    click.get_current_context().call_on_close(registry.close)
    return registry


# Any: the types of the values depend on the schema.
def _serde(kind: SchemaKind, registry: SchemaRegistry, *, is_key: bool) -> Serde[Any]:
    made: Serde[Any]
    match kind:
        case SchemaKind.AVRO:
            made = RegistryAvroSerde(registry, is_key=is_key, use_latest=True)
        case SchemaKind.JSON:
            made = RegistryJsonSerde(registry, is_key=is_key, use_latest=True)
        case SchemaKind.PROTOBUF:
            made = RegistryProtobufSerde(registry, is_key=is_key, use_latest=True)
    return made


def _shown(value: object) -> object:
    """The value with only JSON types."""
    if isinstance(value, Message):
        return MessageToDict(value, preserving_proto_field_name=True)
    return orjson.loads(orjson.dumps(value, default=_as_text))


def _as_text(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
