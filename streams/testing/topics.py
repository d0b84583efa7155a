"""TestInputTopic and TestOutputTopic: write and read topics of the driver."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from broker.serde import Serde
from streams.errors import StreamsError
from streams.record import Headers, Record
from streams.testing.topic_log import LoggedRecord
from streams.windows import Duration, milliseconds

K = TypeVar("K")
V = TypeVar("V")

Row = tuple[bytes | None, bytes | None, int, Headers, int | None]
Pipe = Callable[[str, Sequence[Row]], None]


class TestInputTopic(Generic[K, V]):
    """Writes records to a topic that the topology reads.

    A record without a timestamp gets the topic's time, which starts at `start_timestamp` and
    advances by `auto_advance` with each record.
    """

    __test__ = False  # not a test class, despite its name

    def __init__(
        self,
        name: str,
        pipe: Pipe,
        serdes: tuple[Serde[K], Serde[V]],
        *,
        start_timestamp: int,
        auto_advance: Duration,
    ) -> None:
        self.name = name
        self._pipe = pipe
        self._key_serde, self._value_serde = serdes
        self._now_ms = start_timestamp
        self._advance_ms = milliseconds(auto_advance, "auto_advance")

    def advance_time(self, duration: Duration) -> None:
        """Advance the topic's time."""
        self._now_ms += milliseconds(duration, "duration")

    def pipe_input(
        self,
        key: K | None = None,
        value: V | None = None,
        timestamp: int | None = None,
        *,
        headers: Headers = (),
        partition: int | None = None,
    ) -> None:
        """Write one record and process it completely."""
        self._pipe(self.name, [self._row(key, value, timestamp, headers, partition)])

    def pipe_value(self, value: V | None, timestamp: int | None = None) -> None:
        """Write one record without a key."""
        self.pipe_input(None, value, timestamp)

    def pipe_record(self, record: Record[K, V], *, partition: int | None = None) -> None:
        """Write a record unchanged."""
        self.pipe_input(
            record.key,
            record.value,
            record.timestamp_ms,
            headers=record.headers,
            partition=partition,
        )

    def pipe_key_value_list(
        self,
        pairs: Iterable[tuple[K | None, V | None]],
        *,
        start_timestamp: int | None = None,
        advance: Duration = 0,
    ) -> None:
        """Write (key, value) pairs one by one, each processed before the next.

        With `start_timestamp` their timestamps start there, `advance` apart.
        """
        for index, (key, value) in enumerate(pairs):
            timestamp = None
            if start_timestamp is not None:
                timestamp = start_timestamp + index * milliseconds(advance, "advance")
            self.pipe_input(key, value, timestamp)

    def pipe_value_list(self, values: Iterable[V | None]) -> None:
        """Write records without keys one by one."""
        for value in values:
            self.pipe_value(value)

    def pipe_batch(self, records: Iterable[tuple[K | None, V | None, int]]) -> None:
        """Write (key, value, timestamp) records, all queued before the first is processed."""
        self._pipe(
            self.name,
            [self._row(key, value, timestamp, (), None) for key, value, timestamp in records],
        )

    def row(
        self,
        key: K | None,
        value: V | None,
        timestamp: int | None = None,
        *,
        headers: Headers = (),
        partition: int | None = None,
    ) -> tuple[str, Row]:
        """A record for `TopologyTestDriver.pipe_batch`, which writes to several topics."""
        return self.name, self._row(key, value, timestamp, headers, partition)

    def _row(
        self,
        key: K | None,
        value: V | None,
        timestamp: int | None,
        headers: Headers,
        partition: int | None,
    ) -> Row:
        if timestamp is None:
            timestamp = self._now_ms
            self._now_ms += self._advance_ms
        raw_key = self._key_serde.serialize(self.name, key)
        raw_value = self._value_serde.serialize(self.name, value)
        return raw_key, raw_value, timestamp, tuple(headers), partition


class TestOutputTopic(Generic[K, V]):
    """Reads records of a topic, each once."""

    __test__ = False

    def __init__(
        self,
        name: str,
        log: Callable[[], Sequence[LoggedRecord]],
        serdes: tuple[Serde[K], Serde[V]],
    ) -> None:
        self.name = name
        self._log = log
        self._key_serde, self._value_serde = serdes
        self._next = 0

    @property
    def queue_size(self) -> int:
        """The number of records that have not been read."""
        return len(self._log()) - self._next

    @property
    def is_empty(self) -> bool:
        """Whether all records were read."""
        return self.queue_size == 0

    def read_record(self) -> Record[K, V]:
        """The next record."""
        return self._decoded(self._read_next())

    def read_value(self) -> V:
        """The value of the next record."""
        return self.read_record().value

    def read_key_value(self) -> tuple[K, V]:
        """Key and value of the next record."""
        record = self.read_record()
        return record.key, record.value

    def read_records_to_list(self) -> list[Record[K, V]]:
        """All remaining records."""
        return [self.read_record() for _ in range(self.queue_size)]

    def read_values_to_list(self) -> list[V]:
        """The values of all remaining records."""
        return [self.read_value() for _ in range(self.queue_size)]

    def read_key_values_to_list(self) -> list[tuple[K, V]]:
        """Keys and values of all remaining records."""
        return [self.read_key_value() for _ in range(self.queue_size)]

    def read_key_values_to_map(self) -> dict[K, V]:
        """The last value of each key in the remaining records."""
        return dict(self.read_key_values_to_list())

    def read_logged(self) -> LoggedRecord:
        """The next record as bytes, with its partition and offset."""
        return self._read_next()

    def _read_next(self) -> LoggedRecord:
        if self.is_empty:
            raise StreamsError(
                f'topic "{self.name}" has no record left to read',
                hint=f"{self._next} records were written and read so far",
            )
        record = self._log()[self._next]
        self._next += 1
        return record

    def _decoded(self, record: LoggedRecord) -> Record[K, V]:
        # A null is None, regardless of the types, as with all serdes.
        key: K = self._key_serde.deserialize(self.name, record.key)  # type: ignore[assignment]
        value: V = self._value_serde.deserialize(self.name, record.value)  # type: ignore[assignment]
        return Record(key, value, max(record.timestamp_ms, 0), record.headers)
