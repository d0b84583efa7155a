"""RegistryState: the state of the registry, built by applying the records of its topic.

Pure and without locks: the writer ensures that no reader runs at the same time. The same records in
the same order always produce the same state, with or without records that compaction removes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar, assert_never

from broker.registry.records import (
    BadRecord,
    ClearSubjectRecord,
    ConfigRecord,
    ContextRecord,
    DeleteSubjectRecord,
    ModeRecord,
    NoopRecord,
    Record,
    SchemaRecord,
)
from broker.registry.subject_names import context_of, covers, in_context_of
from broker.registry.values import Mode, StoredSchema, SubjectConfig, SubjectVersion
from broker.serde.schema.schema import SchemaKind

T = TypeVar("T")

NOTHING: dict[int, StoredSchema] = {}


class ContextState:
    """Ids of one context."""

    __slots__ = ("ids", "ids_by_guid", "max_id", "places")

    def __init__(self) -> None:
        self.max_id = 0
        self.places: dict[int, list[StoredSchema]] = {}  # versions with the schema of an id
        # A GUID does not contain the language, but schemas of different kinds are never equal.
        self.ids: dict[tuple[str, SchemaKind], int] = {}
        self.ids_by_guid: dict[str, int] = {}


class RegistryState:
    """Subjects, ids, settings and references."""

    def __init__(self) -> None:
        self.configs: dict[str | None, SubjectConfig] = {}
        self.modes: dict[str | None, Mode] = {}
        self._context_names: dict[str | None, bool] = {}  # besides the default one
        self._subjects: dict[str, dict[int, StoredSchema]] = {}
        self._contexts: dict[str, ContextState] = {}
        # The number of live ids that refer to a version.
        self._referrers: dict[SubjectVersion, dict[int, int]] = {}

    # --- reading ------------------------------------------------------------------------------

    def subjects(self) -> Iterable[str]:
        """All subjects with versions, deleted or not."""
        return self._subjects

    def versions(self, subject: str, *, deleted: bool = False) -> list[StoredSchema]:
        """Versions of a subject, oldest first."""
        found = self._subjects.get(subject, NOTHING)
        return [
            found[version] for version in sorted(found) if deleted or not found[version].deleted
        ]

    def version(self, subject: str, version: int) -> StoredSchema | None:
        """One version of a subject, deleted or not."""
        return self._subjects.get(subject, NOTHING).get(version)

    def latest(self, subject: str) -> StoredSchema | None:
        """The latest version that is not deleted."""
        found = self._subjects.get(subject, NOTHING).values()
        live = (stored for stored in found if not stored.deleted)
        return max(live, key=lambda stored: stored.version, default=None)

    def has_versions(self, subject: str, *, deleted: bool = False) -> bool:
        """Whether a subject has any version."""
        # A loop, because all subjects may be checked at once.
        for stored in self._subjects.get(subject, NOTHING).values():
            if deleted or not stored.deleted:
                return True
        return False

    def covered(self, place: str | None) -> list[str]:
        """The subjects that the scope of a setting covers."""
        return [subject for subject in self._subjects if covers(place, subject)]

    def contexts(self) -> list[str]:
        """Names of contexts besides the default one, in order."""
        return sorted(name for name in self._context_names if name is not None)

    def has_context(self, name: str) -> bool:
        """Whether a context was used before."""
        return name in self._context_names

    def places(self, context: str, schema_id: int) -> list[StoredSchema]:
        """The versions with the schema of an id, deleted or not."""
        found = self._contexts.get(context)
        return [] if found is None else found.places.get(schema_id, [])

    def id_of(self, context: str, guid: str, kind: SchemaKind) -> int | None:
        """The id of a schema in a context."""
        found = self._contexts.get(context)
        return None if found is None else found.ids.get((guid, kind))

    def id_by_guid(self, context: str, guid: str) -> int | None:
        """The id of the schema with a GUID."""
        found = self._contexts.get(context)
        return None if found is None else found.ids_by_guid.get(guid)

    def max_id(self, context: str) -> int:
        """The highest id that was ever assigned in a context."""
        found = self._contexts.get(context)
        return 0 if found is None else found.max_id

    def max_ids(self) -> dict[str, int]:
        """The highest ids of all contexts."""
        return {name: context.max_id for name, context in self._contexts.items()}

    def referrers(self, subject: str, version: int) -> list[int]:
        """Ids of live schemas that refer to a version, ascending."""
        return sorted(self._referrers.get(SubjectVersion(subject, version), ()))

    # --- writing ------------------------------------------------------------------------------

    def apply(self, record: Record) -> None:
        """Apply a record; BadRecord, without a change, if it contradicts the state."""
        match record:
            case SchemaRecord(subject, version, stored):
                if stored is None:
                    self._remove(subject, version)
                else:
                    self._put(stored)
            case ConfigRecord(subject, config):
                _set(self.configs, subject, config)
            case ModeRecord(subject, mode):
                _set(self.modes, subject, mode)
            case DeleteSubjectRecord(subject, version):
                self._soft_delete(subject, version)
            case ClearSubjectRecord(subject):
                self._clear(subject)
            case ContextRecord(context, exists=exists):
                _set(self._context_names, context, exists or None)
            case NoopRecord(max_ids):
                self._raise_ids(max_ids)
            case _:
                assert_never(record)

    def _raise_ids(self, max_ids: Mapping[str, int]) -> None:
        for name, max_id in max_ids.items():
            context = self._contexts.setdefault(name, ContextState())
            context.max_id = max(context.max_id, max_id)

    def _put(self, stored: StoredSchema) -> None:
        name = context_of(stored.subject)
        context = self._contexts.get(name)
        if context is None:
            context = self._contexts[name] = ContextState()
        before = self._subjects.get(stored.subject, NOTHING).get(stored.version)
        for other in context.places.get(stored.schema_id, ()):
            if other is before:
                continue  # it is replaced
            if other.schema.text != stored.schema.text:
                raise BadRecord(
                    f"id {stored.schema_id} belongs to another schema, of subject "
                    f'"{other.subject}" version {other.version}'
                )
            if other.schema == stored.schema:  # share one string in memory
                stored = replace(stored, schema=other.schema)
            break
        if before is not None:
            self._remove(stored.subject, stored.version)
        self._subjects.setdefault(stored.subject, {})[stored.version] = stored
        context.max_id = max(context.max_id, stored.schema_id)
        context.places.setdefault(stored.schema_id, []).append(stored)
        context.ids[stored.guid, stored.schema.kind] = stored.schema_id
        context.ids_by_guid[stored.guid] = stored.schema_id
        if not stored.deleted:
            self._refer(stored, 1)

    def _remove(self, subject: str, version: int) -> None:
        versions = self._subjects.get(subject, NOTHING)
        stored = versions.get(version)
        if stored is None:
            return
        del versions[version]
        if not versions:
            del self._subjects[subject]
        context = self._contexts[context_of(subject)]
        places = context.places[stored.schema_id]
        places.remove(stored)
        if not places:
            del context.places[stored.schema_id]
            context.ids.pop((stored.guid, stored.schema.kind), None)
            context.ids_by_guid.pop(stored.guid, None)
        if not stored.deleted:
            self._refer(stored, -1)

    def _soft_delete(self, subject: str, last: int) -> None:
        for stored in self.versions(subject):
            if stored.version <= last:
                self._put(replace(stored, deleted=True))

    def _clear(self, place: str | None) -> None:
        for subject in self.covered(place):
            for stored in self.versions(subject, deleted=True):
                if stored.deleted:
                    self._remove(subject, stored.version)

    def _refer(self, stored: StoredSchema, change: int) -> None:
        for reference in stored.schema.references:
            named = in_context_of(stored.subject, reference.subject)
            place = SubjectVersion(named, reference.version)
            counts = self._referrers.setdefault(place, {})
            counts[stored.schema_id] = counts.get(stored.schema_id, 0) + change
            if counts[stored.schema_id] == 0:
                del counts[stored.schema_id]
            if not counts:
                del self._referrers[place]


def _set(settings: dict[str | None, T], place: str | None, value: T | None) -> None:
    if value is None:
        settings.pop(place, None)
    else:
        settings[place] = value
