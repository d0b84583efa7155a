"""DataFrames of rows: from the records of a source, and to the records of a sink."""

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

# Spark's frames are Any in this module: PySpark has no type hints for them.


@dataclass(frozen=True, slots=True)
class FrameContext:
    """The inputs of the conversion of rows, besides their plan."""

    registry_url: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job) -> "FrameContext":
        """The context of a query."""
        return cls(job.registry_url, job.settings)

    def flag(self, name: str) -> bool:
        """A boolean setting; the default is false."""
        return str(self.settings.get(name, "false")).lower() == "true"


@dataclass(frozen=True, slots=True)
class Decoding:
    """The stage that decodes a source's records to rows."""

    reading: DecoderSpec

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Skips records of other topics."""
        decoder, topic = decoder_of(self.reading), self.reading.scan.topic
        for batch in batches:
            for name, own in parts(batch, "topic"):
                if name == topic:
                    yield decoder.decode(own)


def decoding(
    scan: Scan, context: FrameContext | None = None, *, used: frozenset[int] | None = None
) -> Staged:
    """The rows of a source, from records of the "millstream" source.

    Columns: c0 .. cn as in scan.shape.row, `present` (false for a deletion, whose value columns are
    null), `keyed` (false for a record without a key), and key, timestamp, partition, offset and
    headers of the record; the timestamp is that of the source's TIMESTAMP column if it has one.
    Records of other topics, and unreadable ones, are skipped. `used` are the indexes of the columns
    that are needed; others are null.
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
    """The records of rows, with the columns of the "millstream" sink.

    Columns: c0 .. cn as in sink.shape.row, k0 .. km as in sink.shape.key, timestamp; with windows
    windowstart and windowend; and optionally present, keyed and headers as in `decoding`.
    `partitions` is the number of partitions of the topic.
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
