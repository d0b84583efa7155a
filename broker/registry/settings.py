"""Configurations and modes: the effective ones of a subject, and records that change them.

A subject's own setting takes precedence, then that of its context, then that of ":.__GLOBAL:", then
the default. Settings without a subject are those of the default context.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from broker.errors import RegistryError
from broker.registry import refusals
from broker.registry.records import (
    ClearSubjectRecord,
    ConfigRecord,
    ModeRecord,
    NoopRecord,
    Record,
    SchemaRecord,
)
from broker.registry.state import RegistryState
from broker.registry.subject_names import GLOBAL_SETTINGS, settings_key
from broker.registry.values import Mode, SubjectConfig
from broker.serde.schema.compatibility.levels import CompatibilityLevel

READ_ONLY = frozenset({Mode.READONLY, Mode.READONLY_OVERRIDE})
IMPORTING = frozenset({Mode.IMPORT, Mode.FORWARD})


def config_for(
    state: RegistryState, subject: str | None, default: CompatibilityLevel
) -> SubjectConfig:
    """The effective configuration of a subject; it always has a level."""
    found = [state.configs[place] for place in _scope(subject) if place in state.configs]
    level = next((config.level for config in found if config.level is not None), default)
    return replace(found[0], level=level) if found else SubjectConfig(level)


def mode_for(state: RegistryState, subject: str | None) -> Mode:
    """The effective mode of a subject; a global READONLY_OVERRIDE overrides its own."""
    if state.modes.get(None) is Mode.READONLY_OVERRIDE:
        return Mode.READONLY_OVERRIDE
    return next(
        (state.modes[place] for place in _scope(subject) if place in state.modes), Mode.READWRITE
    )


def _scope(subject: str | None) -> Iterator[str | None]:
    if subject is None:
        yield None
    else:
        yield subject
        yield settings_key(subject)
    yield GLOBAL_SETTINGS


def check_writable(state: RegistryState, subject: str | None) -> None:
    """42205 in a read-only mode."""
    if mode_for(state, subject) in READ_ONLY:
        raise refusals.wrong_mode(subject, "in read-only mode")


def changed_config(
    state: RegistryState, subject: str | None, change: SubjectConfig
) -> tuple[SubjectConfig, list[Record]]:
    """A configuration with some fields changed; null removes a field."""
    check_writable(state, subject)
    before = state.configs.get(subject, SubjectConfig())
    fields: Mapping[str, object] = {
        name: value
        for name, value in {**before.fields, **change.fields}.items()
        if value is not None
    }
    level = before.level if change.level is None else change.level
    config = SubjectConfig(level, fields)
    return config, [ConfigRecord(subject, config)]


def removed_config(state: RegistryState, subject: str) -> tuple[SubjectConfig, list[Record]]:
    """Remove a configuration; 40401 if there is none."""
    check_writable(state, subject)
    if subject not in state.configs:
        raise refusals.subject_not_found(subject)
    return state.configs[subject], [ConfigRecord(subject, None)]


def changed_mode(
    state: RegistryState, subject: str | None, mode: Mode, *, force: bool
) -> tuple[Mode, list[Record]]:
    """Change the mode; IMPORT needs a scope without versions, and clears soft deleted ones."""
    records: list[Record] = []
    if mode is Mode.IMPORT and mode_for(state, subject) is not Mode.IMPORT and not force:
        records = _cleared(state, subject)
    return mode, [*records, ModeRecord(subject, mode)]


def _cleared(state: RegistryState, place: str | None) -> list[Record]:
    subjects = state.covered(place)
    if any(state.has_versions(subject) for subject in subjects):
        raise RegistryError(42205, "Cannot import since found existing subjects")
    gone: list[Record] = []
    for subject in subjects:
        for stored in state.versions(subject, deleted=True):
            if state.referrers(subject, stored.version):
                raise refusals.referenced(subject, stored.version)
            gone.append(SchemaRecord(subject, stored.version, None))
    if gone:
        gone.append(NoopRecord(state.max_ids()))
    return [*gone, ClearSubjectRecord(place)]


def removed_mode(state: RegistryState, subject: str) -> tuple[Mode, list[Record]]:
    """Remove a mode; 40401 if there is none."""
    if subject not in state.modes:
        raise refusals.subject_not_found(subject)
    return state.modes[subject], [ModeRecord(subject, None)]
