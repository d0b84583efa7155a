"""SchemaRegistry: the interface of a registry for serdes, over HTTP or in this process."""

from dataclasses import dataclass
from typing import Protocol

from broker.serde.schema.schema import Schema

LATEST = -1


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A registered schema: its subject, version and id."""

    subject: str
    version: int
    schema_id: int
    schema: Schema


class SchemaRegistry(Protocol):
    """Methods raise RegistryError; any thread may call them."""

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        """The id of a schema, which is registered if necessary."""
        ...

    def schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        """The schema with an id; the subject determines which context is searched first."""
        ...

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """The registered version of a schema in a subject; RegistryError 40401 or 40403 if none."""
        ...

    def version(self, subject: str, version: int = LATEST) -> RegisteredSchema:
        """One version of a subject."""
        ...
