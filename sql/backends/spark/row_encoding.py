"""RowEncoder: encodes Arrow batches of rows to Arrow batches of records, with the engine's serdes.

    c0 .. cn, k0 .. km, timestamp, and if there are any windowstart, windowend, present, keyed,
    headers -> the columns of a record for the sink

A row that is not `present` is a deletion; a record that is not `keyed` has no key.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import repeat
from typing import Any

import pyarrow as pa

from broker.client.partitioner import partition_for_key
from broker.serde import BindableSerde, Serde
from broker.serde.registry.api import SchemaRegistry
from broker.serde.registry.http_registry import HttpSchemaRegistry
from sql.backends.native.row_times import time_reader
from sql.backends.native.rows import key_serde, plain_key_serde, value_serde
from sql.backends.spark.arrow_values import ColumnValues
from sql.backends.spark.records import HEADERS_TYPE
from sql.backends.spark.row_decoding import KEYED, PRESENT
from sql.catalog import FormatInfo, TimestampColumn
from sql.errors import RecordFailed
from sql.plan import Shape
from sql.rows.row_format import Row
from streams.record import Windowed
from streams.serdes import SessionWindowedSerde, WindowedSerde

START, END = "windowstart", "windowend"
WRITTEN = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS_TYPE),
    ]
)

# Arrow's arrays and batches are Any in this module: the library has no type hints.
Encode = Callable[[Any], bytes | None]


@dataclass(frozen=True, slots=True)
class EncoderSpec:
    """The description of an encoder, as data: a worker creates its encoder from it."""

    topic: str
    partitions: int
    shape: Shape
    key_format: FormatInfo
    value_format: FormatInfo
    timestamp: TimestampColumn | None = None
    registry_url: str | None = None
    throw_on_invalid_time: bool = False


@lru_cache(maxsize=64)
def encoder_of(writing: EncoderSpec) -> "RowEncoder":
    """The encoder of some rows, created once per process."""
    url = writing.registry_url
    return RowEncoder(writing, None if url is None else HttpSchemaRegistry(url))


class RowEncoder:
    """Encodes the rows of one sink."""

    def __init__(self, writing: EncoderSpec, registry: SchemaRegistry | None = None) -> None:
        shape = writing.shape
        self._topic, self._partitions = writing.topic, writing.partitions
        self._key = key_serde(writing.key_format, shape.key, registry, shape.window)
        self._plain_key = plain_key_serde(writing.key_format, shape.key, registry)
        self._value = value_serde(writing.value_format, shape.row, registry)
        self._throws = writing.throw_on_invalid_time
        self._time: Callable[[Row], int] | None = None
        if writing.timestamp is not None:
            self._time = time_reader(writing.timestamp, (*shape.row, *shape.key))
        self._has_window = shape.window is not None
        self._columns = [ColumnValues(each.type) for each in shape.row]
        self._keys = [ColumnValues(each.type) for each in shape.key]

    def encode(self, batch: Any) -> Any:
        """The records of a batch; rows without a valid time in the time column are skipped."""
        names = set(batch.schema.names)
        rows = _rows(batch, "c", self._columns)
        keys = _rows(batch, "k", self._keys)
        if PRESENT in names:
            present = batch.column(PRESENT).to_pylist()
            rows = [row if there else None for row, there in zip(rows, present, strict=True)]
        if KEYED in names:
            keyed = batch.column(KEYED).to_pylist()
            keys = [key if there else None for key, there in zip(keys, keyed, strict=True)]
        times = batch.column("timestamp").to_pylist()
        windows = None
        if self._has_window:
            bounds = batch.column(START).to_pylist(), batch.column(END).to_pylist()
            windows = list(zip(*bounds, strict=True))
        headers = batch.column("headers") if "headers" in names else None
        return self.encode_rows(OutputRows(keys, rows, times, windows, headers))

    def encode_rows(self, given: "OutputRows") -> Any:
        """The same for Python values."""
        found = given if self._time is None else self._timed(given)
        partitions, raw_keys = self._key_bytes(found)
        count = len(found.rows)
        headers = pa.nulls(count, HEADERS_TYPE) if found.headers is None else found.headers
        columns = [
            pa.repeat(pa.scalar(self._topic, pa.string()), count),
            partitions,
            pa.array(found.times, pa.int64()),
            raw_keys,
            pa.array(_encoded(self._value, self._topic, found.rows), pa.binary()),
            headers,
        ]
        return pa.RecordBatch.from_arrays(columns, schema=WRITTEN)

    def _timed(self, given: "OutputRows") -> "OutputRows":
        """Only rows that have a time, with it; a deletion has that of its record."""
        read = self._time
        assert read is not None
        kept, times = [], []
        for place, (row, key, given_ms) in enumerate(
            zip(given.rows, given.keys, given.times, strict=True)
        ):
            try:
                time_ms = given_ms if row is None else read((*row, *(key or ())))
                if time_ms < 0:
                    raise RecordFailed(f"the timestamp of the record is negative: {time_ms}")
            except Exception:  # a string that is not a valid time may raise anything
                if self._throws:
                    raise
                continue
            kept.append(place)
            times.append(time_ms)
        return given.taken(kept, times)

    def _key_bytes(self, given: "OutputRows") -> tuple[Any, Any]:
        """Partitions and keys; a windowed key is in the same partition as without its window."""
        keys = [None if each is None or _is_no_key(each) else each for each in given.keys]
        if not self._has_window:
            raw = _encoded(self._key, self._topic, keys)
            return pa.nulls(len(keys), pa.int32()), pa.array(raw, pa.binary())
        assert given.windows is not None
        assert isinstance(self._key, WindowedSerde | SessionWindowedSerde)
        window = self._key.serialize_window
        plain = _encoded(self._plain_key, self._topic, keys)
        whole = [
            None if inner is None else inner + window(Windowed(None, *bounds))
            for inner, bounds in zip(plain, given.windows, strict=True)
        ]
        places = [
            None if inner is None else partition_for_key(inner, self._partitions) for inner in plain
        ]
        return pa.array(places, pa.int32()), pa.array(whole, pa.binary())


@dataclass(frozen=True, slots=True)
class OutputRows:
    """Rows to write as records, as Python values; None is a missing key or a tombstone."""

    keys: list[Row | None]
    rows: list[Row | None]
    times: list[int]
    windows: list[tuple[int, int]] | None = None
    headers: Any = None

    def taken(self, places: list[int], times: list[int]) -> "OutputRows":
        """Some of the rows, with other times."""
        return OutputRows(
            [self.keys[place] for place in places],
            [self.rows[place] for place in places],
            times,
            None if self.windows is None else [self.windows[place] for place in places],
            None if self.headers is None else self.headers.take(pa.array(places, pa.int64())),
        )


def _rows(batch: Any, prefix: str, columns: list[ColumnValues]) -> list[Row | None]:
    lists = [
        column.values(batch.column(f"{prefix}{place}")) for place, column in enumerate(columns)
    ]
    return list(zip(*lists, strict=True)) if lists else list(repeat((), batch.num_rows))


def _is_no_key(key: Row) -> bool:
    return not key or (len(key) == 1 and key[0] is None)


# Any: the values of a serde.
def _encoded(serde: Serde[Any], topic: str, values: list[Row | None]) -> list[bytes | None]:
    encode: Encode = (
        serde.encoder(topic)
        if isinstance(serde, BindableSerde)
        else partial(serde.serialize, topic)
    )
    try:
        return [None if each is None else encode(each) for each in values]
    except Exception:  # whatever it was, the error of the serde is better
        return [serde.serialize(topic, each) for each in values]
