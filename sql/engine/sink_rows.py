"""SinkRows: a table as its topic has it, for pull queries on tables that Spark makes.

A query first reads the topic to its current end, into a store on disk. The position is stored with
the rows, so the next query, or the next process, continues from there.
"""

import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

from broker import concurrency
from broker.client.api import ConsumerRecord
from broker.client.opening import Target, consumer
from broker.client.record_consumer import Consumer
from broker.clock import Clock
from broker.model import TopicPartition
from broker.serde.registry.api import SchemaRegistry
from sql.backends.native.rows import key_serde
from sql.engine.topic_rows import row_reader
from sql.plan import Scan
from sql.rows.row_format import Row
from streams.errors import StoreNotReady
from streams.state.backing import Backing, Write
from streams.state.rocks import RocksDatabase

STORE = "rows"
PLACES = b"places"  # the fact with the next offset of each partition
RECORD = struct.Struct(">qiq")  # before a value: timestamp, partition, offset
POLL_MS = 50
POLL_RECORDS = 5_000


class SinkRows:
    """The rows of one table, of all partitions. Any thread may call it."""

    def __init__(
        self,
        scan: Scan,
        folder: Path,
        *,
        target: Target,
        registry: SchemaRegistry | None,
        clock: Clock,
    ) -> None:
        """Nothing is opened before the first `catch_up`; `scan` reads the table's topic."""
        self._scan = scan
        self._folder = folder
        self._target = target
        self._clock = clock
        self._read = row_reader(scan, registry)
        self._key = key_serde(scan.key_format, scan.shape.key, registry, scan.shape.window)
        self._lock = concurrency.Lock()
        self._database: RocksDatabase | None = None
        self._consumer: Consumer | None = None

    # --- following the topic ------------------------------------------------------------------

    def catch_up(self, timeout_ms: int) -> None:
        """Read to where the topic ends now; StoreNotReady when that takes too long."""
        with self._lock:
            deadline_ms = self._clock.monotonic_ms() + timeout_ms
            reader = self._opened()
            places = list(reader.assignment())
            ends = reader.end_offsets(places)
            while left := sum(max(0, ends[each] - reader.position(each)) for each in places):
                if self._clock.monotonic_ms() > deadline_ms:
                    raise StoreNotReady(
                        f'the rows of topic "{self._scan.topic}" are still being read: {left} '
                        "offsets are left",
                        hint="run the query again: reading continues from there",
                    )
                self._keep(reader, places, reader.poll(POLL_MS, max_records=POLL_RECORDS))

    def _opened(self) -> Consumer:
        if self._consumer is None:
            database = RocksDatabase(self._folder, [STORE])
            reader = consumer(
                self._target,
                client_id="millstream-sql-table",
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            topic = self._scan.topic
            places = [TopicPartition(topic, each) for each in reader.partitions_for(topic)]
            reader.assign(places)
            known = dict(json.loads(database.metadata().get(PLACES, b"[]")))
            for place in places:
                if place.partition in known:
                    reader.seek(place, known[place.partition])
                else:
                    reader.seek_to_beginning([place])
            self._database, self._consumer = database, reader
        return self._consumer

    def _keep(
        self,
        reader: Consumer,
        places: list[TopicPartition],
        records: list[ConsumerRecord],
    ) -> None:
        """Rows and how far they were read, in one step."""
        rows: dict[bytes, bytes | None] = {}
        for each in records:
            if each.key is not None:
                head = RECORD.pack(each.timestamp_ms, each.partition, each.offset)
                rows[each.key] = None if each.value is None else head + each.value
        at = [(each.partition, reader.position(each)) for each in places]
        assert self._database is not None, "it is opened with the consumer"
        data = json.dumps(at).encode()
        self._database.write(Write(rows={STORE: rows}, metadata={PLACES: data}))

    def close(self) -> None:
        """Close the consumer and the files; the rows stay."""
        with self._lock:
            reader, self._consumer = self._consumer, None
            database, self._database = self._database, None
        if reader is not None:
            reader.close()
        if database is not None:
            database.close()

    def discard(self) -> None:
        """Close, and delete the rows."""
        self.close()
        if self._folder.is_dir():
            shutil.rmtree(self._folder)

    # --- what Materialized asks of a store ----------------------------------------------------

    def get(self, key: Row) -> tuple[Row, int] | None:
        """The row of a key, and its time; of tables without windows."""
        data = self._key.serialize(self._scan.topic, key)
        found = None if data is None else self._backing.get(data)
        return None if data is None or found is None else self._row(data, found)

    def all(self) -> Iterator[tuple[object, tuple[Row, int]]]:
        """All keys, rows and times."""
        for data, found in self._backing.scan(None, None):
            row = self._row(data, found)
            if row is not None:
                yield self._key.deserialize(self._scan.topic, data), row

    @property
    def _backing(self) -> Backing:
        database = self._database
        if database is None:
            raise StoreNotReady(f'the rows of topic "{self._scan.topic}" have not been read yet')
        return database.backing(STORE)

    def _row(self, key: bytes, found: bytes) -> tuple[Row, int] | None:
        timestamp_ms, partition, offset = RECORD.unpack_from(found)
        value = found[RECORD.size :]
        record = ConsumerRecord(self._scan.topic, partition, offset, timestamp_ms, key, value)
        row = self._read(record)
        return None if row is None else (row, timestamp_ms)
