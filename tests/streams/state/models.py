"""Plain Python models of stores, and a state that commits, discards, reopens and restores."""

from pathlib import Path
from typing import Any

from broker.serde import BytesSerde
from streams.state.store import LATEST, REFUSED, StoreSpec, VersionedRecord
from streams.state.task_state import TaskState

NAME = "store"


class ModelledState:
    """A TaskState of one store, with its changelog."""

    def __init__(self, spec: StoreSpec, directory: Path | None) -> None:
        self.spec = spec
        self.directory = directory
        self.changelog: list[tuple[bytes, bytes | None, int]] = []
        self.state = self._opened()

    def _opened(self) -> TaskState:
        return TaskState(
            [self.spec],
            directory=self.directory,
            default_key_serde=BytesSerde(),
            default_value_serde=BytesSerde(),
            buffer_bytes=2000,  # so little that rows leave the cache
        )

    @property
    def store(self) -> Any:
        return self.state.store(NAME)

    @property
    def view(self) -> Any:
        return self.state.view(NAME)

    def commit(self) -> None:
        for name, rows in self.state.changes():
            assert name == NAME
            self.changelog.extend((key, value, time) for key, value, _, time in rows)
        self.state.commit({NAME: len(self.changelog)})

    def discard(self) -> None:
        self.state.discard()

    def reopen(self) -> None:
        """End without a commit, as a kill does, and restore what is missing."""
        self.state.close()
        self.state = self._opened()
        position = self.state.position(NAME) or 0
        self.state.restore(NAME, self.changelog[position:], len(self.changelog))

    def restore_from_nothing(self) -> None:
        """Another instance has only the changelog."""
        self.state.close()
        if self.directory is not None:
            self.directory = self.directory / "moved"
        self.state = self._opened()
        middle = len(self.changelog) // 2
        self.state.restore(NAME, self.changelog[:middle], middle)
        self.state.restore(NAME, self.changelog[middle:], len(self.changelog))


class SegmentedModel:
    """Rows by time: refused when their segment is gone, hidden when they are expired."""

    def __init__(self, retention_ms: int) -> None:
        self.retention_ms = retention_ms
        self.interval_ms = max(retention_ms // 2, 60_000)
        self.observed_ms = -1
        self.rows: dict[tuple[Any, ...], bytes] = {}

    def copy(self) -> "SegmentedModel":
        found = SegmentedModel(self.retention_ms)
        found.observed_ms, found.rows = self.observed_ms, dict(self.rows)
        return found

    def put(self, row: tuple[Any, ...], time_ms: int, value: bytes | None) -> bool:
        self.observed_ms = max(self.observed_ms, time_ms)
        oldest = (self.observed_ms - self.retention_ms) // self.interval_ms
        if time_ms // self.interval_ms < oldest:
            return False
        if value is None:
            self.rows.pop(row, None)
        else:
            self.rows[row] = value
        return True

    def is_shown(self, time_ms: int) -> bool:
        return time_ms > self.observed_ms - self.retention_ms


class VersionedModel:
    """Every version that was taken, by key and time."""

    def __init__(self, history_ms: int) -> None:
        self.history_ms = history_ms
        self.observed_ms = -1
        self.versions: dict[bytes, dict[int, bytes | None]] = {}

    def copy(self) -> "VersionedModel":
        found = VersionedModel(self.history_ms)
        found.observed_ms = self.observed_ms
        found.versions = {key: dict(versions) for key, versions in self.versions.items()}
        return found

    def put(self, key: bytes, value: bytes | None, time_ms: int) -> int | None:
        if time_ms < self.observed_ms - self.history_ms:
            return None
        self.observed_ms = max(self.observed_ms, time_ms)
        self.versions.setdefault(key, {})[time_ms] = value
        return self._valid_to(key, time_ms)

    def _valid_to(self, key: bytes, time_ms: int) -> int:
        return min((time for time in self.versions[key] if time > time_ms), default=LATEST)

    def get_as_of(self, key: bytes, time_ms: int) -> VersionedRecord | None:
        start = max((time for time in self.versions.get(key, {}) if time <= time_ms), default=None)
        if start is None:
            return None
        record = self._record(key, start)
        if time_ms < self.observed_ms - self.history_ms and (
            record is None or record.valid_to_ms != LATEST
        ):
            return None
        return record

    def _record(self, key: bytes, start_ms: int) -> VersionedRecord | None:
        value = self.versions[key][start_ms]
        if value is None:
            return None
        return VersionedRecord(value, start_ms, self._valid_to(key, start_ms))

    def shown(self, key: bytes, from_ms: int, to_ms: int) -> list[VersionedRecord]:
        found = []
        for start in sorted(self.versions.get(key, {})):
            record = self._record(key, start)
            if record is None or start > to_ms:
                continue
            if record.valid_to_ms == LATEST or (
                record.valid_to_ms > max(from_ms, self.observed_ms - self.history_ms)
                and to_ms >= self.observed_ms - self.history_ms
            ):
                found.append(record)
        return found


__all__ = ["LATEST", "NAME", "REFUSED", "ModelledState", "SegmentedModel", "VersionedModel"]
