"""ColumnStream: the endless stream of rows that a seed stands for, read from any place in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from connect.connectors.datagen.columns import Run
from connect.connectors.datagen.random_avro import RecordGenerator

# Rows are made in runs of this many, each from a chance of its own: whoever starts in the middle of
# the stream makes one run, not all that came before. The number is part of what a seed stands for.
RUN_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class Place:
    """One of several tasks; each makes a stream of its own, and numbers rows apart from others."""

    task: int
    tasks: int


@dataclass(frozen=True, slots=True)
class Lateness:
    """Which share of rows is late, and by how much at most."""

    share: float = 0.0
    max_ms: int = 0


class ColumnStream:
    """Rows by their place in the stream, as columns; the same seed and place give the same row."""

    def __init__(
        self, generator: RecordGenerator, seed: int, place: Place, lateness: Lateness
    ) -> None:
        """Nothing is made yet."""
        self._generator = generator
        self._seed = seed
        self._place = place
        self._lateness = lateness
        self._number = -1
        self._columns: list[Sequence[object]] = []
        self._late_ms: Sequence[int] = []

    def columns(self, first: int, count: int) -> tuple[list[Sequence[object]], Sequence[int]]:
        """Columns of rows from `first` on, and by how much each is late; to the end of a run."""
        number, start = divmod(first, RUN_ROWS)
        if number != self._number:
            self._make_run(number)
        end = min(start + count, RUN_ROWS)
        return [column[start:end] for column in self._columns], self._late_ms[start:end]

    def _make_run(self, number: int) -> None:
        random = Random(f"{self._seed} {self._place.task} {number}")
        first = number * RUN_ROWS
        # Tasks take turns in numbering, so that iterated fields of two tasks never meet.
        step = self._place.tasks
        start = first * step + self._place.task
        run = Run(random, range(start, start + RUN_ROWS * step, step))
        self._columns = [made.column(run) for made in self._generator.fields]
        self._late_ms = self._lates(Random(f"{self._seed} {self._place.task} {number} late"))
        self._number = number

    def _lates(self, random: Random) -> list[int]:
        share, max_ms = self._lateness.share, self._lateness.max_ms
        if share <= 0 or max_ms <= 0:
            return [0] * RUN_ROWS
        return [
            random.randint(1, max_ms) if random.random() < share else 0 for _ in range(RUN_ROWS)
        ]
