"""File formats: how records are encoded, and the extensions of files."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import zstandard

from connect.connectors.files_sink.commit_log import sync_file
from connect.connectors.json_text import json_lines
from connect.data import ConnectSchema
from connect.errors import ConfigError
from connect.records import SinkRecord

_JSON_EXTENSIONS = {"none": ".json", "gzip": ".json.gz", "zstd": ".json.zst"}


class FileWriter(Protocol):
    """A file that is being written."""

    def write(self, record: SinkRecord) -> None:
        """Writes a record; DataError if it cannot be written, without a partial write."""
        ...

    def write_many(self, records: Sequence[SinkRecord]) -> None:
        """Writes records of one schema; DataError if one cannot be written: then none is."""
        ...

    def close(self) -> None:
        """Closes the file and syncs it to disk."""
        ...

    def discard(self) -> None:
        """Closes the file, complete or not."""
        ...


class FileFormat(Protocol):
    """Opens files of one format."""

    extension: str

    def open(self, path: Path, schema: ConnectSchema | None) -> FileWriter:
        """A new file for values of the schema."""
        ...


def file_format(name: str, compression: str) -> FileFormat:
    """A format by name; ConfigError if a required library is missing."""
    if name == "json":
        return JsonLines(compression or "none")
    # Parquet needs a large optional library.
    try:
        from connect.connectors.files_sink.parquet_format import Parquet
    except ImportError as error:
        raise ConfigError(
            f"Parquet files need the package pyarrow: {error}",
            hint='install it with: pip install "millstream[parquet]"',
        ) from None
    return Parquet(compression or "snappy")


class JsonLines:
    """One JSON value per line."""

    def __init__(self, compression: str) -> None:
        if compression not in _JSON_EXTENSIONS:
            raise ConfigError(
                f'JSON files cannot have compression.type "{compression}"',
                hint=f"use one of {', '.join(_JSON_EXTENSIONS)}",
            )
        self.extension = _JSON_EXTENSIONS[compression]
        self._compression = compression

    def open(self, path: Path, schema: ConnectSchema | None) -> FileWriter:
        """A new file; the schema is ignored."""
        return _LinesWriter(path, self._compression)


class _Out(Protocol):
    def write(self, data: bytes, /) -> int: ...
    def close(self) -> None: ...


class _LinesWriter:
    def __init__(self, path: Path, compression: str) -> None:
        self._path = path
        self._file = path.open("wb", buffering=256 * 1024)
        self._out: _Out = self._file
        if compression == "gzip":
            # Without name and time, the same records give the same bytes.
            self._out = gzip.GzipFile("", "wb", 6, self._file, mtime=0)
        elif compression == "zstd":
            compressor = zstandard.ZstdCompressor()
            self._out = compressor.stream_writer(self._file, closefd=False)

    def write(self, record: SinkRecord) -> None:
        self.write_many([record])

    def write_many(self, records: Sequence[SinkRecord]) -> None:
        self._out.write(json_lines([record.value for record in records]))

    def close(self) -> None:
        self.discard()
        sync_file(self._path)

    def discard(self) -> None:
        if self._out is not self._file:
            self._out.close()
        self._file.close()
