"""TaskProcessor: tasks with stores, as Spark's stateful operator, with one group per task.

Tasks of several queries may run in one operator; each has its own rows and its own state. Whenever
a query starts, Spark loads this module in a separate process, only to call `init`: the modules that
run tasks are imported where tasks run.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

TASK = "task"
OUTPUT = (
    "topic string, partition int, timestamp bigint, key binary, value binary, "
    "headers array<struct<name string, value binary>>"
)
SEPARATOR = "/"

# Any, here and below: values from and for Spark have no type hints.


class MapPages:
    """Pages in a MapState; see streams.state.paged.Pages."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def get(self, store: str, number: int) -> bytes | None:
        """A page; None if there is none."""
        found = self._state.getValue((store, number))
        return None if found is None else bytes(found[0])

    def put(self, store: str, number: int, page: bytes) -> None:
        """Store a page."""
        self._state.updateValue((store, number), (page,))

    def remove(self, store: str, number: int) -> None:
        """Remove a page."""
        self._state.removeKey((store, number))


class TaskProcessor(StatefulProcessor):  # type: ignore[misc]
    """Runs the records of a batch through a task; the key of the group is the task's name."""

    def __init__(self, jobs: bytes) -> None:
        """`jobs` are packed, see job.py."""
        self._jobs = jobs

    def init(self, handle: Any) -> None:
        """Called before each batch."""
        self._pages = handle.getMapState("pages", "store string, number int", "page binary")

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,
    ) -> Iterator[Any]:
        """The records that one task writes in a batch."""
        from sql.backends.spark.task_rows import stateful_rows

        yield from stateful_rows(self._jobs, str(key[0]), rows, MapPages(self._pages))

    def close(self) -> None:
        """Do nothing: the task ends with its batch."""
