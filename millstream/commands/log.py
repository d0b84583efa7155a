"""`millstream log`: inspect log files without a broker."""

from collections.abc import Iterator
from pathlib import Path

import click

from broker.batch.codec import check_batch_at, decode_records, read_control
from broker.batch.compression import CODEC_NAMES
from broker.batch.layout import BatchHeader
from broker.errors import CorruptBatch
from millstream.commands.log_indexes import read_rows
from millstream.commands.options import json_option
from millstream.output import Output


@click.group()
def log() -> None:
    """Inspect log files offline."""


@log.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--records", "-r", is_flag=True, help="Also show the records in the batches.")
@click.option("--limit", "-n", type=int, default=0, help="Stop after this many batches or entries.")
@json_option
def dump(file: Path, records: bool, limit: int, output: Output) -> None:
    """Print and verify the contents of FILE: .log, .index, .timeindex, .txnindex or .snapshot.

    Exit code 1 if a batch is torn or its checksum is wrong.
    """
    if file.suffix == ".log":
        _dump_segment(file, records, limit, output)
        return
    rows = read_rows(file)
    output.rows(rows[:limit] if limit else rows, title=file.name, empty="no entries")


def _dump_segment(file: Path, records: bool, limit: int, output: Output) -> None:
    data = memoryview(file.read_bytes())
    position = count = 0
    while position < len(data) and not (limit and count >= limit):
        header = check_batch_at(data, position)
        if header is None:
            raise click.ClickException(
                f"corrupt batch at byte {position} of {file.name}: torn, or wrong checksum; "
                f"{len(data) - position} bytes remain"
            )
        row = _batch(header, position)
        output.line(row, "  ".join(f"{name}={value}" for name, value in row.items()))
        if records:
            for record in _records(data, position, header):
                text = "  ".join(f"{name}={value}" for name, value in record.items())
                output.line(record, f"  | {text}")
        position += header.size
        count += 1
    if not output.as_json:
        output.done(f"{count} batches, {position} bytes, all valid")


def _batch(header: BatchHeader, position: int) -> dict[str, object]:
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "position": position,
        "size": header.size,
        "count": header.record_count,
        "timestamp_ms": header.max_timestamp,
        "codec": CODEC_NAMES[header.codec],
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "crc": header.crc,
    }


def _records(data: memoryview, position: int, header: BatchHeader) -> Iterator[dict[str, object]]:
    try:
        for record in decode_records(data, position):
            row: dict[str, object] = {
                "offset": record.offset,
                "timestamp_ms": record.timestamp_ms,
                "key": _shown(record.key),
                "value": _shown(record.value),
            }
            if header.is_control:
                committed, epoch = read_control(record)
                row["marker"] = "commit" if committed else "abort"
                row["coordinator_epoch"] = epoch
            if record.headers:
                row["headers"] = {name: _shown(value) for name, value in record.headers}
            yield row
    except CorruptBatch as error:
        raise click.ClickException(f"batch at byte {position}: {error}") from error


def _shown(data: bytes | None) -> str | None:
    return None if data is None else bytes(data).decode(errors="backslashreplace")
