"""The files of a segment as rows: indexes and producer snapshots."""

from pathlib import Path

import click

from broker.storage.index import OffsetIndex, StaleIndex, TimeIndex, aborted_from_bytes
from broker.storage.producer_state import ProducerStates
from millstream.output import Row

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12
POSITION_END = 2**31


def read_rows(file: Path) -> list[Row]:
    """The entries of an index or snapshot; raises if it is corrupt."""
    reader = READERS.get(file.suffix)
    if reader is None:
        known = ", ".join((".log", *READERS))
        raise click.UsageError(f'"{file.name}" is not a log file; the file types are {known}')
    try:
        return reader(file)
    except StaleIndex as error:
        raise click.ClickException(f"{file.name} is corrupt: {error}") from error


def _content(file: Path, entry_bytes: int) -> bytes:
    """The bytes of an index; a running broker may have preallocated space after the entries."""
    data = file.read_bytes()
    end = len(data)
    while end >= entry_bytes and not any(data[end - entry_bytes : end]):
        end -= entry_bytes
    return data[:end]


def _base_offset(file: Path) -> int:
    return int(file.stem) if file.stem.isdecimal() else 0


def _offsets(file: Path) -> list[Row]:
    data = _content(file, OFFSET_ENTRY_BYTES)
    index = OffsetIndex.from_bytes(data, log_bytes=POSITION_END)
    base = _base_offset(file)
    pairs = zip(index.offsets, index.positions, strict=True)
    return [{"offset": base + offset, "position": position} for offset, position in pairs]


def _times(file: Path) -> list[Row]:
    index = TimeIndex.from_bytes(_content(file, TIME_ENTRY_BYTES))
    base = _base_offset(file)
    pairs = zip(index.timestamps, index.offsets, strict=True)
    return [{"timestamp_ms": timestamp, "offset": base + offset} for timestamp, offset in pairs]


def _aborted(file: Path) -> list[Row]:
    return [item._asdict() for item in aborted_from_bytes(file.read_bytes())]


def _producers(file: Path) -> list[Row]:
    return [
        {
            "producer_id": entry.producer_id,
            "epoch": entry.epoch,
            "last_sequence": entry.last_sequence,
            "last_offset": entry.last_offset,
            "last_timestamp_ms": entry.last_timestamp_ms,
            "coordinator_epoch": entry.coordinator_epoch,
            "transaction_first_offset": entry.transaction_first_offset,
        }
        for entry in ProducerStates.from_snapshot(file.read_bytes()).entries()
    ]


READERS = {
    ".index": _offsets,
    ".timeindex": _times,
    ".txnindex": _aborted,
    ".snapshot": _producers,
}
