"""RecordSource: the data source and sink "millstream" for Spark, over any Kafka-protocol cluster.

>>> spark.dataSource.register(RecordSource)
>>> orders = (
...     spark.readStream.format("millstream")
...     .option("bootstrap_servers", "localhost:9092")
...     .option("topics", "orders")
...     .option("starting_offsets", "earliest")
...     .load()
... )
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from broker.model import TopicPartition
from sql.backends.spark.log_ends import LogEnds
from sql.backends.spark.offsets import (
    PACKING,
    Offsets,
    Packing,
    Span,
    of_tree,
    pack,
    packing_of,
    share,
    spans,
    to_tree,
)
from sql.backends.spark.options import EARLIEST, LATEST, SourceOptions, sink_options, source_options
from sql.backends.spark.reading import read_spans
from sql.backends.spark.records import schema_text
from sql.backends.spark.sink import RecordStreamWriter, RecordWriter
from sql.backends.spark.stages import of_option

CHECKPOINT = "offsets of the checkpoint"

# Objects of Spark are Any here and in the sink: its types are not available without PySpark.


class Spans(InputPartition):  # type: ignore[misc]
    """The spans that one task reads."""

    def __init__(self, spans: list[Span]) -> None:
        super().__init__(spans)
        self.spans = spans


class RecordSource(DataSource):  # type: ignore[misc]
    """Raw records of topics: bytes of keys and values, with their positions and timestamps."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "millstream"

    def schema(self) -> str:
        """The columns of raw records."""
        given = str(self.options.get("include_headers", "true"))
        return schema_text(include_headers=given.lower() != "false")

    def reader(self, schema: Any) -> "BoundedReader":
        """A reader from a start to an end position."""
        return BoundedReader(source_options(self.options, streaming=False))

    def streamReader(self, schema: Any) -> "RecordStreamReader":
        """A reader of a stream."""
        return RecordStreamReader(source_options(self.options, streaming=True))

    def writer(self, schema: Any, overwrite: bool) -> RecordWriter:
        """A writer of the result of a bounded query."""
        return RecordWriter(sink_options(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> RecordStreamWriter:
        """A writer of a stream."""
        return RecordStreamWriter(sink_options(self.options), schema)


class BoundedReader(DataSourceReader):  # type: ignore[misc]
    """Reads all records between two positions of each log, as of the planning of the query."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> list[Any]:
        """The spans that each task reads."""
        options = self._options
        ends = LogEnds(options)
        try:
            start = ends.resolve(options.starting, EARLIEST)
            end = ends.resolve(options.ending, LATEST)
            found = spans(ends.check(start, end), end)
        finally:
            ends.close()
        return _tasks(found, _packing(options))

    def read(self, partition: Any) -> Iterator[Any]:
        """The records of a task."""
        return _read(partition, self._options)


class RecordStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Plans micro-batches in the driver and reads them in tasks."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._ends: LogEnds | None = None
        self._target: dict[TopicPartition, int] | None = None
        self._committed: Offsets = {}

    def __getstate__(self) -> dict[str, object]:
        """Connections stay in the driver."""
        return {**self.__dict__, "_ends": None}

    @property
    def _log_ends(self) -> LogEnds:
        if self._ends is None:
            self._ends = LogEnds(self._options)
        return self._ends

    # --- planning, in the driver --------------------------------------------------------------

    def initialOffset(self) -> dict[str, dict[str, int]]:
        """The position where a query without a checkpoint starts."""
        return self._packed(self._log_ends.resolve(self._options.starting, EARLIEST))

    def _packed(self, offsets: Offsets) -> dict[str, dict[str, int]]:
        """Offsets for the checkpoint, with the packing of the micro-batch that ends there."""
        tree = to_tree(offsets)
        if self._options.keeps_packing:
            tree[PACKING] = _packing(self._options).to_tree()
        return tree

    def getDefaultReadLimit(self) -> Any:
        """The maximum size of a micro-batch."""
        most = self._options.max_offsets_per_trigger
        return ReadMaxRows(most) if most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Store the current end offsets: the query ends there."""
        self._target = self._log_ends.latest(self._log_ends.existing())

    def reportLatestOffset(self) -> dict[str, dict[str, int]]:
        """The current end offsets, for progress reports."""
        ends = self._log_ends
        return to_tree(ends.latest(ends.partitions()))

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, dict[str, int]]:
        """The end of the next micro-batch."""
        begin = of_tree(start, CHECKPOINT)
        self._commit(begin)
        end = self._log_ends.ends_after(begin)
        if self._target is not None:
            end = {tp: min(at, self._target[tp]) for tp, at in end.items() if tp in self._target}
        if isinstance(limit, ReadMaxRows):
            end = share(self._with_new(begin, end), end, limit.max_rows)
        # Spark compares offsets as JSON text: equal offsets must not differ in their packing.
        return start if end == begin else self._packed(end)

    def _with_new(self, begin: Offsets, end: Offsets) -> Offsets:
        """Adds the start offsets of new partitions."""
        new = [tp for tp in end if tp not in begin]
        return {**begin, **self._log_ends.earliest(new)} if new else begin

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
        """The spans of each task of a micro-batch; a repeated one has the same tasks."""
        last = of_tree(end, CHECKPOINT)
        first = self._log_ends.check(of_tree(start, CHECKPOINT), last)
        return _tasks(spans(first, last), packing_of(end) or _packing(self._options))

    def commit(self, end: dict[str, Any]) -> None:
        """A micro-batch is complete: commit its offsets for the group."""
        self._commit(of_tree(end, CHECKPOINT))

    def _commit(self, done: Offsets) -> None:
        """Commit for the group. Spark calls no `commit` for the last batch."""
        if done != self._committed:
            self._log_ends.commit(done)
            self._committed = done

    def stop(self) -> None:
        """Called at the end of the query."""
        if self._ends is not None:
            self._ends.close()
            self._ends = None

    # --- reading, in workers ------------------------------------------------------------------

    def read(self, partition: Any) -> Iterator[Any]:
        """The records of a task."""
        return _read(partition, self._options)


def _packing(options: SourceOptions) -> Packing:
    return Packing(options.min_partitions, options.tasks)


def _tasks(found: list[Span], packing: Packing) -> list[Any]:
    packed = pack(found, least=packing.least, most=packing.most)
    return [Spans(task) for task in packed] or [Spans([])]


def _read(partition: Any, options: SourceOptions) -> Iterator[Any]:
    # Spark calls this with its own partition if there is nothing to read.
    spans = partition.spans if isinstance(partition, Spans) else []
    batches = read_spans(spans, options)
    return batches if options.stage is None else of_option(options.stage).run(batches)
