"""ColumnStream: the endless stream of rows of a seed, from any position."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from connect.connectors.datagen.columns import Run
from connect.connectors.datagen.random_avro import RecordGenerator

# Rows are generated in runs of this many, each with its own random seed: a task that starts within
# the stream generates one run, not all rows before it. The results of a seed depend on this number.
RUN_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class TaskNumber:
    """One of several tasks; each generates its own stream, with its own row numbers."""

    task: int
    tasks: int


@dataclass(frozen=True, slots=True)
class Lateness:
    """The fraction of late rows, and their maximum lateness."""

    share: float = 0.0
    max_ms: int = 0


class ColumnStream:
    """Rows by number, as columns; the same seed and number give the same row."""

    def __init__(
        self, generator: RecordGenerator, seed: int, task: TaskNumber, lateness: Lateness
    ) -> None:
        self._generator = generator
        self._seed = seed
        self._task = task
        self._lateness = lateness
        self._number = -1
        self._columns: list[Sequence[object]] = []
        self._late_ms: Sequence[int] = []

    def columns(self, first: int, count: int) -> tuple[list[Sequence[object]], Sequence[int]]:
        """Columns of rows from `first` on, and the lateness of each row; up to the end of a run."""
        number, start = divmod(first, RUN_ROWS)
        if number != self._number:
            self._make_run(number)
        end = min(start + count, RUN_ROWS)
        return [column[start:end] for column in self._columns], self._late_ms[start:end]

    def _make_run(self, number: int) -> None:
        random = Random(f"{self._seed} {self._task.task} {number}")
        first = number * RUN_ROWS
        # The numbers of tasks are interleaved, so that iterated fields of two tasks never collide.
        step = self._task.tasks
        start = first * step + self._task.task
        run = Run(random, range(start, start + RUN_ROWS * step, step))
        self._columns = [made.column(run) for made in self._generator.fields]
        self._late_ms = self._lateness_of_rows(
            Random(f"{self._seed} {self._task.task} {number} late")
        )
        self._number = number

    def _lateness_of_rows(self, random: Random) -> list[int]:
        share, max_ms = self._lateness.share, self._lateness.max_ms
        if share <= 0 or max_ms <= 0:
            return [0] * RUN_ROWS
        return [
            random.randint(1, max_ms) if random.random() < share else 0 for _ in range(RUN_ROWS)
        ]
