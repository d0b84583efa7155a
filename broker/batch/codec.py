"""Record batches: check untrusted bytes, assign offsets, and read or write records.

The broker only checks batches and assigns offsets: it reads one header and computes one CRC-32C per
batch and, for batches of clients, reads all records once, so that every reader can decode what was
accepted. The layout is at the top of broker/batch/layout.py. Readers decompress within a limit and
decode with _speed.c if it was built, otherwise with broker/batch/records.py.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from struct import Struct
from typing import NamedTuple, TypedDict, Unpack

from crc32c import crc32c

from broker.batch import records as _python
from broker.batch.compression import CODEC_NAMES, codec_id
from broker.batch.compression import compress as _compress
from broker.batch.compression import decompress as _decompress
from broker.batch.layout import (
    ATTRIBUTES_AT,
    BATCH_LENGTH_MIN,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_AT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    NO_LEADER_EPOCH,
    NO_SEQUENCE,
    RECORD_BYTES_MIN,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
)
from broker.batch.records import INT64_MAX, Lists, Record, Row, RowHeaders, Section, T
from broker.errors import CorruptBatch, ErrorCode
from broker.model import ProducerIdentity

try:
    from broker.batch import _speed as _native
except ImportError:
    _native = _python  # type: ignore[misc]
# An extension built from an older version lacks this function.
_check_section = getattr(_native, "check_section", _python.check_section)

INT64 = Struct(">q")
INT32 = Struct(">i")
UINT32 = Struct(">I")
UINT16 = Struct(">H")

CODEC_LAST = len(CODEC_NAMES) - 1
# Attributes, last offset delta, base and max timestamp, record count of a batch's header.
SECTION_FACTS = Struct(">21xhiqq14xi")
MARKER_KEY = Struct(">hh")
MARKER_VALUE = Struct(">hi")
MARKER_VERSION = 0
MARKER_ABORT = 0
MARKER_COMMIT = 1

Buffer = bytes | bytearray | memoryview

# --- checking and placing -----------------------------------------------------------------------


def check_batches(
    view: memoryview, *, batch_bytes_max: int, from_client: bool = True
) -> list[BatchHeader]:
    """Split and check untrusted bytes; an invalid batch raises CorruptBatch with the error code.

    Only headers and checksums are checked; for records see `check_records`. What only a client
    must not do (send control batches, leave offsets out) is checked when `from_client`.
    """
    headers = []
    position = 0
    end = len(view)
    while position < end:
        header = _checked_header(view, position)
        size = header.size
        if size > batch_bytes_max:
            raise CorruptBatch(
                f"batch of {size} bytes is larger than the {batch_bytes_max} allowed",
                ErrorCode.MESSAGE_TOO_LARGE,
            )
        if crc32c(view[position + ATTRIBUTES_AT : position + size]) != header.crc:
            raise CorruptBatch(f"batch at byte {position} fails its CRC-32C check")
        _check_fields(header, position)
        if from_client:
            _check_client_fields(header)
        headers.append(header)
        position += size
    if not headers:
        raise CorruptBatch("there is no record batch", ErrorCode.INVALID_RECORD)
    return headers


def _checked_header(view: memoryview, position: int) -> BatchHeader:
    """The header of a batch that is completely inside the view and has magic 2."""
    rest = len(view) - position
    if rest > MAGIC_AT and view[position + MAGIC_AT] < MAGIC:
        raise CorruptBatch(
            f"message format v{view[position + MAGIC_AT]} is not supported, only v{MAGIC}",
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        )
    if rest < HEADER_BYTES:
        raise CorruptBatch(f"{rest} bytes at byte {position} are not a record batch")
    header = BatchHeader(*HEADER.unpack_from(view, position))
    if header.magic != MAGIC:
        raise CorruptBatch(f"batch at byte {position} has magic {header.magic}")
    if not BATCH_LENGTH_MIN <= header.batch_length <= rest - LENGTH_END:
        raise CorruptBatch(
            f"batch at byte {position} claims to have {header.batch_length} bytes, "
            f"but there are {rest - LENGTH_END}"
        )
    return header


def _check_fields(header: BatchHeader, position: int) -> None:
    if header.codec > CODEC_LAST:
        raise CorruptBatch(
            f"compression id {header.codec} is not known", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        )
    if not 0 <= header.record_count <= header.last_offset_delta + 1 or header.last_offset_delta < 0:
        raise CorruptBatch(
            f"batch at byte {position} has {header.record_count} records in "
            f"{header.last_offset_delta + 1} offsets",
            ErrorCode.INVALID_RECORD,
        )


def _check_client_fields(header: BatchHeader) -> None:
    if header.record_count != header.last_offset_delta + 1:
        raise CorruptBatch(
            f"batch has {header.record_count} records in {header.last_offset_delta + 1} offsets",
            ErrorCode.INVALID_RECORD,
        )
    if header.is_control:
        raise CorruptBatch("clients must not write control batches", ErrorCode.INVALID_RECORD)
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise CorruptBatch(
            f"batch of producer {header.producer_id} has epoch {header.producer_epoch} and "
            f"sequence {header.base_sequence}",
            ErrorCode.INVALID_RECORD,
        )
    if header.is_transactional and header.producer_id < 0:
        raise CorruptBatch("transactional batch has no producer id", ErrorCode.INVALID_RECORD)


class RecordFacts(NamedTuple):
    """What a walk over the records of a batch collects: first and last time, null keys."""

    first_timestamp_ms: int
    last_timestamp_ms: int
    has_null_keys: bool


def check_records(view: memoryview) -> RecordFacts:
    """Read all records of the one batch in `view`; any reader can decode an accepted batch.

    Offsets must be consecutive. Compressed records are decompressed, within the limit of readers.
    An invalid record raises CorruptBatch with the error code; a retry does not help, so it is
    INVALID_RECORD and not CORRUPT_MESSAGE.
    """
    attributes, last_delta, base_timestamp, max_timestamp, count = SECTION_FACTS.unpack_from(view)
    fixed = attributes & LOG_APPEND_TIME_BIT != 0
    codec = attributes & CODEC_MASK
    body: Buffer = view[HEADER_BYTES:]
    try:
        if codec:
            body = _decompress(codec, body)
        # A plain tuple, and no check before the walk's own: produce requests wait for this.
        section = (count, last_delta, 0, max_timestamp if fixed else base_timestamp, fixed)
        return RecordFacts(*_check_section(body, section))
    except ValueError as error:
        raise CorruptBatch(f"records cannot be read: {error}", ErrorCode.INVALID_RECORD) from error
    except CorruptBatch as error:
        if error.code is ErrorCode.MESSAGE_TOO_LARGE:
            raise
        raise CorruptBatch(error.message, ErrorCode.INVALID_RECORD) from error


def check_batch_at(view: memoryview, position: int) -> BatchHeader | None:
    """The header of the batch at a position, or None when it is truncated or invalid."""
    try:
        header = _checked_header(view, position)
        _check_fields(header, position)
    except CorruptBatch:
        return None
    if crc32c(view[position + ATTRIBUTES_AT : position + header.size]) != header.crc:
        return None
    return header


def split_batches(view: memoryview, *, check_crc: bool = True) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch of a fetch response; skips an incomplete last one."""
    position = 0
    end = len(view)
    while position + HEADER_BYTES <= end:
        length = INT32.unpack_from(view, position + 8)[0]
        if length > end - position - LENGTH_END:
            return
        header = _checked_header(view, position)
        if check_crc and (
            crc32c(view[position + ATTRIBUTES_AT : position + header.size]) != header.crc
        ):
            raise CorruptBatch(f"batch at offset {header.base_offset} fails its CRC-32C check")
        yield position, header
        position += header.size


