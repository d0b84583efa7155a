"""`millstream produce`: writes lines as records."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from types import FrameType

import click

from broker.client import producer
from broker.client.api import RecordMetadata
from broker.errors import MillstreamError
from millstream.commands import formats
from millstream.commands.format_options import format_options
from millstream.commands.options import (
    client_settings,
    cluster_options,
    json_option,
    key_values,
)
from millstream.commands.stopping import StopRequest, handle_stop_signals
from millstream.output import Output

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
PROGRESS_EVERY = 10_000


@click.command()
@click.argument("topic")
@click.option("--file", "-f", type=click.File(), default="-", help="Read lines from this file.")
@click.option("--key-separator", "-K", help="The separator between key and value in a line.")
@format_options
@click.option("--null", "null_text", help="Keys and values equal to this string become null.")
@click.option(
    "--header",
    "-H",
    "headers",
    multiple=True,
    metavar="KEY=VALUE",
    help="A header of all records; repeatable.",
)
@click.option("--partition", type=int, help="Write to this partition only.")
@click.option("--timestamp-ms", type=int, help="The timestamp of all records.")
@click.option(
    "--compression",
    "-z",
    type=click.Choice(COMPRESSIONS),
    default="none",
    help="The compression of record batches.",
)
@click.option(
    "--acks",
    type=click.Choice(["0", "1", "all"]),
    default="all",
    help="The acknowledgements to wait for.",
)
@cluster_options
@json_option
def produce(  # noqa: PLR0913 - one argument per option
    topic: str,
    file: click.utils.LazyFile,
    key_separator: str | None,
    key_format: str,
    value_format: str,
    registry: str,
    null_text: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    timestamp_ms: int | None,
    compression: str,
    acks: str,
    bootstrap: str,
    properties: tuple[str, ...],
    output: Output,
) -> None:
    """Write each line of the input to TOPIC as a record."""
    tags = [(name, value.encode()) for name, value in key_values(headers).items()]
    write_value = formats.to_bytes_of(value_format, registry, topic, is_key=False)
    write_key = formats.to_bytes_of(key_format, registry, topic, is_key=True)
    sent = _DeliveryCounter(output)
    started = time.perf_counter()
    settings = {"linger_ms": 5, "compression_type": compression, "acks": acks}
    with sent, producer(bootstrap, **{**settings, **client_settings(properties)}) as out:
        try:
            for line in sent.lines(file):
                key_text, value_text = _split(line, key_separator)
                value = _encode(value_text, write_value, null_text)
                key = _encode(key_text, write_key, null_text)
                sent.queued()
                out.send(
                    topic,
                    value,
                    key,
                    partition=partition,
                    timestamp_ms=timestamp_ms,
                    headers=tags,
                    callback=sent.done,
                )
        except click.UsageError as error:
            out.flush()
            raise click.UsageError(f"{error.message} ({sent.so_far})") from error
        except MillstreamError as error:  # the producer accepts no more records
            sent.done(None, error)
        out.flush()
    sent.finish(topic, time.perf_counter() - started)


def _split(line: str, separator: str | None) -> tuple[str | None, str]:
    if separator is None:
        return None, line
    key, has_separator, value = line.partition(separator)
    if not has_separator:
        raise click.UsageError(f'line "{line}" has no "{separator}" between key and value')
    return key, value


def _encode(text: str | None, write: formats.Write, null_text: str | None) -> bytes | None:
    if text is None or (null_text is not None and text == null_text):
        return None
    return write(text)


class _DeliveryCounter:
    """Counts records; the first error or signal ends the command."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._queued = 0
        self._delivered = 0
        self._error: BaseException | None = None
        self._stop = StopRequest()
        self._waiting = False
        self._handling = ExitStack()

    def __enter__(self) -> None:
        """Handle signals as the end of the input, so that records in flight are not lost."""
        self._handling.enter_context(handle_stop_signals(self._on_signal))

    def __exit__(self, *_: object) -> None:
        self._handling.close()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self._stop.is_set:
            raise KeyboardInterrupt  # the second signal does not wait
        self._stop.set(number)
        if self._waiting:
            raise _Interrupted

    def lines(self, file: Iterable[str]) -> Iterator[str]:
        """The lines to send, until the end or a signal."""
        lines = iter(file)
        while not self._stop.is_set:
            try:
                self._waiting = True
                line = next(lines, None)
                self._waiting = False
            except _Interrupted:
                return
            if line is None:
                return
            yield line.rstrip("\r\n")

    def queued(self) -> None:
        """Count one more record to send; raises after an error."""
        if self._error is not None:
            raise ProduceFailed("stopped")
        self._queued += 1
        if self._queued % PROGRESS_EVERY == 0 and self._output.progress_console.is_terminal:
            self._output.progress_console.print(f"{self._queued:,} records", end="\r")

    def done(self, _: RecordMetadata | None, error: BaseException | None) -> None:
        """Called by the producer for each record."""
        if error is None:
            self._delivered += 1
        elif self._error is None:
            self._error = error

    @property
    def so_far(self) -> str:
        """The number of delivered records, as a message."""
        return f"{self._delivered:,} records were written before the error"

    def finish(self, topic: str, seconds: float) -> None:
        """Report the number of delivered records, or the error."""
        if self._error is not None:
            refused = self._queued - self._delivered
            raise ProduceFailed(
                f'{refused:,} of {self._queued:,} records for topic "{topic}" were not '
                f"acknowledged, {self._delivered:,} were; the first failed: {self._error}"
            )
        if self._stop.is_set:
            click.echo(f'interrupted: {self._delivered:,} records to "{topic}"', err=True)
            sys.exit(self._stop.exit_code)
        rate = self._delivered / max(seconds, 1e-9)
        self._output.done(
            f'{self._delivered:,} records to "{topic}" ({rate:,.0f}/s)',
            topic=topic,
            records=self._delivered,
        )


class ProduceFailed(MillstreamError):
    """Records were not acknowledged."""


class _Interrupted(Exception):
    """A signal arrived while waiting for the next line."""
