"""RecordBatch v2: the format of its bytes, and the header as a value.

    offset  size  field
     0      8     base offset          assigned by the broker; outside the CRC
     8      4     batch length         bytes after this field
    12      4     leader epoch         assigned by the broker; outside the CRC
    16      1     magic                2
    17      4     CRC-32C              over everything from the attributes to the end
    21      2     attributes           see below
    23      4     last offset delta    last offset = base offset + this, also after compaction
    27      8     base timestamp       or the delete horizon, when its bit is set
    35      8     max timestamp        or the append time of all records, when its bit is set
    43      8     producer id          -1: none
    51      2     producer epoch
    53      4     base sequence
    57      4     record count
    61      ...   records, compressed as a whole

    attributes   0-2 codec   3 log append time   4 transactional   5 control   6 delete horizon

A record: varint size, int8 attributes (unused), varlong timestamp delta, varint offset delta,
varint key size (-1: null) and key, varint value size and value, varint header count, then per
header varint key size and key, varint value size and value. Varints are zigzag.
"""

from dataclasses import dataclass
from struct import Struct
from struct import error as StructError

from broker.errors import CorruptBatch

HEADER = Struct(">qiibIhiqqqhii")
HEADER_BYTES = 61
LENGTH_END = 12  # a batch's size is its length field plus what comes before and in it
BATCH_LENGTH_MIN = HEADER_BYTES - LENGTH_END
MAGIC = 2
MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21
MAX_TIMESTAMP_AT = 35
RECORD_BYTES_MIN = 7  # size, attributes, two deltas, two sizes, header count

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

NO_SEQUENCE = -1
SEQUENCE_COUNT = 1 << 31  # sequences wrap from 2^31 - 1 to 0
NO_LEADER_EPOCH = -1


@dataclass(slots=True)
class BatchHeader:
    """The 61 bytes before the records, in the order of the wire."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return LENGTH_END + self.batch_length

    @property
    def last_offset(self) -> int:
        """Offset of the last record, even if compaction has removed it."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; -1 without a producer."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % SEQUENCE_COUNT

    @property
    def codec(self) -> int:
        """Id of the compression, 0 to 4."""
        return self.attributes & CODEC_MASK

    @property
    def has_log_append_time(self) -> bool:
        """Whether all records have the broker's append time, the max timestamp."""
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def is_transactional(self) -> bool:
        """Whether the records belong to a transaction."""
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a marker of the broker, not records of a client."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_producer(self) -> bool:
        """Whether an idempotent producer, or a transaction's marker, wrote it."""
        return self.producer_id >= 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers may be removed; compaction stores it as base timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    def pack(self) -> bytes:
        """The 61 bytes."""
        return HEADER.pack(
            self.base_offset,
            self.batch_length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        )


def read_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """Read the header at a position, unchecked; too few bytes raise CorruptBatch."""
    try:
        return BatchHeader(*HEADER.unpack_from(buffer, position))
    except StructError:
        raise CorruptBatch(
            f"{len(buffer) - position} bytes at byte {position} are not a batch header"
        ) from None
