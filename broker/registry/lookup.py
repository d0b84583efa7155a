"""Finding schemas: by subject and version, by text, by id; and listing them."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from broker.registry import refusals
from broker.registry.schema_parser import LATEST, Candidate, SchemaParser
from broker.registry.state import RegistryState
from broker.registry.subject_names import (
    ALL_CONTEXTS,
    DEFAULT_CONTEXT,
    SubjectName,
    context_of,
    matches_prefix,
    split_subject,
)
from broker.registry.values import StoredSchema

VERSION_MAX = (1 << 31) - 1

T = TypeVar("T")


def page(found: list[T], offset: int, limit: int) -> list[T]:
    """A page of a list; a limit below 1 means no limit."""
    start = max(0, offset)
    return found[start : start + limit] if limit > 0 else found[start:]


def spellings(state: RegistryState, subject: str) -> Iterator[str]:
    """A subject, then subjects with the same name in other contexts, unless it names a context."""
    yield subject
    named = split_subject(subject)
    if named.context == DEFAULT_CONTEXT:
        for context in state.contexts():
            yield str(SubjectName(context, named.name))


def stored_version(
    state: RegistryState, subject: str, version: int, *, deleted: bool
) -> StoredSchema:
    """One version of a subject, in its own or any context; 40401, 40402, 42202."""
    if version != LATEST and not 1 <= version <= VERSION_MAX:
        raise refusals.invalid_version(version)
    for name in spellings(state, subject):
        found = state.latest(name) if version == LATEST else state.version(name, version)
        if found is not None and (deleted or not found.deleted):
            return found
    if not state.has_versions(subject, deleted=deleted):
        raise refusals.subject_not_found(subject)
    raise refusals.version_not_found(version)


def same_schema(
    state: RegistryState, parser: SchemaParser, candidate: Candidate, *, deleted: bool
) -> StoredSchema | None:
    """The latest version of the candidate's subject that has its schema."""
    versions = state.versions(candidate.subject, deleted=deleted)[::-1]
    for stored in versions:
        if candidate.is_at(stored):
            return stored
    return next((each for each in versions if parser.is_written_out(candidate, each)), None)


def place_by_id(state: RegistryState, schema_id: int, subject: str | None) -> StoredSchema:
    """One version with an id: of the subject, else of the same name elsewhere; 40403 if none."""
    name = split_subject(subject or "")
    if not name.name:
        found = _best(state.places(name.context, schema_id))
    else:
        candidates = (
            _best(
                each
                for each in state.places(context_of(spelled), schema_id)
                if each.subject == spelled
            )
            for spelled in spellings(state, subject or "")
        )
        found = next((each for each in candidates if each is not None), None)
        if found is None and name.context == DEFAULT_CONTEXT:
            found = _best(state.places(DEFAULT_CONTEXT, schema_id))
    if found is None:
        raise refusals.schema_not_found(schema_id)
    return found


def place_by_guid(state: RegistryState, guid: str) -> StoredSchema:
    """One version with a GUID, preferably in the default context; 40403 if there is none."""
    for context in (DEFAULT_CONTEXT, *state.contexts()):
        schema_id = state.id_by_guid(context, guid.lower())
        if schema_id is not None:
            found = _best(state.places(context, schema_id))
            if found is not None:
                return found
    raise refusals.schema_not_found(guid)


def places_of(
    state: RegistryState, schema_id: int, subject: str | None, *, deleted: bool
) -> list[StoredSchema]:
    """All versions with an id in the context where it is found, by subject and version."""
    found = place_by_id(state, schema_id, subject)
    places = state.places(context_of(found.subject), schema_id)
    kept = [stored for stored in places if deleted or not stored.deleted]
    return sorted(kept, key=lambda stored: (stored.subject, stored.version))


def subjects_with(
    state: RegistryState, prefix: str, *, deleted: bool, deleted_only: bool = False
) -> list[str]:
    """Subjects with a prefix, in order; a subject is deleted if all its versions are."""
    found = state.subjects()
    if prefix != ALL_CONTEXTS:
        found = [subject for subject in found if matches_prefix(subject, prefix)]
    if deleted_only:
        found = [subject for subject in found if not state.has_versions(subject)]
    elif not deleted:
        found = [subject for subject in found if state.has_versions(subject)]
    return sorted(found)


def _best(places: Iterable[StoredSchema]) -> StoredSchema | None:
    """The first of several versions, preferably one that is not deleted."""
    return min(places, key=lambda each: (each.deleted, each.subject, each.version), default=None)
