"""Mutations of streams applications: each breaks what exactly-once, or a restore, is made of."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unittest.mock import patch

from broker.client.api import GroupMetadata
from streams.runtime.commit import Commit
from streams.runtime.owned_task import OwnedTask, Phase
from streams.runtime.restore_loop import Restorer
from streams.state.task_state import TaskState
from tests.millstream.simulation.mutation import mutation


@mutation(
    "streams: a store opens without the rest of its changelog", needs="application", found_in=3
)
def skipped_restore() -> Iterator[None]:
    real = Restorer.add

    def add(self: Restorer, owned: OwnedTask, limits: Mapping[Any, int]) -> bool:
        if owned.phase is not Phase.RESTORING:
            return real(self, owned, limits)
        owned.phase = Phase.RESTORED
        return True

    with patch.object(Restorer, "add", add):
        yield


@mutation(
    "streams: offsets are committed before the results are flushed", needs="application", found_in=5
)
def early_offsets() -> Iterator[None]:
    real = Commit.run

    def run(self: Any, tasks: Sequence[OwnedTask]) -> bool:
        self._consumer.commit(
            {tp: each for owned in tasks for tp, each in owned.running().offsets().items()}
        )
        return real(self, tasks)

    def commit_offsets(self: Any, offsets: Any) -> bool:
        self._production.commit({}, self._consumer.group_metadata(), self._fault)
        return True

    with (
        patch.object(Commit, "run", run),
        patch.object(Commit, "_commit_offsets", commit_offsets),
    ):
        yield


@mutation(
    "streams: the offset stored with a store is one record too new", needs="application", found_in=3
)
def too_new_positions() -> Iterator[None]:
    real = TaskState.commit

    def commit(self: TaskState, positions: Mapping[str, int]) -> None:
        # The offset after the last record is the marker's: the next record follows it.
        real(self, {store: position + 2 for store, position in positions.items()})

    with patch.object(TaskState, "commit", commit):
        yield


@mutation(
    "streams: a zombie commits offsets without its generation",
    needs=("application", "freeze"),
    found_in=10,
)
def unfenced_zombie() -> Iterator[None]:
    def commit_offsets(self: Any, offsets: Any) -> bool:
        group = GroupMetadata(self._consumer.group_metadata().group_id)
        self._production.commit(offsets, group, self._fault)
        return True

    with patch.object(Commit, "_commit_offsets", commit_offsets):
        yield


@mutation("streams: an abort does not roll back the stores", needs="application", found_in=5)
def no_rollback() -> Iterator[None]:
    with patch.object(TaskState, "discard", lambda self: None):
        yield


@mutation(
    "streams: stores are written before the transaction is committed",
    needs="application",
    found_in=4,
)
def early_stores() -> Iterator[None]:
    real = TaskState.changes

    def changes(self: TaskState) -> Any:
        found = real(self)
        self.commit({})
        return found

    with patch.object(TaskState, "changes", changes):
        yield
