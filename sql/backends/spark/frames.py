"""DataFrames of rows: of the records that a source reads, and to those that a sink writes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.pandas.types import from_arrow_schema

from sql.backends.spark.job import Job
from sql.backends.spark.records import parts
from sql.backends.spark.row_decoding import (
    FAIL_ON_ERROR,
    THROW_ON_INVALID,
    DecoderSpec,
    decoder_of,
)
from sql.backends.spark.row_encoding import WRITTEN, EncoderSpec, encoder_of
from sql.backends.spark.stages import Staged
from sql.plan import Scan, Sink

# Spark's frames are Any in this module: PySpark has no types here.


@dataclass(frozen=True, slots=True)
class FrameContext:
    """What rows need besides their plan."""

    registry_url: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job) -> "FrameContext":
        """Those of a query."""
        return cls(job.registry_url, job.settings)

    def flag(self, name: str) -> bool:
        """A setting that is true or false; false if it is not set."""
        return str(self.settings.get(name, "false")).lower() == "true"


@dataclass(frozen=True, slots=True)
class Decoding:
    """The stage that makes rows of a source's records."""

    reading: DecoderSpec

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Records of other topics are left out."""
        decoder, topic = decoder_of(self.reading), self.reading.scan.topic
        for batch in batches:
            for name, own in parts(batch, "topic"):
                if name == topic:
                    yield decoder.decode(own)


def decoding(
    scan: Scan, context: FrameContext | None = None, *, used: frozenset[int] | None = None
) -> Staged:
    """The rows of a source, of records as the "millstream" source gives them.

    Columns: c0 .. cn as scan.shape.row has them, `present` (false for a deletion, whose columns of
    values are null), `keyed` (false for a record without a key), and key, timestamp, partition,
    offset and headers of the record; the timestamp is that of the source's TIMESTAMP column if it
    has one. Records of other topics, and those that cannot be read, are left out.
    `used` are the places of columns that are needed; others are null.
    """
    about = context or FrameContext()
    reading = DecoderSpec(
        scan,
        about.registry_url,
        used,
        about.flag(FAIL_ON_ERROR),
        about.flag(THROW_ON_INVALID),
    )
    return Staged(Decoding(reading), from_arrow_schema(decoder_of(reading).schema))


def encoded(sink: Sink, rows: Any, partitions: int, context: FrameContext | None = None) -> Any:
    """The records of rows, with the columns that the "millstream" sink takes.

    Columns: c0 .. cn as sink.shape.row has them, k0 .. km as sink.shape.key, timestamp; with
    windows windowstart and windowend; and if there are any, present, keyed and headers as `decoded`
    gives them. `partitions` are those of the topic.
    """
    about = context or FrameContext()
    writing = EncoderSpec(
        sink.topic,
        partitions,
        sink.shape,
        sink.key_format,
        sink.value_format,
        sink.timestamp,
        about.registry_url,
        about.flag(THROW_ON_INVALID),
    )

    def encode(batches: Iterator[Any]) -> Iterator[Any]:
        encoder = encoder_of(writing)
        return map(encoder.encode, batches)

    return rows.mapInArrow(encode, from_arrow_schema(WRITTEN))
