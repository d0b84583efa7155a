"""StreamsApplication: an exactly-once application with one or more instances.

plain -> repartitioned by group -> counts          store, topic
                                -> window-counts   the same by minute
                                -> joined          pairs of records of a group, close in time
"""

from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from broker.errors import MillstreamError
from millstream.simulation.actors.actor import Actor
from millstream.simulation.actors.producers import PLAIN
from millstream.simulation.observations import TaskCommit, Violation
from millstream.simulation.scenario import SHARED_RUNTIME
from streams import StreamsBuilder, Topology, join_within, tumbling
from streams.app import StreamsApp
from streams.runtime.app_state import ENDED
from streams.runtime.shared_runtime import SharedRuntime

APPLICATION_ID = "counting"
STATE = Path("/state")
COUNTS, WINDOW_COUNTS, JOINED = "counts", "window-counts", "joined"
OUTPUTS = (COUNTS, WINDOW_COUNTS, JOINED)
GROUPS = 5
WINDOW = timedelta(minutes=1)
JOIN_DISTANCE = timedelta(milliseconds=100)  # how far apart joined records may be
GRACE = timedelta(days=2)  # longer than clock jumps: no record is late


def group_of(value: bytes) -> str:
    """The group of a record, by its number."""
    return str(_number(value) % GROUPS)


def is_left(value: bytes) -> bool:
    """Whether a record is on the left side of the join."""
    return _number(value) // GROUPS % 2 == 0


def _number(value: bytes) -> int:
    return int(value.rpartition(b" ")[2])


def window_key(group: str, start_ms: int) -> str:
    """The key of a group's count in one window."""
    return f"{group} {start_ms}"


def pair(left: bytes, right: bytes) -> bytes:
    """Two joined records."""
    return left + b" | " + right


@cache
def topology() -> Topology:
    """The topology of the application; see the diagram above."""
    builder = StreamsBuilder()
    numbers = builder.stream(PLAIN, value=bytes).select_key(lambda _, value: group_of(value))
    numbers = numbers.repartition(partitions=2, name="groups", key=str, value=bytes)
    groups = numbers.group_by_key()
    groups.count(store=COUNTS).to_stream().map_values(str).to(COUNTS, key=str, value=str)
    (
        groups.windowed_by(tumbling(WINDOW, grace=GRACE))
        .count(store=WINDOW_COUNTS)
        .to_stream()
        .map(lambda window, count: (window_key(window.key, window.start_ms), str(count)))
        .to(WINDOW_COUNTS, key=str, value=str)
    )
    left = numbers.filter(lambda _, value: is_left(value))
    right = numbers.filter(lambda _, value: not is_left(value))
    within = join_within(JOIN_DISTANCE, grace=GRACE)
    left.join(right, pair, within=within, store_name="pairs").to(JOINED, key=str, value=bytes)
    return builder.build()


class StreamsApplication(Actor):
    """One instance of the application, on its own machine."""

    def run(self) -> None:
        """Run until stopped; restart after a failure."""
        assert self.machine is not None
        settings: dict[str, Any] = dict(
            self.platform.scenario.application
        )  # Any: see StreamsConfig
        while not self.must_stop:
            shared = None
            if settings.get(SHARED_RUNTIME) == "true":
                shared = SharedRuntime(self.target, clock=self.machine.clock)
            app = self._app = StreamsApp(
                topology(),
                application_id=APPLICATION_ID,
                broker=shared or self.target,
                machine=self.machine,
                processing_guarantee="exactly_once_v2",
                state_dir=STATE,
                statestore_cache_max_bytes=0,  # every count is emitted
                fault=self._at_point_of_commit,
                **settings,
            )
            try:
                app.start()
                while app.state not in ENDED and self.sleep(500, 500):
                    pass
            except (MillstreamError, OSError) as error:
                self.note("cannot start the application:", type(error).__name__, str(error)[:120])
            finally:
                app.close()
                if shared is not None:
                    shared.close()
            self.note("the application has ended as", app.state.value, str(app.error)[:200])
            self.sleep(500, 2_000)

    def _at_point_of_commit(self, point: str) -> None:
        """Store the committed tasks, and the generation of the group.

        The generation is that of the commit's start: a heartbeat may change it before the end.
        """
        for runner in self._app.runners:
            if runner.tasks is None or runner.consumer is None:
                continue
            now_us = self.platform.simulation.scheduler.now_us
            if point == "produced":
                self._began = (runner.consumer.group_metadata().generation_id, now_us)
            elif point == "committed":
                tasks = [str(each.task_id) for each in runner.tasks.running() if each.needs_commit]
                self._committed(tasks, TaskCommit(self.name, *self._began, now_us))

    def _committed(self, tasks: Sequence[str], commit: TaskCommit) -> None:
        self.note("has committed", *tasks, "in generation", commit.generation)
        try:
            for task in tasks:
                self.platform.observations.commit_task(task, commit)
        except Violation as violation:  # it must not be raised in the runner's thread
            self.platform.report(violation)
