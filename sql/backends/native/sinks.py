"""Sink: writes rows to a topic."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from sql.backends.native.row_times import time_reader
from sql.backends.native.rows import key_serde, value_serde
from sql.backends.native.steps import RowStream, StepContext, then
from sql.errors import RecordFailed
from sql.plan import Sink
from sql.rows.row_format import Row
from streams.processor import NodeContext, Process
from streams.record import Headers, Windowed

SET_TIME = "SQL-SET-TIME-"
THROW_ON_INVALID = "ksql.timestamp.throw.on.invalid"


def written(step: Sink, stream: RowStream, context: StepContext) -> None:
    """Write rows to a topic."""
    shape = step.shape
    if step.timestamp is not None:
        columns = (*shape.row, *shape.key)
        read = time_reader(step.timestamp, columns)
        log = context.log_of(step.name)
        stream = then(stream, SET_TIME, SetTime(read, log, context.flag(THROW_ON_INVALID)))
    stream.to(
        step.topic,
        key=key_serde(step.key_format, shape.key, context.registry, shape.window),
        value=value_serde(step.value_format, shape.row, context.registry),
    )


@dataclass(frozen=True, slots=True)
class SetTime:
    """Sets timestamps from a column; records without one are dropped and logged."""

    read: Callable[[Row], int]
    log: Callable[[Exception, Row | None], None]
    fatal: bool

    def open(self, context: NodeContext) -> Process:
        """The node's code."""
        forward, read, log, fatal = context.forward, self.read, self.log, self.fatal

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if value is None:
                forward(key, None, timestamp_ms, headers)
                return
            plain = key.key if isinstance(key, Windowed) else key
            row = cast("Row", value)
            try:
                time_ms = read(row if plain is None else (*row, *cast("Row", plain)))
                if time_ms < 0:
                    raise RecordFailed(f"the timestamp of the record is negative: {time_ms}")
            except Exception as error:  # a string that is not a valid time may raise anything
                if fatal:
                    raise
                log(error, row)
                return
            forward(key, value, time_ms, headers)

        return process