def place_batch(view: memoryview, position: int, *, base_offset: int, leader_epoch: int) -> None:
    """Set base offset and leader epoch of a batch; the CRC covers neither field."""
    INT64.pack_into(view, position, base_offset)
    INT32.pack_into(view, position + LENGTH_END, leader_epoch)


def stamp_append_time(view: memoryview, position: int, now_ms: int) -> None:
    """Set the timestamp of all records of a batch to the broker's time."""
    attributes = UINT16.unpack_from(view, position + ATTRIBUTES_AT)[0]
    UINT16.pack_into(view, position + ATTRIBUTES_AT, attributes | LOG_APPEND_TIME_BIT)
    set_max_timestamp(view, position, now_ms)


def set_max_timestamp(view: memoryview, position: int, timestamp_ms: int) -> None:
    """Write the largest timestamp of a batch into its header."""
    size = LENGTH_END + INT32.unpack_from(view, position + 8)[0]
    INT64.pack_into(view, position + MAX_TIMESTAMP_AT, timestamp_ms)
    crc = crc32c(view[position + ATTRIBUTES_AT : position + size])
    UINT32.pack_into(view, position + CRC_AT, crc)


# --- reading records ----------------------------------------------------------------------------


@dataclass(slots=True)
class BatchColumns:
    """The records of a batch by column: one buffer, and the bounds of each key and value in it.

    Nulls have start and end -1. `headers` is None when no record has any.
    """

    buffer: bytes
    offsets: "array[int]"
    timestamps: "array[int]"
    key_starts: "array[int]"
    key_ends: "array[int]"
    value_starts: "array[int]"
    value_ends: "array[int]"
    headers: RowHeaders | None

    def __len__(self) -> int:
        """Number of records."""
        return len(self.offsets)


