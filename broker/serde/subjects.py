"""Subjects: the names under which a registry stores the schemas of a topic's keys and values."""

from collections.abc import Callable
from dataclasses import dataclass

from broker.errors import RegistryError, SerdeError
from broker.serde.registry.api import SchemaRegistry
from broker.serde.schema.schema import Reference, Schema

# From the topic, whether it is for keys, and the full name of the record, to the subject.
SubjectStrategy = Callable[[str, bool, str | None], str]


def topic_name(topic: str, is_key: bool, record_name: str | None) -> str:
    """`orders-value`: one schema per topic, which may evolve. The default."""
    return f"{topic}-{'key' if is_key else 'value'}"


def record_name(topic: str, is_key: bool, record_name: str | None) -> str:
    """`shop.Order`: one schema per type of record, in any topic."""
    return _named(topic, record_name)


def topic_record_name(topic: str, is_key: bool, record_name: str | None) -> str:
    """`orders-shop.Order`: several types of records in a topic, each with its own versions."""
    return f"{topic}-{_named(topic, record_name)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectSchemas:
    """Finds the schema with which a topic is written, and its id."""

    registry: SchemaRegistry
    subject: SubjectStrategy
    is_key: bool
    auto_register: bool
    use_latest: bool
    normalize: bool

    def subject_of(self, topic: str, name: str | None) -> str:
        """The subject of a topic's schema."""
        return self.subject(topic, self.is_key, name)

    def subject_to_read(self, topic: str) -> str | None:
        """The subject of a topic, if it is known before the record is."""
        try:
            return self.subject(topic, self.is_key, None)
        except SerdeError:
            return None

    def find(self, topic: str, schema: Schema | None, name: str | None) -> tuple[int, Schema]:
        """Id and schema to write with: the latest, or the given one, registered if necessary.

        An error response is SerdeError; RegistryError means that the registry does not respond, and
        nothing is wrong with the value.
        """
        subject = self.subject_of(topic, name)
        try:
            if self.use_latest:
                latest = self.registry.version(subject)
                return latest.schema_id, latest.schema
            if schema is None:
                raise SerdeError(
                    "there is no schema to write with",
                    at=f'topic "{topic}"',
                    hint="pass a schema to the serde, or use_latest=True for that of the registry",
                )
            if self.auto_register:
                return self.registry.register(subject, schema, normalize=self.normalize), schema
            found = self.registry.lookup(subject, schema, normalize=self.normalize)
            return found.schema_id, schema
        except RegistryError as error:
            raise self._refused(topic, subject, error) from error

    def refer(self, name: str, schema: Schema) -> Reference:
        """A reference to a schema under its own name, which is registered if necessary."""
        try:
            if self.auto_register:
                self.registry.register(name, schema, normalize=self.normalize)
            found = self.registry.lookup(name, schema, normalize=self.normalize)
        except RegistryError as error:
            raise self._refused("", name, error) from error
        return Reference(name, name, found.version)

    def _refused(self, topic: str, subject: str, error: RegistryError) -> Exception:
        if not is_refusal(error):
            return error
        hint = error.hint
        if error.status == 404:
            hint = f'register a schema for the subject "{subject}"'
            hint += "" if self.use_latest else ", or set auto_register=True"
        elif error.status == 409:
            hint = (
                "change the schema so that old records stay readable, or lower the "
                f'compatibility level of "{subject}"'
            )
        return SerdeError(
            f'the registry has no schema to write with for subject "{subject}": {error.message}',
            at=f'topic "{topic}"' if topic else "",
            hint=hint or "see what the registry reports about the schema",
        )


def is_refusal(error: RegistryError) -> bool:
    """Whether the registry has refused a request: missing, incompatible or invalid."""
    return error.status in (404, 409, 422)


def unknown_schema(topic: str, schema_id: int, error: RegistryError) -> Exception:
    """The error if the schema of some bytes is not found."""
    if not is_refusal(error):
        return error
    return SerdeError(
        f"the schema with id {schema_id} is not in the registry: {error.message}",
        at=f'topic "{topic}"',
        hint="pass the registry that the topic was written with; or the topic has another format",
    )


def _named(topic: str, name: str | None) -> str:
    if name is None:
        raise SerdeError(
            "the schema has no name, which the subject needs",
            at=f'topic "{topic}"',
            hint="use a record (JSON: a schema with a title), or subject=topic_name",
        )
    return name
