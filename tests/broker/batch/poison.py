"""Batches with a valid checksum and nonsense inside, as a broken or hostile client sends them."""

from struct import Struct

from crc32c import crc32c

from broker.batch.codec import encode_batch
from broker.batch.compression import compress
from broker.batch.layout import HEADER_BYTES, LENGTH_END

INT32 = Struct(">i")
INT64 = Struct(">q")
CRC_AT = 17
ATTRIBUTES_AT = 21
LAST_DELTA_AT = 23
MAX_TIMESTAMP_AT = 35
COUNT_AT = 57
COUNT_MAX = (1 << 31) - 1
ROWS = [(b"key", b"value %d" % number, (("h", b"x"),), 1_000 + number) for number in range(3)]


def sealed(data: bytearray) -> bytes:
    """The batch with its length and checksum made right."""
    INT32.pack_into(data, 8, len(data) - LENGTH_END)
    checksum: int = crc32c(memoryview(data)[ATTRIBUTES_AT:])
    data[CRC_AT:ATTRIBUTES_AT] = checksum.to_bytes(4, "big")
    return bytes(data)


def claiming(data: bytes, count: int) -> bytes:
    """The batch, saying that it has so many records."""
    changed = bytearray(data)
    INT32.pack_into(changed, LAST_DELTA_AT, count - 1)
    INT32.pack_into(changed, COUNT_AT, count)
    return sealed(changed)


def with_body(body: bytes, *, count: int = 1, codec: int = 0) -> bytes:
    """A batch whose records are these bytes."""
    header = bytearray(encode_batch(ROWS)[:HEADER_BYTES])
    header[ATTRIBUTES_AT + 1] = codec
    return claiming(bytes(header + body), count)


def with_max_timestamp(data: bytes, timestamp_ms: int) -> bytes:
    """The batch, saying that its latest record is of that time."""
    changed = bytearray(data)
    INT64.pack_into(changed, MAX_TIMESTAMP_AT, timestamp_ms)
    return sealed(changed)


RECORDS = encode_batch(ROWS)[HEADER_BYTES:]
# size, attributes, timestamp delta, offset delta 5, null key and value, no headers
GAP = b"\x0c\x00\x00\x0a\x01\x01\x00"

POISON = {
    "61 bytes that claim 2^31-1 records": claiming(encode_batch(ROWS)[:HEADER_BYTES], COUNT_MAX),
    "more records than there are bytes for": claiming(encode_batch(ROWS), 1_000),
    "one record more than there is": claiming(encode_batch(ROWS), 4),
    "one record less than there is": claiming(encode_batch(ROWS), 2),
    "nonsense": with_body(b"\x7f" * 40),
    "zeros": with_body(bytes(40)),
    "a record cut short": with_body(RECORDS[:-1], count=3),
    "an offset delta outside the batch": with_body(GAP),
    "the same offset delta twice": with_body(GAP.replace(b"\x0a", b"\x00") * 2, count=2),
    "a timestamp outside 64 bits": with_body(
        b"\x1e\x00" + b"\xfe" + b"\xff" * 8 + b"\x01" + b"\x00\x01\x01\x00"
    ),
    "compressed nonsense": with_body(compress(1, b"\x7f" * 40), codec=1),
    "no gzip": with_body(b"\x7f" * 40, codec=1),
    "no snappy": with_body(b"\x7f" * 40, codec=2),
    "no lz4": with_body(b"\x7f" * 40, codec=3),
    "no zstd": with_body(b"\x7f" * 40, codec=4),
    "compressed, one record more than there is": claiming(
        encode_batch(ROWS, compression="zstd"), 4
    ),
    "compressed, 2^31-1 records": claiming(encode_batch(ROWS, compression="lz4"), COUNT_MAX),
}
# Readers can decode the others, though their offsets are not what they should be.
UNREADABLE = {
    name: batch for name, batch in POISON.items() if name != "the same offset delta twice"
}