def decode_records(
    view: Buffer, position: int = 0, *, bytes_max: int | None = None
) -> list[Record]:
    """The records of the batch at a position; its CRC must have been checked."""
    return decode_rows(view, position, Record, bytes_max=bytes_max)


def decode_rows(
    view: Buffer,
    position: int,
    row_type: type[T],
    prefix: tuple[object, ...] = (),
    *,
    bytes_max: int | None = None,
) -> list[T]:
    """As `decode_records`, to named tuples that begin with `prefix` and continue as Record does."""
    header, data = _section(view, position, bytes_max)
    try:
        return _native.decode_rows(data, _surroundings(header), row_type, prefix)
    except ValueError as error:
        raise CorruptBatch(f"batch at offset {header.base_offset}: {error}") from error


def decode_lists(view: Buffer, position: int = 0, *, bytes_max: int | None = None) -> Lists:
    """As `decode_records`, in one list per field; the headers are None when there are none."""
    header, data = _section(view, position, bytes_max)
    try:
        return _native.decode_lists(data, _surroundings(header))
    except ValueError as error:
        raise CorruptBatch(f"batch at offset {header.base_offset}: {error}") from error


def decode_columns(
    view: Buffer, position: int = 0, *, bytes_max: int | None = None
) -> BatchColumns:
    """The records of the batch at a position as columns, no object per record."""
    header, data = _section(view, position, bytes_max)
    count = header.record_count
    longs = array("q", bytes(8 * count)), array("q", bytes(8 * count))
    ints = [array("i", bytes(4 * count)) for _ in range(4)]
    try:
        headers = _native.decode_arrays(data, _surroundings(header), longs, ints)
    except ValueError as error:
        raise CorruptBatch(f"batch at offset {header.base_offset}: {error}") from error
    key_starts, key_ends, value_starts, value_ends = ints
    return BatchColumns(data, *longs, key_starts, key_ends, value_starts, value_ends, headers)


def _surroundings(header: BatchHeader) -> Section:
    fixed = header.has_log_append_time
    return Section(
        header.record_count,
        header.last_offset_delta,
        header.base_offset,
        header.max_timestamp if fixed else header.base_timestamp,
        fixed,
    )


def _section(view: Buffer, position: int, bytes_max: int | None) -> tuple[BatchHeader, bytes]:
    """The header and the decompressed records section; impossible counts are refused here."""
    whole = memoryview(view)
    header = _checked_header(whole, position)
    _check_fields(header, position)
    if not 0 <= header.base_offset <= INT64_MAX - header.last_offset_delta:
        raise CorruptBatch(f"batch at byte {position} has base offset {header.base_offset}")
    body = whole[position + HEADER_BYTES : position + header.size]
    data = _decompress(header.codec, body, bytes_max=bytes_max) if header.codec else bytes(body)
    if header.record_count * RECORD_BYTES_MIN > len(data):
        raise CorruptBatch(
            f"batch at offset {header.base_offset} has {len(data)} bytes for "
            f"{header.record_count} records"
        )
    return header, data


# --- writing records ----------------------------------------------------------------------------


class BatchFields(TypedDict, total=False):
    """The fields of a batch besides its records; all are optional."""

    compression: str
    level: int | None
    producer: ProducerIdentity
    base_sequence: int
    transactional: bool
    control: bool
    base_offset: int
    leader_epoch: int


