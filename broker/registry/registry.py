"""Registry: the schema registry in this process, kept in a compacted topic."""

from types import TracebackType
from typing import Self

from broker.client.opening import Target
from broker.client.registry.api import LATEST, RegisteredSchema
from broker.registry.values import (
    JsonObject,
    Mode,
    StoredSchema,
    SubjectConfig,
    SubjectVersion,
)
from broker.schema.compatibility.levels import CompatibilityLevel
from broker.schema.schema import ParsedSchema, Resolved, Schema

NO_LIMIT = -1


class Registry:
    """Subjects and their schemas; any thread may call any method.

    Refusals are RegistryError with Confluent's codes. Subjects may carry a context, as in
    ":.context:subject"; a subject of None speaks of everything.
    """

    def __init__(
        self,
        target: Target,
        *,
        topic: str = "_schemas",
        replication_factor: int = 1,
        default_level: CompatibilityLevel = CompatibilityLevel.BACKWARD,
    ) -> None:
        """Nothing is read or written before `start`."""
        raise NotImplementedError

    def start(self) -> None:
        """Make or read the topic; from now on an older registry of it can no longer write."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the topic; calling again does nothing."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    # What serdes ask (SchemaRegistry).

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        """The id of a schema, newly registered under the subject or already there."""
        return self.add(subject, schema, normalize=normalize).schema_id

    def schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        """The schema with an id; the subject says in which context to look first."""
        return self.by_id(schema_id, subject=subject).schema

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Where a schema is registered under a subject; 40401 or 40403 if nowhere."""
        found = self.find(subject, schema, normalize=normalize)
        return RegisteredSchema(found.subject, found.version, found.schema_id, found.schema)

    def version(self, subject: str, version: int = LATEST) -> RegisteredSchema:
        """One version of a subject; 40401 or 40402 if it is not there."""
        found = self.stored(subject, version)
        return RegisteredSchema(found.subject, found.version, found.schema_id, found.schema)

    # Registering and reading.

    def add(  # noqa: PLR0913 - a registration has this many parts
        self,
        subject: str,
        schema: Schema,
        *,
        normalize: bool = False,
        schema_id: int | None = None,
        version: int | None = None,
        metadata: JsonObject | None = None,
        rule_set: JsonObject | None = None,
    ) -> StoredSchema:
        """Register a schema, or find it registered; 42201 if it is wrong, 40901 if incompatible.

        An id or a version can be asked for only in mode IMPORT (42205). Version -1 is the next.
        """
        raise NotImplementedError

    def find(
        self,
        subject: str,
        schema: Schema,
        *,
        normalize: bool = False,
        deleted: bool = False,
        metadata: JsonObject | None = None,
        rule_set: JsonObject | None = None,
    ) -> StoredSchema:
        """The latest version of a subject with this schema; 40401 or 40403 if there is none."""
        raise NotImplementedError

    def stored(self, subject: str, version: int = LATEST, *, deleted: bool = False) -> StoredSchema:
        """One version of a subject; 40401 or 40402, 42202 for a number that is no version."""
        raise NotImplementedError

    def subjects(
        self,
        *,
        prefix: str = "",
        deleted: bool = False,
        deleted_only: bool = False,
        offset: int = 0,
        limit: int = NO_LIMIT,
    ) -> list[str]:
        """Names of subjects in order; the prefix ":*:" asks for all contexts."""
        raise NotImplementedError

    def versions(
        self,
        subject: str,
        *,
        deleted: bool = False,
        deleted_only: bool = False,
        offset: int = 0,
        limit: int = NO_LIMIT,
    ) -> list[int]:
        """Versions of a subject, oldest first; 40401 if there are none."""
        raise NotImplementedError

    def all_schemas(
        self,
        *,
        prefix: str = "",
        deleted: bool = False,
        latest_only: bool = False,
        offset: int = 0,
        limit: int = NO_LIMIT,
    ) -> list[StoredSchema]:
        """Schemas of the subjects with a prefix, by subject and version."""
        raise NotImplementedError

    # By id.

    def by_id(self, schema_id: int, *, subject: str | None = None) -> StoredSchema:
        """One place of the schema with an id, deleted or not; 40403 if there is none."""
        raise NotImplementedError

    def by_guid(self, guid: str) -> StoredSchema:
        """One place of the schema with a GUID; 40403 if there is none."""
        raise NotImplementedError

    def max_id(self, *, subject: str | None = None) -> int:
        """The highest id given in the context of a subject, 0 for none."""
        raise NotImplementedError

    def subjects_of(
        self,
        schema_id: int,
        *,
        subject: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = NO_LIMIT,
    ) -> list[str]:
        """Subjects that have the schema with an id; 40403 if there is no such id."""
        raise NotImplementedError

    def versions_of(
        self,
        schema_id: int,
        *,
        subject: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = NO_LIMIT,
    ) -> list[SubjectVersion]:
        """Places of the schema with an id; 40403 if there is no such id."""
        raise NotImplementedError

    # References and parsing.

    def referenced_by(self, subject: str, version: int = LATEST) -> list[int]:
        """Ids of the schemas that refer to a version, ascending."""
        raise NotImplementedError

    def resolve(self, schema: Schema, *, subject: str = "") -> Resolved:
        """Texts of all schemas referred to, each after those it refers to; 42201 if one misses.

        References name subjects in the context of the subject that refers to them.
        """
        raise NotImplementedError

    def parsed(self, stored: StoredSchema) -> ParsedSchema:
        """What the text of a stored schema says."""
        raise NotImplementedError

    def check(
        self,
        subject: str,
        schema: Schema,
        version: int | None = None,
        *,
        normalize: bool = False,
    ) -> list[str]:
        """What makes a schema incompatible with a version, or with what the level asks for.

        Empty means compatible. Version None: 40401 is not raised, a new subject takes anything.
        """
        raise NotImplementedError

    # Deleting.

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete all versions and answer them; first softly, then permanently.

        40401, 40404 if softly deleted already, 40405 if not yet, 42206 if referred to.
        """
        raise NotImplementedError

    def delete_version(
        self, subject: str, version: int = LATEST, *, permanent: bool = False
    ) -> int:
        """Delete one version and answer its number; 40401, 40402, 40406, 40407, 42206."""
        raise NotImplementedError

    # Configuration, modes and contexts.

    def config(self, subject: str | None, *, default_to_global: bool = False) -> SubjectConfig:
        """The configuration; 40408 for a subject without one unless the defaults are asked for."""
        raise NotImplementedError

    def set_config(self, subject: str | None, config: SubjectConfig) -> SubjectConfig:
        """Change the fields that are given, keep the others, and answer the whole."""
        raise NotImplementedError

    def delete_config(self, subject: str | None) -> SubjectConfig:
        """Go back to the defaults and answer the configuration that was; 40408."""
        raise NotImplementedError

    def level(self, subject: str | None, *, default_to_global: bool = False) -> CompatibilityLevel:
        """The compatibility level; 40408 as for `config`."""
        raise NotImplementedError

    def set_level(self, subject: str | None, level: CompatibilityLevel) -> CompatibilityLevel:
        """Change the compatibility level alone."""
        raise NotImplementedError

    def delete_level(self, subject: str | None) -> CompatibilityLevel:
        """Like `delete_config`, answering the level that was."""
        raise NotImplementedError

    def mode(self, subject: str | None, *, default_to_global: bool = False) -> Mode:
        """The mode; 40409 for a subject without one unless the defaults are asked for."""
        raise NotImplementedError

    def set_mode(self, subject: str | None, mode: Mode, *, force: bool = False) -> Mode:
        """Change the mode; IMPORT wants an empty subject or registry, or force (42205)."""
        raise NotImplementedError

    def delete_mode(self, subject: str | None) -> Mode:
        """Go back to the defaults and answer the mode that was; 40409."""
        raise NotImplementedError

    def contexts(self) -> list[str]:
        """Names of contexts in order; "." is the one without a name and always there."""
        raise NotImplementedError
