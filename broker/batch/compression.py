"""Compression of a batch's records; the only importer of zlib, cramjam, lz4 and zstandard.

    id  name    bytes
    0   none    as they are
    1   gzip    gzip members
    2   snappy  xerial's framing, as the Java client writes it, or raw as librdkafka does
    3   lz4     one LZ4 frame of independent blocks: Java's reader accepts no other
    4   zstd    one zstd frame

xerial's framing: magic 82 53 4e 41 50 50 59 00, int32 version 1, int32 compatible version 1, then
blocks of int32 size and raw snappy of at most 32 KiB of data.

Untrusted bytes contain their decompressed size; nothing is allocated for it in advance. Data beyond
`bytes_max`, or without it beyond any plausible compression ratio, are refused.
"""

import zlib
from collections.abc import Callable
from struct import Struct

import cramjam
import lz4.frame
import zstandard

from broker import concurrency
from broker.errors import CorruptBatch, ErrorCode

NONE = 0
GZIP = 1
SNAPPY = 2
LZ4 = 3
ZSTD = 4

CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
CODEC_IDS = {name: codec for codec, name in enumerate(CODEC_NAMES)}

# Repetitive records shrink to a sixteenth; real ones never shrink to a hundredth.
HONEST_RATIO_MAX = 100
HONEST_BYTES_MIN = 32 * 1024 * 1024

GZIP_WINDOW_BITS = 31
LZ4_JAVA_DEFAULT_LEVEL = 9
ZSTD_DEFAULT_LEVEL = 3
ZSTD_ONE_STEP_BYTES = 1024 * 1024
READ_BYTES = 256 * 1024

XERIAL_MAGIC = b"\x82SNAPPY\0"
XERIAL_HEADER = XERIAL_MAGIC + b"\0\0\0\1\0\0\0\1"
XERIAL_BLOCK_BYTES = 32 * 1024
INT32 = Struct(">i")

Buffer = bytes | bytearray | memoryview


def codec_id(name: str) -> int:
    """The id of a compression by Kafka's name for it."""
    codec = CODEC_IDS.get(name)
    if codec is None:
        raise ValueError(f'compression "{name}" is not one of {", ".join(CODEC_NAMES)}')
    return codec


def compress(codec: int, data: bytes, *, level: int | None = None) -> bytes:
    """Compress with a codec of the table; without a level, with the library's default."""
    return COMPRESSORS[codec](data, level)


def decompress(codec: int, data: Buffer, *, bytes_max: int | None = None) -> bytes:
    """Decompress untrusted bytes; CorruptBatch if they are invalid or exceed the limit."""
    if codec >= len(DECOMPRESSORS):
        raise CorruptBatch(
            f"compression id {codec} is not known", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        )
    if bytes_max is None:
        bytes_max = max(HONEST_BYTES_MIN, HONEST_RATIO_MAX * len(data))
    try:
        return DECOMPRESSORS[codec](data, bytes_max)
    except (zlib.error, cramjam.DecompressionError, RuntimeError, zstandard.ZstdError) as error:
        raise CorruptBatch(f"records are not valid {CODEC_NAMES[codec]}: {error}") from error


def _too_large(codec: int, bytes_max: int) -> CorruptBatch:
    return CorruptBatch(
        f"{CODEC_NAMES[codec]} records decompress to more than {bytes_max} bytes",
        ErrorCode.MESSAGE_TOO_LARGE,
    )


def _cut_short(codec: int) -> CorruptBatch:
    return CorruptBatch(f"{CODEC_NAMES[codec]} records end too early")


def _keep(data: bytes, level: int | None) -> bytes:
    return data


def _copy(data: Buffer, bytes_max: int) -> bytes:
    return bytes(data)


def _gzip(data: bytes, level: int | None) -> bytes:
    compressor = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, GZIP_WINDOW_BITS)
    return compressor.compress(data) + compressor.flush()


