"""Registry: the schema registry in this process, stored in a compacted topic."""

from collections.abc import Callable
from typing import Self, TypeVar

from broker import concurrency
from broker.client.opening import Target
from broker.errors import RegistryError
from broker.registry import deletion, lookup, refusals, settings
from broker.registry.records import ConfigRecord, ModeRecord, Record, SchemaRecord
from broker.registry.registration import Registrar, Registration
from broker.registry.schema_log import SchemaLog
from broker.registry.schema_parser import SchemaParser
from broker.registry.state import RegistryState
from broker.registry.subject_names import (
    ALL_CONTEXTS,
    DEFAULT_CONTEXT,
    checked_subject,
    context_of,
    whole_name,
)
from broker.registry.values import JsonObject, Mode, StoredSchema, SubjectConfig, SubjectVersion
from broker.serde.registry.api import LATEST, RegisteredSchema
from broker.serde.schema.compatibility.levels import CompatibilityLevel
from broker.serde.schema.schema import ParsedSchema, Resolved, Schema

NO_LIMIT = -1

T = TypeVar("T")


class Registry:
    """Subjects and their schemas; any thread may call any method.

    Refusals are RegistryError with Confluent's codes. Subjects may contain a context, as in
    ":.context:subject"; a subject of None means all subjects.
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
        self._state = RegistryState()
        self._parser = SchemaParser(self._state)
        self._registrar = Registrar(self._state, self._parser, default_level)
        self._default_level = default_level
        self._log = SchemaLog(
            target, topic, replication_factor=replication_factor, apply=self._apply
        )
        self._writer = concurrency.Lock()  # held from preparing a change until it is applied
        self._lock = (
            concurrency.RLock()
        )  # guards the state and the parser; never held while waiting
        self._running = False

    def start(self) -> None:
        """Create or read the topic, and fence older registries that use it."""
        with self._writer:
            if not self._running:
                self._log.open()
                self._running = True

    def close(self) -> None:
        """Close the topic; calling again does nothing."""
        with self._writer:
            self._running = False
            self._log.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The interface of serdes (SchemaRegistry).

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        """The id of a schema, which is registered if necessary."""
        return self.add(subject, schema, normalize=normalize).schema_id

    def schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        """The schema with an id; the subject determines which context is searched first."""
        return self.by_id(schema_id, subject=subject).schema

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """The registered version of a schema in a subject; 40401 or 40403 if there is none."""
        found = self.find(subject, schema, normalize=normalize)
        return RegisteredSchema(found.subject, found.version, found.schema_id, found.schema)

    def version(self, subject: str, version: int = LATEST) -> RegisteredSchema:
        """One version of a subject; 40401 or 40402 if it does not exist.

        A number also finds soft deleted versions, whose records can still be read.
        """
        found = self.stored(subject, version, deleted=version != LATEST)
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
        """Register a schema, or find it; 42201 if it is invalid, 40901 if incompatible.

        An id or a version can be given only in mode IMPORT (42205). Version -1 is the next.
        """
        asked = Registration(
            checked_subject(subject), schema, normalize, schema_id, version, metadata, rule_set
        )
        with self._lock:
            known = self._registrar.known(asked)
        if known is not None:
            return known
        return self._change(lambda: self._registrar.register(asked))

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
        name = whole_name(subject)
        with self._lock:
            for spelled in lookup.spellings(self._state, name):
                asked = Registration(
                    spelled, schema, normalize, metadata=metadata, rule_set=rule_set
                )
                found = self._registrar.find(asked, deleted=deleted)
                if found is not None:
                    return found
            if not self._state.has_versions(name, deleted=deleted):
                raise refusals.subject_not_found(name)
            raise refusals.schema_not_found()

    def stored(self, subject: str, version: int = LATEST, *, deleted: bool = False) -> StoredSchema:
        """One version of a subject; 40401 or 40402, 42202 for an invalid number."""
        with self._lock:
            return lookup.stored_version(self._state, whole_name(subject), version, deleted=deleted)

    def subjects(
        self,
        *,
        prefix: str = ALL_CONTEXTS,
        deleted: bool = False,
        deleted_only: bool = False,
        offset: int = 0,
        limit: int = NO_LIMIT,
    ) -> list[str]:
        """Names of subjects in order; ":*:" before a prefix means all contexts."""
        with self._lock:
            found = lookup.subjects_with(
                self._state, prefix, deleted=deleted, deleted_only=deleted_only
            )
        return lookup.page(found, offset, limit)

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
        name = whole_name(subject)
        with self._lock:
            found = self._state.versions(name, deleted=deleted or deleted_only)
        kept = [stored.version for stored in found if stored.deleted or not deleted_only]
        if not kept:
            raise refusals.subject_not_found(name)
        return lookup.page(kept, offset, limit)

    def all_schemas(
        self,
        *,
        prefix: str = ALL_CONTEXTS,
        deleted: bool = False,
        latest_only: bool = False,
        offset: int = 0,
        limit: int = NO_LIMIT,
    ) -> list[StoredSchema]:
        """Schemas of the subjects with a prefix, by subject and version."""
        with self._lock:
            found = [
                stored
                for subject in lookup.subjects_with(self._state, prefix, deleted=deleted)
                for stored in self._state.versions(subject, deleted=deleted)[
                    -1 if latest_only else 0 :
                ]
            ]
        return lookup.page(found, offset, limit)

    # By id.

    def by_id(self, schema_id: int, *, subject: str | None = None) -> StoredSchema:
        """One version with the schema of an id, deleted or not; 40403 if there is none."""
        with self._lock:
            return lookup.place_by_id(self._state, schema_id, _name(subject))

    def by_guid(self, guid: str) -> StoredSchema:
        """One version with the schema of a GUID; 40403 if there is none."""
        with self._lock:
            return lookup.place_by_guid(self._state, guid)

    def max_id(self, *, subject: str | None = None) -> int:
        """The highest assigned id in the context of a subject, 0 for none."""
        with self._lock:
            return self._state.max_id(context_of(subject))

    def subjects_of(
        self,
        schema_id: int,
        *,
        subject: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = NO_LIMIT,
    ) -> list[str]:
        """The subjects with the schema of an id; 40403 if the id does not exist."""
        with self._lock:
            places = lookup.places_of(self._state, schema_id, _name(subject), deleted=deleted)
        return lookup.page(list(dict.fromkeys(each.subject for each in places)), offset, limit)

    def versions_of(
        self,
        schema_id: int,
        *,
        subject: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = NO_LIMIT,
    ) -> list[SubjectVersion]:
        """The versions with the schema of an id; 40403 if the id does not exist."""
        with self._lock:
            places = lookup.places_of(self._state, schema_id, _name(subject), deleted=deleted)
        found = [SubjectVersion(each.subject, each.version) for each in places]
        return lookup.page(found, offset, limit)

    # References and parsing.

    def referenced_by(self, subject: str, version: int = LATEST) -> list[int]:
        """Ids of the schemas that refer to a version, ascending."""
        with self._lock:
            found = lookup.stored_version(self._state, whole_name(subject), version, deleted=True)
            return self._state.referrers(found.subject, found.version)

    def resolve(self, schema: Schema, *, subject: str = "") -> Resolved:
        """All referenced schemas as text, each after those it refers to; 42201 if one is missing.

        References are resolved in the context of the subject that contains them.
        """
        with self._lock:
            return self._parser.resolve(subject, schema)

    def parsed(self, stored: StoredSchema) -> ParsedSchema:
        """The parsed schema."""
        with self._lock:
            return self._parser.parse(stored.subject, stored.schema)

    def check(
        self,
        subject: str,
        schema: Schema,
        version: int | None = None,
        *,
        normalize: bool = False,
        metadata: JsonObject | None = None,
    ) -> list[str]:
        """The reasons why a schema is incompatible with a version, or with those of its level.

        Empty means compatible. Version None: no 40401, any schema is compatible with a new subject.
        """
        name = checked_subject(subject)
        asked = Registration(name, schema, normalize, metadata=metadata)
        with self._lock:
            if version is None:
                previous = self._state.versions(name)
            elif version == LATEST and not self._state.has_versions(name):
                previous = []
            else:
                previous = [self._checked_version(name, version)]
            return self._registrar.check(asked, previous)

    # Deleting.

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete all versions and return them; first softly, then permanently.

        40401, 40404 if softly deleted already, 40405 if not yet, 42206 if referred to.
        """
        name = whole_name(subject)
        return self._change(
            lambda: deletion.deleted_subject(self._state, name, permanent=permanent)
        )

    def delete_version(
        self, subject: str, version: int = LATEST, *, permanent: bool = False
    ) -> int:
        """Delete one version and return its number; 40401, 40402, 40406, 40407, 42206."""
        name = whole_name(subject)

        def change() -> tuple[int, list[Record]]:
            stored = self._deletable(name, version)
            return deletion.deleted_version(self._state, stored, permanent=permanent)

        return self._change(change)

    # Configuration, modes and contexts.

    def config(self, subject: str | None, *, default_to_global: bool = False) -> SubjectConfig:
        """The configuration; 40408 for a subject without one, unless defaults are requested."""
        name = _settings_name(subject)
        with self._lock:
            if name is None or default_to_global:
                return settings.config_for(self._state, name, self._default_level)
            if name not in self._state.configs:
                raise refusals.level_not_configured(name)
            return self._state.configs[name]

    def set_config(self, subject: str | None, config: SubjectConfig) -> SubjectConfig:
        """Change the given fields and return the whole configuration."""
        name = _settings_name(subject)
        return self._change(lambda: settings.changed_config(self._state, name, config))

    def delete_config(self, subject: str | None) -> SubjectConfig:
        """Delete the configuration and return it; 40401 if there is none."""
        name = _settings_name(subject)
        if name is None:
            before = self.config(None)
            self._change(lambda: (None, [ConfigRecord(None, None)]))
            return before
        return self._change(lambda: settings.removed_config(self._state, name))

    def level(self, subject: str | None, *, default_to_global: bool = False) -> CompatibilityLevel:
        """The compatibility level; 40408 as for `config`."""
        name = _settings_name(subject)
        with self._lock:
            found = self.config(name, default_to_global=default_to_global)
            if found.level is None:
                found = settings.config_for(self._state, name, self._default_level)
        return found.level or self._default_level

    def set_level(self, subject: str | None, level: CompatibilityLevel) -> CompatibilityLevel:
        """Change only the compatibility level."""
        self.set_config(subject, SubjectConfig(level))
        return level

    def delete_level(self, subject: str | None) -> CompatibilityLevel:
        """Like `delete_config`, but returns the level."""
        return self.delete_config(subject).level or self._default_level

    def mode(self, subject: str | None, *, default_to_global: bool = False) -> Mode:
        """The mode; 40409 for a subject without one, unless defaults are requested."""
        name = _settings_name(subject)
        with self._lock:
            if name is None or default_to_global:
                return settings.mode_for(self._state, name)
            if name not in self._state.modes:
                raise refusals.mode_not_configured(name)
            return self._state.modes[name]

    def set_mode(self, subject: str | None, mode: Mode, *, force: bool = False) -> Mode:
        """Change the mode; IMPORT needs an empty subject or registry, or force (42205)."""
        name = _settings_name(subject)
        return self._change(lambda: settings.changed_mode(self._state, name, mode, force=force))

    def delete_mode(self, subject: str | None) -> Mode:
        """Delete the mode and return it; 40401 if there is none."""
        name = _settings_name(subject)
        if name is None:
            before = self.mode(None)
            self._change(lambda: (None, [ModeRecord(None, None)]))
            return before
        return self._change(lambda: settings.removed_mode(self._state, name))

    def contexts(self) -> list[str]:
        """Names of contexts in order; "." is the default one, which always exists."""
        with self._lock:
            return [DEFAULT_CONTEXT, *self._state.contexts()]

    # --- inside -------------------------------------------------------------------------------

    def _change(self, think: Callable[[], tuple[T, list[Record]]]) -> T:
        """Prepare a change, write it, and only then make it visible."""
        with self._writer:
            if not self._running:
                raise RegistryError(50001, "the registry is not running", hint="call start() first")
            self._log.ready()
            with self._lock:
                answer, records = think()
            if records:
                self._log.append(records)
                with self._lock:  # readers see the whole change or nothing
                    for record in records:
                        self._apply(record)
        return answer

    def _apply(self, record: Record) -> None:
        with self._lock:
            self._state.apply(record)
            if isinstance(record, SchemaRecord) and record.stored is None:
                self._parser.forget()

    def _checked_version(self, subject: str, version: int) -> StoredSchema:
        """A version to compare with; a missing subject has no versions."""
        try:
            return lookup.stored_version(self._state, subject, version, deleted=False)
        except RegistryError as error:
            raise (refusals.version_not_found(version) if error.code == 40401 else error) from None

    def _deletable(self, subject: str, version: int) -> StoredSchema:
        """A version of exactly this subject, deleted or not."""
        if version != LATEST and not 1 <= version <= lookup.VERSION_MAX:
            raise refusals.invalid_version(version)
        latest = version == LATEST
        state = self._state
        found = state.latest(subject) if latest else state.version(subject, version)
        if found is not None:
            return found
        if not state.has_versions(subject, deleted=True):
            raise refusals.subject_not_found(subject)
        raise refusals.version_not_found(version)


def _name(subject: str | None) -> str | None:
    return None if subject is None else whole_name(subject)


def _settings_name(subject: str | None) -> str | None:
    """The key of settings; those of the default context have no subject."""
    return None if subject is None else checked_subject(subject, settings=True) or None
