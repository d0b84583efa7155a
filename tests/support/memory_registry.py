"""An in-memory schema registry, for tests that need no server."""

import threading

from broker.errors import RegistryError
from broker.serde.registry.api import LATEST, RegisteredSchema
from broker.serde.schema.schema import Schema


class MemoryRegistry:
    """A SchemaRegistry without compatibility checks: ids start at 1, equal schemas share an id."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._by_id: dict[int, Schema] = {}
        self._ids: dict[Schema, int] = {}
        self._subjects: dict[str, list[int]] = {}
        self._lock = threading.Lock()

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        """Return the id of a schema; a new schema becomes the latest version of the subject."""
        with self._lock:
            self.calls.append(f"register {subject}")
            schema_id = self._ids.setdefault(schema, len(self._ids) + 1)
            self._by_id[schema_id] = schema
            versions = self._subjects.setdefault(subject, [])
            if schema_id not in versions:
                versions.append(schema_id)
            return schema_id

    def schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        """The schema with this id."""
        with self._lock:
            self.calls.append(f"schema {schema_id}")
            if schema_id not in self._by_id:
                raise RegistryError(40403, f"schema {schema_id} not found")
            return self._by_id[schema_id]

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """The registration of a schema under a subject."""
        with self._lock:
            self.calls.append(f"lookup {subject}")
            versions = self._versions(subject)
            schema_id = self._ids.get(schema)
            if schema_id is None or schema_id not in versions:
                raise RegistryError(40403, "schema not found")
            return RegisteredSchema(subject, versions.index(schema_id) + 1, schema_id, schema)

    def version(self, subject: str, version: int = LATEST) -> RegisteredSchema:
        """One version of a subject, or its latest."""
        with self._lock:
            self.calls.append(f"version {subject} {version}")
            versions = self._versions(subject)
            number = len(versions) if version == LATEST else version
            if not 1 <= number <= len(versions):
                raise RegistryError(40402, f"version {version} not found")
            schema_id = versions[number - 1]
            return RegisteredSchema(subject, number, schema_id, self._by_id[schema_id])

    def _versions(self, subject: str) -> list[int]:
        if subject not in self._subjects:
            raise RegistryError(40401, f'subject "{subject}" not found')
        return self._subjects[subject]