def _gunzip(data: Buffer, bytes_max: int) -> bytes:
    parts: list[bytes] = []
    room = bytes_max
    rest: Buffer = data
    while len(rest):
        member = zlib.decompressobj(GZIP_WINDOW_BITS)
        part = member.decompress(rest, room + 1)
        if len(part) > room:
            raise _too_large(GZIP, bytes_max)
        if not member.eof:
            raise _cut_short(GZIP)
        parts.append(part)
        room -= len(part)
        rest = member.unused_data
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _snappy(data: bytes, level: int | None) -> bytes:
    parts = [XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + XERIAL_BLOCK_BYTES]))
        parts += (INT32.pack(len(block)), block)
    return b"".join(parts)


def _unsnappy(data: Buffer, bytes_max: int) -> bytes:
    view = memoryview(data)
    if bytes(view[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        return _unsnappy_block(view, bytes_max, bytes_max)
    parts: list[bytes] = []
    room = bytes_max
    position = len(XERIAL_HEADER)
    while position < len(view):
        block_start = position + INT32.size
        if block_start > len(view):
            raise _cut_short(SNAPPY)
        size = INT32.unpack_from(view, position)[0]
        position = block_start + size
        if size < 0 or position > len(view):
            raise _cut_short(SNAPPY)
        part = _unsnappy_block(view[block_start:position], room, bytes_max)
        parts.append(part)
        room -= len(part)
    return b"".join(parts)


def _unsnappy_block(view: memoryview, room: int, bytes_max: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(view) > room:
        raise _too_large(SNAPPY, bytes_max)
    return bytes(cramjam.snappy.decompress_raw(view))


def _lz4(data: bytes, level: int | None) -> bytes:
    # Java's default level, 9, selects its fast compressor; the library's fast one is level 0.
    fast = level is None or level == LZ4_JAVA_DEFAULT_LEVEL
    compressed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if fast else level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def _unlz4(data: Buffer, bytes_max: int) -> bytes:
    frame = lz4.frame.LZ4FrameDecompressor()
    first: bytes = frame.decompress(data, max_length=READ_BYTES)
    parts = [first]
    room = bytes_max - len(first)
    while not frame.eof and room >= 0:
        part: bytes = frame.decompress(b"", max_length=READ_BYTES)
        if not part and not frame.eof:
            raise _cut_short(LZ4)
        parts.append(part)
        room -= len(part)
    if room < 0:
        raise _too_large(LZ4, bytes_max)
    return first if len(parts) == 1 else b"".join(parts)


class _ZstdContexts(concurrency.local):
    """A compressor per level and a decompressor: costly to create, and not thread-safe."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}
        self.decompressor = zstandard.ZstdDecompressor()


_ZSTD = _ZstdContexts()


def _zstd(data: bytes, level: int | None) -> bytes:
    level = ZSTD_DEFAULT_LEVEL if level is None else level
    compressor = _ZSTD.compressors.get(level)
    if compressor is None:
        compressor = _ZSTD.compressors[level] = zstandard.ZstdCompressor(level=level)
    return compressor.compress(data)


def _unzstd(data: Buffer, bytes_max: int) -> bytes:
    if zstandard.get_frame_parameters(data).content_size <= min(ZSTD_ONE_STEP_BYTES, bytes_max):
        return _ZSTD.decompressor.decompress(data)
    reader = _ZSTD.decompressor.stream_reader(data)
    parts: list[bytes] = []
    room = bytes_max
    while part := reader.read(READ_BYTES):
        parts.append(part)
        room -= len(part)
        if room < 0:
            raise _too_large(ZSTD, bytes_max)
    return parts[0] if len(parts) == 1 else b"".join(parts)


COMPRESSORS: tuple[Callable[[bytes, int | None], bytes], ...] = (_keep, _gzip, _snappy, _lz4, _zstd)
DECOMPRESSORS: tuple[Callable[[Buffer, int], bytes], ...] = (
    _copy, _gunzip, _unsnappy, _unlz4, _unzstd,
)  # fmt: skip
