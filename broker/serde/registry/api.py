"""SchemaRegistry: what serdes ask of a registry, over HTTP or in this process."""

from dataclasses import dataclass
from typing import Protocol

from broker.serde.schema.schema import Schema

LATEST = -1


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema with the place a registry gave it."""

    subject: str
    version: int
    schema_id: int
    schema: Schema


class SchemaRegistry(Protocol):
    """Calls raise RegistryError; all of them may be made from any thread."""

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        """The id of a schema, newly registered under the subject or already there."""
        ...

    def schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        """The schema with an id; the subject says in which context to look first."""
        ...

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Where a schema is registered under a subject; RegistryError 40401 or 40403 if nowhere."""
        ...

    def version(self, subject: str, version: int = LATEST) -> RegisteredSchema:
        """One version of a subject."""
        ...
