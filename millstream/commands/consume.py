"""`millstream consume`: prints records, from any position of a topic."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import click

from broker.client import consumer
from broker.client.api import ConsumerRecord, RebalanceListener
from broker.client.config import take
from broker.client.consumer_config import ConsumerConfig
from broker.client.record_consumer import Consumer
from broker.errors import BrokerError, ErrorCode, MillstreamError, RequestTimeout
from broker.model import TopicPartition
from millstream.commands import formats
from millstream.commands.format_options import format_options
from millstream.commands.options import (
    client_settings,
    cluster_options,
    json_option,
)
from millstream.commands.stopping import StopRequest, catch_stop_signals
from millstream.line_writer import LineWriter, Stopped
from millstream.output import Output, json_text

POLL_MS = 200
METADATA_TIMEOUT_MS = 30_000
# A topic that is still unknown to the brokers after this time does not exist.
UNKNOWN_TOPIC_MS = 1_000
COMMIT_TIMEOUT_MS = 10_000
REVOKED_COMMIT_TIMEOUT_MS = 5_000


@click.command()
@click.argument("topic")
@click.option("--group", "-g", help="Consume as a member of this group and commit offsets.")
@click.option("--from-beginning", is_flag=True, help="Start at the oldest record.")
@click.option(
    "--offset", "-o", type=int, help="Start at this offset; negative: relative to the end."
)
@click.option(
    "--from-time",
    metavar="TIME",
    help="Start at this time: ISO 8601 or milliseconds since the epoch.",
)
@click.option(
    "--partition", "-p", "partitions", type=int, multiple=True, help="Read only these partitions."
)
@click.option("--count", "-n", type=int, help="Stop after this many records.")
@click.option("--exit", "-e", "at_end", is_flag=True, help="Stop at the end of the topic.")
@click.option(
    "--timeout", type=float, help="Stop when no record has arrived for this many seconds."
)
@format_options
@click.option("--committed", is_flag=True, help="Skip records of aborted transactions.")
@click.option(
    "--details", "-d", is_flag=True, help="Show partition, offset, timestamp and headers."
)
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
    """Print the records of TOPIC, one line with key and value each, until interrupted."""
    if group is not None and (offset is not None or from_time or partitions or at_end):
        raise click.UsageError(
            "--group can only be combined with --from-beginning, because the group has "
            "committed offsets"
        )
    settings: dict[str, object] = {
        "auto_offset_reset": "earliest" if from_beginning else "latest",
        "isolation_level": "read_committed" if committed else "read_uncommitted",
        "allow_auto_create_topics": False,
        **client_settings(properties),
    }
    config = take(ConsumerConfig, dict(settings))
    commits = group is not None and config.enable_auto_commit
    if group is not None:
        settings |= {"group_id": group, "enable_auto_commit": False}
    format_record = _record_formatter(
        output,
        formats.from_bytes_of(key_format, registry, topic),
        formats.from_bytes_of(value_format, registry, topic),
        details,
    )
    with consumer(bootstrap, **settings) as reader:
        known = _partitions(reader, topic, bootstrap)
        printer = RecordPrinter(
            reader, format_record, config.auto_commit_interval_ms if commits else None
        )
        if group is not None:
            reader.subscribe([topic], RebalanceListener(revoked=printer.revoked))
            ends = None
        else:
            assigned = _assign(reader, topic, partitions, known)
            _seek(reader, assigned, from_beginning, offset, from_time)
            ends = reader.end_offsets(assigned) if at_end else None
        with catch_stop_signals() as stop:
            printer.run(_polls(reader, stop, count, timeout, ends), stop)
    if stop.exit_code:
        sys.exit(stop.exit_code)


class RecordPrinter:
    """Prints records, and commits exactly the printed ones for the group."""

    def __init__(
        self,
        reader: Consumer,
        format_record: Callable[[ConsumerRecord], str],
        commit_every_ms: int | None,
    ) -> None:
        """If `commit_every_ms` is None, nothing is committed."""
        self._reader = reader
        self._format_record = format_record
        self._commit_every_ms = commit_every_ms
        self._all_printed = True

    def run(self, polls: Iterator[Sequence[ConsumerRecord]], stop: StopRequest) -> None:
        """Print all records, until the end, a signal, or a closed pipe."""
        commits = self._commit_every_ms is not None
        try:
            with LineWriter(stop, until_read=commits) as writer:
                self._print(polls, writer)
        except Stopped:
            pass
        finally:
            if commits and self._all_printed and self._reader.assignment():
                self._reader.commit(timeout_ms=COMMIT_TIMEOUT_MS)

    def _print(self, polls: Iterator[Sequence[ConsumerRecord]], writer: LineWriter) -> None:
        committed_s = time.monotonic()
        for records in polls:
            printed = 0
            self._all_printed = False
            try:
                for record in records:
                    writer.write(self._format_record(record))
                    printed += 1
            finally:
                self._seek_back(records[printed:])
                self._all_printed = True
            every_ms = self._commit_every_ms
            if every_ms is not None and time.monotonic() - committed_s >= every_ms / 1000:
                committed_s = time.monotonic()
                if self._reader.assignment():
                    self._reader.commit_async()

    def _seek_back(self, unprinted: Sequence[ConsumerRecord]) -> None:
        """Set the positions, which are committed, to the records after the last printed ones."""
        for record in reversed(unprinted):
            self._reader.seek(TopicPartition(record.topic, record.partition), record.offset)

    def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Commit revoked partitions; called by a poll, when all records are printed."""
        del partitions
        if self._commit_every_ms is None or not self._all_printed:
            return
        try:
            self._reader.commit(timeout_ms=REVOKED_COMMIT_TIMEOUT_MS)
        except MillstreamError:
            return  # the next owner of the partitions prints these records again


