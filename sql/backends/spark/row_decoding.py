"""RowDecoder: decodes Arrow batches of records to Arrow batches of rows, with the engine's serdes.

    key, value, timestamp, partition, offset, headers -> c0 .. cn, and the other columns of a record

The serdes of the native engine read the bytes, so that rows are the same on both engines: field
names ignore case, values are coerced to the column's type, and invalid records are skipped. Spark's
own from_json does none of this.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import repeat
from typing import Any, cast

import pyarrow as pa

from broker.errors import SerdeError
from broker.serde import BindableSerde, Serde
from broker.serde.registry.api import SchemaRegistry
from broker.serde.registry.http_registry import HttpSchemaRegistry
from broker.serde.serde import ChunkSerde
from sql.backends.native.rows import key_serde, value_serde
from sql.backends.native.sources import extractor_of, header_reader
from sql.backends.native.steps import StepContext
from sql.backends.spark.arrow_values import ColumnValues
from sql.backends.spark.records import HEADERS_TYPE
from sql.backends.spark.writing import binary_list
from sql.plan import Scan
from sql.rows.row_format import Row
from streams.dsl.builder import StreamsBuilder
from streams.errors import InvalidTimestamp
from streams.record import NO_HEADERS, Headers

READ = ("key", "value", "timestamp", "partition", "offset", "headers")
PRESENT, KEYED = "present", "keyed"
FAIL_ON_ERROR = "ksql.fail.on.deserialization.error"
THROW_ON_INVALID = "ksql.timestamp.throw.on.invalid"
RECORD_FIELDS = [
    (PRESENT, pa.bool_()),  # false: the record has no row, it is a deletion
    (KEYED, pa.bool_()),  # false: the record has no key
    ("key", pa.binary()),
    ("timestamp", pa.int64()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("headers", HEADERS_TYPE),
]

# Arrow's arrays and batches are Any in this module: the library has no type hints.
Record = tuple[Row | None, Row | None, int]  # key, row, timestamp_ms


@dataclass(frozen=True, slots=True)
class DecoderSpec:
    """The description of a decoder, as data: a worker creates its decoder from it."""

    scan: Scan
    registry_url: str | None = None
    # The columns that are used; None: all. The others are null.
    used: frozenset[int] | None = None
    fail_on_error: bool = False
    throw_on_invalid_time: bool = False


@lru_cache(maxsize=64)
def decoder_of(reading: DecoderSpec) -> "RowDecoder":
    """The decoder of some rows, created once per process."""
    url = reading.registry_url
    return RowDecoder(reading, None if url is None else HttpSchemaRegistry(url))


@dataclass(slots=True)
class _Decoded:
    """Keys, values and times of the records of a batch; `kept` are their indexes in it."""

    keys: list[Any] = field(default_factory=list)
    values: list[Row | None] = field(default_factory=list)
    kept: list[int] | None = None  # None: all
    times: list[int] | None = None  # None: those of the records


class RowDecoder:
    """Decodes the records of one source."""

    def __init__(self, reading: DecoderSpec, registry: SchemaRegistry | None = None) -> None:
        scan = self._scan = reading.scan
        self._key = key_serde(scan.key_format, scan.shape.key, registry, scan.shape.window)
        self._value = value_serde(scan.value_format, scan.value, registry)
        self._decode_keys = _chunk_decoder(self._key, scan.topic)
        self._decode_values = _chunk_decoder(self._value, scan.topic)
        settings: dict[str, object] = {THROW_ON_INVALID: str(reading.throw_on_invalid_time).lower()}
        self._extract = extractor_of(scan, StepContext(StreamsBuilder(), settings=settings))
        self._fail_on_error = reading.fail_on_error
        self._headers = [header_reader(each) for each in scan.headers]
        self._columns = [ColumnValues(each.type) for each in scan.shape.row]
        self._used = reading.used
        self.schema = pa.schema(
            [(f"c{place}", each.type) for place, each in enumerate(self._columns)] + RECORD_FIELDS
        )

    def decode(self, batch: Any) -> Any:
        """The rows of a batch; records that cannot be read, or have no time, are skipped."""
        found = self._read(batch)
        if found.kept is not None:
            batch = batch.take(pa.array(found.kept, pa.int64()))
        if found.times is None:
            times = batch.column("timestamp")
            _check_times(self._scan, times)
        else:
            times = pa.array(found.times, pa.int64())
        columns = [*self._value_columns(found.values), *self._header_columns(batch)]
        columns += [times, batch.column("partition"), batch.column("offset")]
        columns += self._key_columns(found.keys)
        record = [
            pa.array([each is not None for each in found.values], pa.bool_()),
            pa.array([each is not None for each in found.keys], pa.bool_()),
            batch.column("key"),
            times,
            batch.column("partition"),
            batch.column("offset"),
            batch.column("headers"),
        ]
        return pa.RecordBatch.from_arrays([*columns, *record], schema=self.schema)

    def rows(self, batch: Any) -> list[Record]:
        """The same as Python values: key, row and time of each record; None for no row."""
        found = self._read(batch)
        if found.kept is not None:
            batch = batch.take(pa.array(found.kept, pa.int64()))
        times = found.times
        if times is None:
            _check_times(self._scan, batch.column("timestamp"))
            times = batch.column("timestamp").to_pylist()
        assert self._scan.shape.window is None, "rows of windows are not made here"
        places = batch.column("partition").to_pylist(), batch.column("offset").to_pylist()
        headers: Iterable[Headers] = repeat(NO_HEADERS)
        if self._headers:
            headers = map(_headers, batch.column("headers").to_pylist())
        no_key: Row = (None,) * len(self._scan.shape.key)
        read = self._headers
        return [
            (
                key,
                None
                if value is None
                else (*value, *(each(pairs) for each in read), time_ms, *place, *(key or no_key)),
                time_ms,
            )
            for key, value, time_ms, pairs, *place in zip(
                found.keys, found.values, times, headers, *places, strict=False
            )
        ]

    # --- records --------------------------------------------------------------------------------

    def _read(self, batch: Any) -> _Decoded:
        keys, values = binary_list(batch.column("key")), binary_list(batch.column("value"))
        try:
            found = _Decoded(self._decode_keys(keys), self._decode_values(values))
        except Exception:  # whatever it was, the errors of the serdes are better
            found = self._read_carefully(keys, values)
        return found if self._extract is None else self._timed(found, batch)

    def _read_carefully(
        self, keys: Sequence[bytes | None], values: Sequence[bytes | None]
    ) -> _Decoded:
        result, topic = _Decoded(kept=[]), self._scan.topic
        assert result.kept is not None
        for place, (key, value) in enumerate(zip(keys, values, strict=True)):
            try:
                read = self._key.deserialize(topic, key), self._value.deserialize(topic, value)
            except SerdeError:
                if self._fail_on_error:
                    raise
                continue
            result.keys.append(read[0])
            result.values.append(read[1])
            result.kept.append(place)
        return result

    def _timed(self, found: _Decoded, batch: Any) -> _Decoded:
        """Only records that have a time, with it."""
        extract = self._extract
        assert extract is not None
        given = batch.column("timestamp").to_pylist()
        timed = _Decoded(kept=[], times=[])
        assert timed.kept is not None
        assert timed.times is not None
        places = range(len(found.keys)) if found.kept is None else found.kept
        for place, key, value in zip(places, found.keys, found.values, strict=True):
            time_ms = extract(key, value, given[place], -1)
            if time_ms >= 0:
                timed.keys.append(key)
                timed.values.append(value)
                timed.kept.append(place)
                timed.times.append(time_ms)
        return timed

    # --- columns --------------------------------------------------------------------------------

    def _value_columns(self, values: list[Row | None]) -> list[Any]:
        width = len(self._scan.value)
        no_row: Row = (None,) * width
        rows = [no_row if each is None else each for each in values] if None in values else values
        lists = list(zip(*rows, strict=True)) if rows else [()] * width
        return [self._column(place, each) for place, each in enumerate(lists)]

    def _header_columns(self, batch: Any) -> list[Any]:
        if not self._headers:
            return []
        first = len(self._scan.value)
        found = [_headers(each) for each in batch.column("headers").to_pylist()]
        return [
            self._column(first + place, [read(each) for each in found])
            for place, read in enumerate(self._headers)
        ]

    def _key_columns(self, keys: list[Any]) -> list[Any]:
        """Bounds of windows, then the columns of the key."""
        shape = self._scan.shape
        found: list[list[object]] = []
        if shape.window is not None:
            found.append([None if each is None else each.start_ms for each in keys])
            found.append([None if each is None else each.end_ms for each in keys])
            keys = [None if each is None else each.key for each in keys]
        for place in range(len(shape.key)):
            found.append([None if each is None else each[place] for each in keys])
        first = len(self._columns) - len(found)
        return [self._column(first + place, each) for place, each in enumerate(found)]

    def _column(self, place: int, values: Sequence[object]) -> Any:
        column = self._columns[place]
        if self._used is not None and place not in self._used:
            return pa.nulls(len(values), column.type)
        return column.array(values)


# Any: the values of a serde.
def _chunk_decoder(serde: Serde[Any], topic: str) -> Callable[[Sequence[bytes | None]], list[Any]]:
    """A function that decodes many byte strings of a topic, null or not."""
    decode: Callable[[bytes], Any] = partial(serde.deserialize, topic)
    if isinstance(serde, BindableSerde):
        decode = serde.decoder(topic)
    decode_all = serde.chunk_decoder(topic) if isinstance(serde, ChunkSerde) else None

    def decode_chunk(data: Sequence[bytes | None]) -> list[Any]:
        if None in data:
            return [None if each is None else decode(each) for each in data]
        present = cast("Sequence[bytes]", data)
        return list(map(decode, present)) if decode_all is None else decode_all(present)

    return decode_chunk


def _headers(pairs: list[dict[str, Any]] | None) -> Headers:
    if not pairs:
        return NO_HEADERS
    return tuple((each["name"], each["value"]) for each in pairs)


def _check_times(scan: Scan, times: Any) -> None:
    found = times.to_numpy(zero_copy_only=False)
    if len(found) and found.min() < 0:
        raise InvalidTimestamp(
            f"a record has timestamp {found.min()}",
            at=f'topic "{scan.topic}"',
            hint="name a column with TIMESTAMP in the WITH clause of its source",
        )
