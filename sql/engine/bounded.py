"""Bounded runs: queries process the existing records of their topics, one after the other.

Queries run in the order of their creation, so that each one reads the complete results of earlier
ones. A query is done when its group has read its topics to the end, including its internal topics;
when all are done in one run, nothing is left.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.client.opening import Target, admin, consumer
from sql.engine.spark_progress import SparkProgress
from sql.engine.spark_runtime import SparkRuntime
from sql.errors import SqlError

WAIT_MS = 200
COMMIT_LIMIT_MS = 10_000

# Called with the id of a query, its progress, and finally whether it has read all of its topics.
OnProgress = Callable[[str, SparkProgress | None, bool], None]
# Waits for milliseconds; True if the run is to be given up.
Wait = Callable[[int], bool]


def run_bounded(
    queries: Mapping[str, SparkRuntime], target: Target, *, on_progress: OnProgress, wait: Wait
) -> bool:
    """Run all queries until nothing is left; False if `wait` gave up."""
    runs = [
        _BoundedRun(query_id, runtime, target, on_progress, wait)
        for query_id, runtime in queries.items()
    ]
    while True:
        moved = False
        for run in runs:
            found = run.run()
            if found is None:
                return False
            moved = moved or found
        if not moved:
            return True


@dataclass(frozen=True, slots=True)
class _BoundedRun:
    """Runs of one query, repeated until its topics are read."""

    query_id: str
    runtime: SparkRuntime
    target: Target
    on_progress: OnProgress
    wait: Wait

    def run(self) -> bool | None:
        """Process until nothing is left; whether there was something, None if `wait` gave up."""
        moved = False
        left = self._left()
        while left != 0:
            if not _run(self.query_id, self.runtime, self.on_progress, self.wait):
                return None
            before, left = left, self._left_after(left)
            if left is None:
                break  # there was nothing to read, so no offsets were committed
            if left == before:
                raise SqlError(
                    f"query {self.query_id} makes no progress: {left} offsets are left to read",
                    hint="check whether another process writes to its topics or uses its group",
                )
            moved = True
        return moved

    def _left(self) -> int | None:
        return records_left(self.target, self.runtime.application_id)

    def _left_after(self, before: int | None) -> int | None:
        """The records left after a run; Spark's own connector commits offsets a bit later."""
        for _ in range(COMMIT_LIMIT_MS // WAIT_MS):
            left = self._left()
            if left != before or self.wait(WAIT_MS):
                break
        return left


def _run(query_id: str, runtime: SparkRuntime, on_progress: OnProgress, wait: Wait) -> bool:
    """Process the existing records; False if `wait` gave up."""
    try:
        runtime.begin_bounded()
        while not runtime.is_bounded_done():
            on_progress(query_id, runtime.progress, False)
            if wait(WAIT_MS):
                runtime.stop()
                return False
    except SqlError as error:
        message = f"query {query_id} failed on Spark: {error.message}"
        raise SqlError(message, hint=error.hint) from error
    on_progress(query_id, runtime.progress, True)
    return True


def records_left(target: Target, group: str) -> int | None:
    """The lag of a group in offsets; None if it has read nothing."""
    with admin(target) as administration:
        read = administration.list_group_offsets(group).values
    if not read:
        return None
    with consumer(target, isolation_level="read_committed") as reader:
        ends = reader.end_offsets(list(read))
    return sum(max(0, ends[place] - at.offset) for place, at in read.items())