def encode_batch(records: Iterable[Row], **fields: Unpack[BatchFields]) -> bytes:
    """A batch of (key, value, headers, timestamp_ms) rows, at least one."""
    rows = records if isinstance(records, (list, tuple)) else list(records)
    assert rows, "a batch has at least one record"
    section, base_timestamp, max_timestamp = _native.encode_rows(rows)
    producer = fields.get("producer", ProducerIdentity())
    codec = codec_id(fields.get("compression", "none"))
    transactional = TRANSACTIONAL_BIT if fields.get("transactional") else 0
    control = CONTROL_BIT if fields.get("control") else 0
    header = BatchHeader(
        base_offset=fields.get("base_offset", 0),
        batch_length=0,
        leader_epoch=fields.get("leader_epoch", NO_LEADER_EPOCH),
        magic=MAGIC,
        crc=0,
        attributes=codec | transactional | control,
        last_offset_delta=len(rows) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=fields.get("base_sequence", NO_SEQUENCE),
        record_count=len(rows),
    )
    return _assemble(header, section, fields.get("level"))


def encode_retained(
    header: BatchHeader,
    records: Sequence[Record],
    *,
    delete_horizon_ms: int | None = None,
    level: int | None = None,
) -> bytes:
    """Encode a batch again with the records that compaction retains, possibly none.

    Offsets, producer, sequence and compression are unchanged, also a delete horizon that is set.
    """
    if not records:
        return _assemble(_emptied(header), b"", level)
    horizon = header.delete_horizon_ms if delete_horizon_ms is None else delete_horizon_ms
    kept = replace(header, record_count=len(records))
    if horizon is not None:
        kept.base_timestamp = horizon
        kept.attributes |= DELETE_HORIZON_BIT
    if not header.has_log_append_time:
        kept.max_timestamp = max(record.timestamp_ms for record in records)
    section = _native.encode_kept(records, kept.base_offset, kept.base_timestamp)
    return _assemble(kept, section, level)


def _emptied(header: BatchHeader) -> BatchHeader:
    """The header alone, as Kafka retains it for the producer's last sequence."""
    return replace(
        header,
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
        base_timestamp=header.max_timestamp,
        record_count=0,
    )


def _assemble(header: BatchHeader, section: bytes, level: int | None) -> bytes:
    """Compress the section, fill in length and CRC, join."""
    body = _compress(header.codec, section, level=level) if header.codec else section
    header.batch_length = BATCH_LENGTH_MIN + len(body)
    head = bytearray(header.pack())
    crc = crc32c(body, crc32c(memoryview(head)[ATTRIBUTES_AT:]))
    UINT32.pack_into(head, CRC_AT, crc)
    return b"".join((head, body))


def control_batch(
    *, commit: bool, producer: ProducerIdentity, coordinator_epoch: int, timestamp_ms: int
) -> bytes:
    """The marker that ends a transaction."""
    key = MARKER_KEY.pack(MARKER_VERSION, MARKER_COMMIT if commit else MARKER_ABORT)
    value = MARKER_VALUE.pack(MARKER_VERSION, coordinator_epoch)
    return encode_batch(
        [(key, value, (), timestamp_ms)], producer=producer, transactional=True, control=True
    )


def read_control(record: Record) -> tuple[bool, int]:
    """Whether a marker commits, and the coordinator's epoch; later versions are read as ours."""
    key, value = record.key or b"", record.value or b""
    if len(key) < MARKER_KEY.size or len(value) < MARKER_VALUE.size:
        raise CorruptBatch(f"control record at offset {record.offset} is truncated")
    kind = MARKER_KEY.unpack_from(key)[1]
    if kind not in (MARKER_ABORT, MARKER_COMMIT):
        raise CorruptBatch(f"control record at offset {record.offset} has type {kind}")
    return kind == MARKER_COMMIT, MARKER_VALUE.unpack_from(value)[1]


__all__ = [
    "BatchColumns",
    "BatchFields",
    "BatchHeader",
    "Record",
    "RecordFacts",
    "check_batch_at",
    "check_batches",
    "check_records",
    "control_batch",
    "decode_columns",
    "decode_lists",
    "decode_records",
    "decode_rows",
    "encode_batch",
    "encode_retained",
    "place_batch",
    "read_control",
    "read_header",
    "set_max_timestamp",
    "split_batches",
    "stamp_append_time",
]
