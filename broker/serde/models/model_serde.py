"""ModelSerde: values of a dataclass, msgspec or pydantic model, with their schema in a registry."""

from typing import Any, Generic, Literal, TypeVar, cast

from broker.errors import RegistryError, SerdeError
from broker.serde.framing import Framing
from broker.serde.models.model_codecs import avro_codec, json_codec, protobuf_codec
from broker.serde.registry.api import SchemaRegistry
from broker.serde.registry.cached_registry import CachedRegistry
from broker.serde.schema.schema import Schema
from broker.serde.subjects import SubjectSchemas, SubjectStrategy, topic_name

T = TypeVar("T")

Format = Literal["AVRO", "JSON", "PROTOBUF"]
_CODECS = {"AVRO": avro_codec, "JSON": json_codec, "PROTOBUF": protobuf_codec}


class ModelSerde(Generic[T]):
    """Values of one model, with the id of its schema, which is derived from type hints.

        serde = ModelSerde(Order, "http://127.0.0.1:8081", format="AVRO")

    Records are read as the model, whatever version of it wrote them: new fields get their defaults,
    and removed fields are ignored.
    """

    def __init__(  # noqa: PLR0913 - one argument per option
        self,
        model: type[T],
        registry: SchemaRegistry | str,
        format: Format = "AVRO",  # noqa: A002 - the word of everybody
        *,
        is_key: bool = False,
        subject: SubjectStrategy = topic_name,
        namespace: str | None = None,
        auto_register: bool = True,
        use_latest: bool = False,
        normalize: bool = False,
    ) -> None:
        """Derive the schema: SchemaError names an unsupported field.

        `registry` is a registry, or its URL; no request is sent yet. `namespace` is that of classes
        without `__schema_namespace__`; the default is their module. See RegistryAvroSerde for
        `auto_register`, `use_latest` and `normalize`.
        """
        if format not in _CODECS:
            raise SerdeError(f'unknown model format "{format}"', hint=f"use {', '.join(_CODECS)}")
        if isinstance(registry, str):
            # Imported here, because httpx is slow to import and most programs do not need it.
            from broker.serde.registry.http_registry import HttpSchemaRegistry

            registry = HttpSchemaRegistry(registry)
        found = _CODECS[format](model, namespace)
        self.schema: Schema = found.schema
        self._schemas = SubjectSchemas(
            registry=CachedRegistry.of(registry),
            subject=subject,
            is_key=is_key,
            auto_register=auto_register,
            use_latest=use_latest,
            normalize=normalize,
        )
        self._framing = Framing(found.codec, self._schemas, found.schema)
        self._label = found.codec.label
        self._name = self._framing.parsed(found.schema).record_name()

    def serialize(self, topic: str, value: T | None) -> bytes | None:
        """The value's bytes; the first record of a topic may register the schema."""
        return self._framing.serialize(topic, value)

    def deserialize(self, topic: str, data: bytes | None) -> T | None:
        """The value of bytes."""
        return cast("T | None", self._framing.deserialize(topic, data))

    def check(self, topic: str) -> int:
        """Register the schema for a topic now, or look it up; returns its id.

        RegistryError 409 contains the reasons why old records cannot be read with the model.
        """
        schemas = self._schemas
        subject = schemas.subject_of(topic, self._name)
        try:
            if schemas.use_latest:
                return schemas.registry.version(subject).schema_id
            if schemas.auto_register:
                return schemas.registry.register(subject, self.schema, normalize=schemas.normalize)
            return schemas.registry.lookup(
                subject, self.schema, normalize=schemas.normalize
            ).schema_id
        except RegistryError as error:
            raise RegistryError(
                error.code,
                f'the schema of "{self._label}" for subject "{subject}": {error.message}',
                hint=error.hint
                or "give new fields defaults and keep the types of old ones, or lower the "
                f'compatibility level of "{subject}"',
            ) from error


# Any: options of ModelSerde, which validates them.
def avro(model: type[T], registry: SchemaRegistry | str, **options: Any) -> ModelSerde[T]:
    """Values of a model as Avro: `builder.stream("orders", key=str, value=avro(Order, url))`."""
    return ModelSerde(model, registry, "AVRO", **options)


def json_schema(model: type[T], registry: SchemaRegistry | str, **options: Any) -> ModelSerde[T]:
    """Values of a model as JSON with a JSON Schema."""
    return ModelSerde(model, registry, "JSON", **options)


def protobuf(model: type[T], registry: SchemaRegistry | str, **options: Any) -> ModelSerde[T]:
    """Values of a model as Protobuf."""
    return ModelSerde(model, registry, "PROTOBUF", **options)
