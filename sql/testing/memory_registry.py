"""A schema registry in memory, for schemas of a case and of its statements."""

from itertools import count

from broker import concurrency
from broker.errors import RegistryError
from broker.serde.registry.api import LATEST, RegisteredSchema
from broker.serde.schema.schema import Schema


class MemoryRegistry:
    """A SchemaRegistry without compatibility rules; equal schemas share an id."""

    def __init__(self) -> None:
        self._by_id: dict[int, Schema] = {}
        self._ids: dict[Schema, int] = {}
        self._subjects: dict[str, list[int]] = {}
        self._lock = concurrency.Lock()

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        """The id of a schema; a new one becomes the subject's latest version."""
        with self._lock:
            schema_id = self._ids.get(schema)
            return self._add(subject, schema, self._free_id() if schema_id is None else schema_id)

    def register_as(self, subject: str, schema: Schema, schema_id: int) -> None:
        """Register a schema with the id given in the case."""
        with self._lock:
            self._add(subject, schema, schema_id)

    def schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        """The schema with an id."""
        with self._lock:
            if schema_id not in self._by_id:
                raise RegistryError(40403, f"Schema {schema_id} not found")
            return self._by_id[schema_id]

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """The registered version of a schema in a subject."""
        with self._lock:
            versions = self._versions(subject)
            schema_id = self._ids.get(schema)
            if schema_id is None or schema_id not in versions:
                raise RegistryError(40403, "Schema not found")
            return RegisteredSchema(subject, versions.index(schema_id) + 1, schema_id, schema)

    def version(self, subject: str, version: int = LATEST) -> RegisteredSchema:
        """One version of a subject, or its latest."""
        with self._lock:
            versions = self._versions(subject)
            number = len(versions) if version == LATEST else version
            if not 1 <= number <= len(versions):
                raise RegistryError(40402, f"Version {version} not found.")
            schema_id = versions[number - 1]
            return RegisteredSchema(subject, number, schema_id, self._by_id[schema_id])

    def has_subject(self, subject: str) -> bool:
        """Whether anything is registered under a subject."""
        with self._lock:
            return subject in self._subjects

    def _add(self, subject: str, schema: Schema, schema_id: int) -> int:
        self._by_id[schema_id] = schema
        self._ids.setdefault(schema, schema_id)
        versions = self._subjects.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return schema_id

    def _free_id(self) -> int:
        return next(number for number in count(1) if number not in self._by_id)

    def _versions(self, subject: str) -> list[int]:
        if subject not in self._subjects:
            raise RegistryError(40401, f"Subject '{subject}' not found.")
        return self._subjects[subject]
