"""ApplicationStateChecker: compares stores with changelogs after the application has stopped.

Each store on each disk, also of tasks that moved away, must have the rows of its changelog up to
the offset that is stored with it. The changelogs up to their ends must equal the output.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from millstream.simulation.actors.actor import Actor
from millstream.simulation.actors.producers import PARTITIONS, PLAIN
from millstream.simulation.actors.streams_apps import (
    APPLICATION_ID,
    COUNTS,
    STATE,
    WINDOW_COUNTS,
    topology,
    window_key,
)
from millstream.simulation.application_outputs import read_outputs
from millstream.simulation.observations import StoredRecord, Violation
from millstream.simulation.reading import read_partitions
from millstream.simulation.stores import ModelDatabases
from streams import Windowed
from streams.config import StreamsConfig
from streams.runtime.partitions import TaskId, lay_out
from streams.runtime.runner_tasks import open_state
from streams.state.directory import TASK
from streams.state.task_state import TaskState

INVARIANT = "stores equal their changelogs"
Records = Sequence[StoredRecord]


class ApplicationStateChecker(Actor):
    """Runs in its own process when the instances have stopped."""

    has_finished = False

    def run(self) -> None:
        """Read all changelogs, and compare the stores."""
        self._config = StreamsConfig(application_id=APPLICATION_ID)
        self._layout = lay_out(topology(), APPLICATION_ID, {PLAIN: PARTITIONS})
        tasks = self._layout.stateful_tasks()
        partitions = [tp for task in tasks for tp in self._layout.changelogs(task).values()]
        self._changelogs = read_partitions(self, sorted(partitions), isolation="read_committed")
        try:
            for name, actor in self.platform.actors.items():
                if name.startswith("application"):
                    self._check_disk(actor)
            self._check_ends(tasks)
        except Violation as violation:
            self.platform.report(violation)
        self.has_finished = True

    def _check_disk(self, actor: Actor) -> None:
        assert self.process is not None
        files = self.platform.disk_of(actor).files(self.process)
        folder = STATE / APPLICATION_ID
        try:
            names = files.list_folder(str(folder))
        except FileNotFoundError:
            return
        for name in sorted(filter(TASK.fullmatch, names)):
            task = TaskId.parse(name)
            if not self._layout.changelogs(task):
                continue
            path = folder / name
            state = open_state(self._layout, self._config, task, path, ModelDatabases(files))
            for store, tp in self._layout.changelogs(task).items():
                position = state.position(store) or 0
                self.note("checks", store, "of task", task, "of", actor.name, "at", position)
                self._check_store(actor.name, task, store, state, self._changelogs[tp], position)
            state.close()

    def _check_store(
        self,
        instance: str,
        task: TaskId,
        store: str,
        state: TaskState,
        records: Records,
        position: int,
    ) -> None:
        entries = _entries(state, store)
        expected = self._replayed(task, store, (r for r in records if r.offset < position))
        if entries == expected:
            return
        # Compaction removes replaced records: keys with later records cannot be compared.
        later = self._replayed(task, store, (r for r in records if r.offset >= position))
        replaced = {key for key, _ in later}
        for kind, different in (("more", entries - expected), ("less", expected - entries)):
            for key, value in different:
                if key not in replaced:
                    raise Violation(
                        INVARIANT,
                        f'store "{store}" of task {task} of {instance} at {position} has {kind} '
                        f"than its changelog: {key} {value}",
                    )

    def _replayed(
        self, task: TaskId, store: str, records: Iterable[StoredRecord]
    ) -> Counter[tuple[Any, Any]]:
        """The entries of a new store after a restore."""
        state = TaskState(
            [topology().stores[store]],
            directory=None,
            default_key_serde=self._config.default_key_serde,
            default_value_serde=self._config.default_value_serde,
        )
        rows = [(each.key, each.value, each.timestamp_ms) for each in records]
        state.restore(store, rows, 0)
        return _entries(state, store)

    def _check_ends(self, tasks: Iterable[TaskId]) -> None:
        """Check that changelogs and outputs are equal: both were written in one transaction."""
        outputs = read_outputs(self).counts
        for store in (COUNTS, WINDOW_COUNTS):
            entries: dict[str, int] = {}
            for task in tasks:
                tp = self._layout.changelogs(task)[store]
                for key, value in self._replayed(task, store, self._changelogs[tp]):
                    entries[_output_key(key)] = value[0]
            if entries != outputs[store]:
                wrong = {*entries.items()} ^ {*outputs[store].items()}
                raise Violation(INVARIANT, f"the changelog of {store} is not its output: {wrong}")


# Any: keys and values are those of the store's serdes; windowed stores have windowed keys.
def _entries(state: TaskState, store: str) -> Counter[tuple[Any, Any]]:
    return Counter(state.view(store).all())


def _output_key(key: object) -> str:
    """The key under which the count of a key is emitted."""
    return window_key(key.key, key.start_ms) if isinstance(key, Windowed) else str(key)
