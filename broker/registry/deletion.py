"""Deleting: first softly, so that clients can still read schemas by id, then permanently."""

from dataclasses import replace

from broker.registry import refusals
from broker.registry.records import (
    ConfigRecord,
    DeleteSubjectRecord,
    ModeRecord,
    NoopRecord,
    Record,
    SchemaRecord,
)
from broker.registry.settings import check_writable
from broker.registry.state import RegistryState
from broker.registry.values import StoredSchema


def deleted_subject(
    state: RegistryState, subject: str, *, permanent: bool
) -> tuple[list[int], list[Record]]:
    """The deleted versions, and the records that delete them."""
    if not state.has_versions(subject, deleted=True):
        raise refusals.subject_not_found(subject)
    if not permanent and not state.has_versions(subject):
        raise refusals.subject_soft_deleted(subject)
    check_writable(state, subject)
    going = state.versions(subject, deleted=permanent)
    for stored in going:
        _check_unreferenced(state, stored)
        if permanent and not stored.deleted:
            raise refusals.subject_not_soft_deleted(subject)
    versions = [stored.version for stored in going]
    if not permanent:
        # Up to the last of all versions: compaction removes earlier records of this key, and the
        # versions that they deleted must stay deleted.
        last = state.versions(subject, deleted=True)[-1].version
        return versions, [DeleteSubjectRecord(subject, last), *_unset(state, subject)]
    gone: list[Record] = [SchemaRecord(subject, version, None) for version in versions]
    return versions, [*gone, NoopRecord(state.max_ids())]


def deleted_version(
    state: RegistryState, stored: StoredSchema, *, permanent: bool
) -> tuple[int, list[Record]]:
    """The deleted version, and the records that delete it."""
    subject, version = stored.subject, stored.version
    if stored.deleted and not permanent:
        raise refusals.version_soft_deleted(subject, version)
    check_writable(state, subject)
    _check_unreferenced(state, stored)
    if permanent:
        if not stored.deleted:
            raise refusals.version_not_soft_deleted(subject, version)
        return version, [SchemaRecord(subject, version, None), NoopRecord(state.max_ids())]
    records: list[Record] = [SchemaRecord(subject, version, replace(stored, deleted=True))]
    if len(state.versions(subject)) == 1:
        records += _unset(state, subject)
    return version, records


def _check_unreferenced(state: RegistryState, stored: StoredSchema) -> None:
    if state.referrers(stored.subject, stored.version):
        raise refusals.referenced(stored.subject, stored.version)


def _unset(state: RegistryState, subject: str) -> list[Record]:
    """Delete settings together with the last version that is not deleted."""
    records: list[Record] = []
    if subject in state.modes:
        records.append(ModeRecord(subject, None))
    if subject in state.configs:
        records.append(ConfigRecord(subject, None))
    return records
