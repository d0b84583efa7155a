"""Reads the compression of a stored batch from disk, without our own code."""

from pathlib import Path

# The attributes are two bytes, 21 bytes into a batch; their lowest three bits name the compression.
_ATTRIBUTES_LOW_BYTE = 22
_COMPRESSION_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")


def stored_compression(data_dir: Path, topic: str, partition: int) -> str:
    """The compression of the first batch of a partition."""
    segment = data_dir / f"{topic}-{partition}" / f"{0:020}.log"
    with open(segment, "rb") as log:
        start = log.read(_ATTRIBUTES_LOW_BYTE + 1)
    return _COMPRESSION_NAMES[start[_ATTRIBUTES_LOW_BYTE] & 7]
