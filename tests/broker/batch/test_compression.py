"""Compression: round trips, framings of other clients, broken and hostile input."""

from contextlib import suppress

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from broker.batch import compression
from broker.batch.compression import CODEC_NAMES, GZIP, LZ4, SNAPPY, ZSTD
from broker.errors import CorruptBatch, ErrorCode

CODECS = range(len(CODEC_NAMES))
COMPRESSING = (GZIP, SNAPPY, LZ4, ZSTD)
TEXT = b"all work and no play makes a dull boy. " * 5000


@pytest.mark.slow
@given(data=st.binary(max_size=2000), repeat=st.integers(1, 200), codec=st.sampled_from(CODECS))
def test_data_comes_back(data: bytes, repeat: int, codec: int) -> None:
    compressed = compression.compress(codec, data * repeat)
    assert compression.decompress(codec, memoryview(compressed)) == data * repeat


@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("level", [1, 5, 9])
def test_levels_are_taken(codec: int, level: int) -> None:
    compressed = compression.compress(codec, TEXT, level=level)
    assert len(compressed) < len(TEXT) / 4
    assert compression.decompress(codec, compressed) == TEXT


@pytest.mark.parametrize("codec", COMPRESSING)
def test_output_at_the_limit_passes_and_one_byte_more_is_refused(codec: int) -> None:
    compressed = compression.compress(codec, TEXT)
    assert compression.decompress(codec, compressed, bytes_max=len(TEXT)) == TEXT
    with pytest.raises(CorruptBatch) as caught:
        compression.decompress(codec, compressed, bytes_max=len(TEXT) - 1)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", COMPRESSING)
def test_data_cut_short_is_refused(codec: int) -> None:
    compressed = compression.compress(codec, TEXT)
    for cut in (1, 7, len(compressed) // 2, len(compressed) - 1):
        with pytest.raises(CorruptBatch):
            compression.decompress(codec, compressed[:cut])


@given(data=st.binary(max_size=300), codec=st.sampled_from(COMPRESSING))
def test_garbage_raises_corrupt_batch_only(data: bytes, codec: int) -> None:
    for garbage in (data, compression.compress(codec, b"x" * 100)[:12] + data):
        with suppress(CorruptBatch):
            compression.decompress(codec, garbage, bytes_max=100_000)


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(CorruptBatch) as caught:
        compression.decompress(5, b"")
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    with pytest.raises(ValueError, match="brotli"):
        compression.codec_id("brotli")


def test_raw_snappy_is_read_too() -> None:
    assert compression.decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_snappy_has_the_framing_of_the_java_client() -> None:
    compressed = compression.compress(SNAPPY, TEXT)
    assert compressed[:16] == b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"
    first = int.from_bytes(compressed[16:20], "big")
    block = compressed[20 : 20 + first]
    assert bytes(cramjam.snappy.decompress_raw(block)) == TEXT[: 32 * 1024]


def test_lz4_frames_have_independent_blocks_as_java_demands() -> None:
    information = lz4.frame.get_frame_info(compression.compress(LZ4, TEXT))
    assert not information["block_linked"]
    assert not information["content_checksum"]
    assert information["content_size"] == 0


def test_lz4_with_linked_blocks_and_zstd_without_size_are_read() -> None:
    linked = lz4.frame.compress(TEXT, block_linked=True, store_size=True)
    assert compression.decompress(LZ4, linked) == TEXT
    stream = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
    assert compression.decompress(ZSTD, stream) == TEXT


def test_gzip_members_follow_each_other() -> None:
    compressed = compression.compress(GZIP, b"one ") + compression.compress(GZIP, b"two")
    assert compression.decompress(GZIP, compressed) == b"one two"


@pytest.mark.slow
@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD])
def test_without_a_limit_what_no_honest_data_does_is_refused(codec: int) -> None:
    bomb = compression.compress(codec, bytes(48 << 20))
    with pytest.raises(CorruptBatch, match="decompress to more than 33554432 bytes"):
        compression.decompress(codec, bomb)