def _partitions(reader: Consumer, topic: str, bootstrap: str) -> list[int]:
    """The partitions of a topic; raises immediately if it does not exist."""
    limit_ms = UNKNOWN_TOPIC_MS
    while True:
        try:
            known = reader.partitions_for(topic, timeout_ms=limit_ms)
        except RequestTimeout as error:
            cause = error.__cause__
            if isinstance(cause, BrokerError):
                if cause.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    break
                raise
            if limit_ms == METADATA_TIMEOUT_MS:
                raise
            limit_ms = METADATA_TIMEOUT_MS  # no broker has responded yet
        else:
            if known:
                return known
            break
    raise click.ClickException(
        f'topic "{topic}" does not exist on {bootstrap}; '
        f"create it with `millstream topics create {topic}`, or produce to it"
    )


def _assign(
    reader: Consumer, topic: str, partitions: tuple[int, ...], known: list[int]
) -> list[TopicPartition]:
    for number in partitions:
        if number not in known:
            raise click.UsageError(
                f'topic "{topic}" has {len(known)} partitions, but not partition {number}'
            )
    assigned = [TopicPartition(topic, number) for number in partitions or known]
    reader.assign(assigned)
    return assigned


def _seek(
    reader: Consumer,
    assigned: list[TopicPartition],
    from_beginning: bool,
    offset: int | None,
    from_time: str | None,
) -> None:
    if from_time is not None:
        offsets = reader.offsets_for_times(dict.fromkeys(assigned, parse_time_ms(from_time)))
        ends = reader.end_offsets(assigned)
        for partition in assigned:
            position = offsets.get(partition)
            reader.seek(partition, ends[partition] if position is None else position.offset)
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
        raise click.UsageError(
            f'"{text}" is not a valid time; use 2026-01-31T12:00:00Z or milliseconds '
            "since the epoch"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def _polls(
    reader: Consumer,
    stop: StopRequest,
    count: int | None,
    timeout: float | None,
    ends: dict[TopicPartition, int] | None,
) -> Iterator[Sequence[ConsumerRecord]]:
    """The records of each poll; the caller processes them before the next one."""
    left = count
    last_seen = time.monotonic()
    while (left is None or left > 0) and not stop.is_set:
        if ends is not None and all(reader.position(tp) >= end for tp, end in ends.items()):
            return
        records: Sequence[ConsumerRecord] = reader.poll(timeout_ms=POLL_MS, max_records=left)
        if records:
            last_seen = time.monotonic()
        elif timeout is not None and time.monotonic() - last_seen >= timeout:
            return
        if ends is not None:
            records = [
                record
                for record in records
                if record.offset < ends[TopicPartition(record.topic, record.partition)]
            ]
        yield records
        left = None if left is None else left - len(records)


def _record_formatter(
    output: Output, read_key: formats.Read, read_value: formats.Read, details: bool
) -> Callable[[ConsumerRecord], str]:
    """A function that formats a record as a line."""

    def format_record(record: ConsumerRecord) -> str:
        key, value = read_key(record.key), read_value(record.value)
        headers = {name: formats.from_bytes("string")(data) for name, data in record.headers}
        if output.as_json:
            return json_text(
                {
                    "topic": record.topic,
                    "partition": record.partition,
                    "offset": record.offset,
                    "timestamp_ms": record.timestamp_ms,
                    "key": key,
                    "value": value,
                    "headers": headers,
                }
            )
        text = f"{'' if key is None else key}\t{'null' if value is None else value}"
        if not details:
            return text
        moment = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC).isoformat()
        tags = "".join(f" {name}={header}" for name, header in headers.items())
        return f"[{record.partition}@{record.offset} {moment}{tags}] {text}"

    return format_record
