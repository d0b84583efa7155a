"""DatagenTask: generates one stream of records at its pace.

Its offsets are {"current.iteration": number of the next record, "random.seed": seed}: after a
restart, the task continues with the next record of the same stream.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

from broker.clock import Clock, SystemClock
from connect.api import SourceTask
from connect.connectors.datagen.column_stream import ColumnStream, Lateness, TaskNumber
from connect.connectors.datagen.definition import DEFINITION
from connect.connectors.datagen.plan import (
    RANDOM_SEED,
    read_event_time,
    read_pace,
    read_plan,
    read_seed,
)
from connect.data import Struct
from connect.records import SourceRecord
from connect.stop_signal import StopSignal

TASK_ID = "task.id"
TASK_COUNT = "task.count"
CURRENT_ITERATION = "current.iteration"
IDLE_MS = 500


class DatagenTask(SourceTask):
    """Generates one stream of records at its pace."""

    def __init__(self, clock: Clock | None = None) -> None:
        """The clock is used for waits and timestamps."""
        self._clock = clock or SystemClock()
        self._stop = StopSignal(self._clock)

    def start(self, config: Mapping[str, str]) -> None:
        """Continues after the last record whose offset is stored."""
        settings = DEFINITION.parse(config)
        task = TaskNumber(int(config.get(TASK_ID, 0)), int(config.get(TASK_COUNT, 1)))
        self._partition = {TASK_ID: task.task}
        stored = self.context.offset_reader.offset(self._partition) or {}
        seen = stored.get(CURRENT_ITERATION)
        self._next = seen if isinstance(seen, int) else 0
        self._seed = read_seed(settings, stored)
        self._plan = read_plan(settings)
        lateness = Lateness(settings.number("late.share"), settings.integer("late.max.ms"))
        self._stream = ColumnStream(self._plan.generator, self._seed, task, lateness)
        self._topic = settings.text("kafka.topic")
        self._iterations = settings.integer("iterations")
        self._event_time = read_event_time(settings, task.tasks)
        self._pace = read_pace(settings, task, self._clock.monotonic_ms())

    def poll(self) -> Sequence[SourceRecord] | None:
        """The records that are due, or none after a wait."""
        left = self._iterations - self._next if self._iterations > 0 else None
        if left is not None and left <= 0:
            self._stop.wait(IDLE_MS)
            return None
        now_ms = self._clock.monotonic_ms()
        due = self._pace.due(now_ms)
        if due == 0:
            self._stop.wait(self._pace.wait_ms(now_ms))
            return None
        records = self._make(due if left is None else min(due, left))
        self._pace.sent(len(records))
        return records

    def stop(self) -> None:
        """Ends a wait of `poll`."""
        self._stop.set()

    def _make(self, wanted: int) -> list[SourceRecord]:
        first, partition, topic, seed = self._next, self._partition, self._topic, self._seed
        schema, key_schema = self._plan.generator.schema, self._plan.key_schema
        columns, late_ms = self._stream.columns(first, wanted)
        count = len(late_ms)
        numbers = range(first, first + count)
        timestamps = self._timestamps(numbers, late_ms)
        for field in self._plan.generator.time_fields:
            columns[field.position] = list(map(field.of_milliseconds, timestamps))
        key_position = self._plan.key_position
        no_keys = repeat(None, count)
        keys: Iterable[object] = no_keys if key_position is None else columns[key_position]
        self._next = numbers.stop
        return SourceRecord.of_columns(
            repeat(partition, count),
            [{CURRENT_ITERATION: number + 1, RANDOM_SEED: seed} for number in numbers],
            repeat(topic, count),
            repeat(None, count),  # any partition
            repeat(key_schema, count),
            keys,
            repeat(schema, count),
            map(Struct, repeat(schema), map(list, zip(*columns, strict=True))),
            timestamps,
            repeat((), count),
        )

    def _timestamps(self, numbers: range, late_ms: Sequence[int]) -> list[int]:
        event_time = self._event_time
        if event_time is None:
            now_ms = self._clock.now_ms()
            return [now_ms - late for late in late_ms]
        return [event_time.at(number) - late for number, late in zip(numbers, late_ms, strict=True)]
