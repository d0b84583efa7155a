"""`millstream consume`: records as they come, from any place of a topic."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import click

from broker.client import consumer
from broker.client.api import Consumer, ConsumerRecord
from broker.model import TopicPartition
from millstream.commands import formats
from millstream.commands.options import (
    client_settings,
    cluster_options,
    json_option,
    registry_url_option,
)
from millstream.output import Output

POLL_MS = 200
METADATA_TIMEOUT_MS = 30_000


@click.command()
@click.argument("topic")
@click.option("--group", "-g", help="Consume as a member of this group and commit.")
@click.option("--from-beginning", is_flag=True, help="Start with the oldest record.")
@click.option("--offset", "-o", type=int, help="Start at this offset; negative: from the end.")
@click.option("--from-time", metavar="TIME", help="Start at a time: ISO 8601 or epoch ms.")
@click.option("--partition", "-p", "partitions", type=int, multiple=True, help="Only these.")
@click.option("--count", "-n", type=int, help="Stop after this many records.")
@click.option("--exit", "-e", "at_end", is_flag=True, help="Stop at the end of the topic.")
@click.option("--timeout", type=float, help="Stop when nothing came for this many seconds.")
@click.option("--key-format", type=click.Choice(formats.NAMES), default="string")
@click.option("--format", "-F", "value_format", type=click.Choice(formats.NAMES), default="string")
@registry_url_option
@click.option("--committed", is_flag=True, help="Leave out records of aborted transactions.")
@click.option("--details", "-d", is_flag=True, help="Show partition, offset, time and headers.")
@cluster_options
@json_option
def consume(  # noqa: PLR0913 - one argument per option
    topic: str,
    group: str | None,
    from_beginning: bool,
    offset: int | None,
    from_time: str | None,
    partitions: tuple[int, ...],
    count: int | None,
    at_end: bool,
    timeout: float | None,
    key_format: str,
    value_format: str,
    registry: str,
    committed: bool,
    details: bool,
    bootstrap: str,
    properties: tuple[str, ...],
    output: Output,
) -> None:
    """Print the records of TOPIC: key and value, a line each, until interrupted."""
    if group is not None and (offset is not None or from_time or partitions or at_end):
        raise click.UsageError("--group goes with --from-beginning only: the group has the offsets")
    settings: dict[str, object] = {
        "auto_offset_reset": "earliest" if from_beginning else "latest",
        "isolation_level": "read_committed" if committed else "read_uncommitted",
        **client_settings(properties),
    }
    if group is not None:
        settings["group_id"] = group
    show = _printer(
        output,
        *(formats.from_bytes_of(each, registry, topic) for each in (key_format, value_format)),
    )
    with consumer(bootstrap, **settings) as reader:
        if group is not None:
            reader.subscribe([topic])
            ends = None
        else:
            assigned = _assign(reader, topic, partitions, bootstrap)
            _seek(reader, assigned, from_beginning, offset, from_time)
            ends = reader.end_offsets(assigned) if at_end else None
        for record in _records(reader, count, timeout, ends):
            show(record, details)
        if group is not None:
            reader.commit()


def _assign(
    reader: Consumer, topic: str, partitions: tuple[int, ...], bootstrap: str
) -> list[TopicPartition]:
    known = reader.partitions_for(topic, timeout_ms=METADATA_TIMEOUT_MS)
    if not known:
        raise click.ClickException(f'topic "{topic}" does not exist on {bootstrap}')
    for number in partitions:
        if number not in known:
            raise click.UsageError(f'topic "{topic}" has {len(known)} partitions, no {number}')
    chosen = [TopicPartition(topic, number) for number in partitions or known]
    reader.assign(chosen)
    return chosen


def _seek(
    reader: Consumer,
    assigned: list[TopicPartition],
    from_beginning: bool,
    offset: int | None,
    from_time: str | None,
) -> None:
    if from_time is not None:
        found = reader.offsets_for_times(dict.fromkeys(assigned, parse_time_ms(from_time)))
        ends = reader.end_offsets(assigned)
        for partition in assigned:
            place = found.get(partition)
            reader.seek(partition, ends[partition] if place is None else place.offset)
    elif offset is not None and offset < 0:
        starts, ends = reader.beginning_offsets(assigned), reader.end_offsets(assigned)
        for partition in assigned:
            reader.seek(partition, max(starts[partition], ends[partition] + offset))
    elif offset is not None:
        for partition in assigned:
            reader.seek(partition, offset)
    elif from_beginning:
        reader.seek_to_beginning(assigned)


def parse_time_ms(text: str) -> int:
    """Epoch milliseconds, or ISO 8601; a time without a zone is UTC."""
    if text.lstrip("-").isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f'"{text}" is no time; give 2026-01-31T12:00:00Z or ms') from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def _records(
    reader: Consumer,
    count: int | None,
    timeout: float | None,
    ends: dict[TopicPartition, int] | None,
) -> Iterator[ConsumerRecord]:
    left = count
    last_seen = time.monotonic()
    while left is None or left > 0:
        if ends is not None and all(reader.position(tp) >= end for tp, end in ends.items()):
            return
        found = reader.poll(timeout_ms=POLL_MS, max_records=left)
        if found:
            last_seen = time.monotonic()
        elif timeout is not None and time.monotonic() - last_seen >= timeout:
            return
        for record in found:
            if ends is None or record.offset < ends[TopicPartition(record.topic, record.partition)]:
                yield record
                left = None if left is None else left - 1


def _printer(
    output: Output,
    read_key: Callable[[bytes | None], object],
    read_value: Callable[[bytes | None], object],
) -> Callable[[ConsumerRecord, bool], None]:
    def show(record: ConsumerRecord, details: bool) -> None:
        key, value = read_key(record.key), read_value(record.value)
        headers = {name: formats.from_bytes("string")(data) for name, data in record.headers}
        row = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp_ms": record.timestamp_ms,
            "key": key,
            "value": value,
            "headers": headers,
        }
        text = f"{'' if key is None else key}\t{'null' if value is None else value}"
        if details:
            moment = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC).isoformat()
            tags = "".join(f" {name}={shown}" for name, shown in headers.items())
            text = f"[{record.partition}@{record.offset} {moment}{tags}] {text}"
        output.line(row, text)

    return show
