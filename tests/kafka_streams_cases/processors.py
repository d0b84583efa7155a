"""The named functions of `process` steps, as Processors."""

from collections.abc import Callable
from typing import Any

from streams.processor import Processor, ProcessorContext, PunctuationType
from streams.record import Record
from tests.kafka_streams_cases.functions import UnknownFunction

AnyProcessor = Processor[Any, Any, Any, Any]
AnyRecord = Record[Any, Any]


class EachRecord(AnyProcessor):
    """Forwards what a function makes of each record."""

    def __init__(
        self, change: Callable[[AnyRecord, ProcessorContext[Any, Any]], AnyRecord]
    ) -> None:
        """Keep the function."""
        self._change = change

    def process(self, record: AnyRecord) -> None:
        """Forward the changed record."""
        self.context.forward(self._change(record, self.context))


class Punctuating(AnyProcessor):
    """Passes records on, and forwards a record of its own at each punctuation."""

    def __init__(self, kind: PunctuationType, every_ms: int) -> None:
        """Keep whose time it is, and how often."""
        self._kind, self._every_ms = kind, every_ms

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        """Schedule the punctuation."""
        super().init(context)
        context.schedule(self._every_ms, self._kind, self._punctuate)

    def _punctuate(self, time_ms: int) -> None:
        self.context.forward(Record("punctuated", str(time_ms), time_ms))

    def process(self, record: AnyRecord) -> None:
        """Pass it on."""
        self.context.forward(record)


def _metadata(record: AnyRecord, context: ProcessorContext[Any, Any]) -> AnyRecord:
    """The value becomes where the record came from."""
    found = context.record_metadata
    assert found is not None
    return record.with_value(f"{found.topic}/{found.partition}/{found.offset}")


CHANGES: dict[str, Callable[[AnyRecord, ProcessorContext[Any, Any]], AnyRecord]] = {
    "same": lambda record, context: record,
    "stream_time": lambda record, context: record.with_value(str(context.stream_time_ms)),
    "metadata": _metadata,
    "ts_plus_10": lambda record, context: record.with_timestamp(record.timestamp_ms + 10),
    "add_header": lambda record, context: record.with_headers((*record.headers, ("h", b"x"))),
}
KINDS = {
    "stream_time": PunctuationType.STREAM_TIME,
    "wall_clock": PunctuationType.WALL_CLOCK_TIME,
}


def processor(spec: Any) -> Callable[[], AnyProcessor]:
    """Makes the processors of a `process` step."""
    if isinstance(spec, dict) and "punctuate" in spec:
        return lambda: Punctuating(KINDS[spec["punctuate"]], spec["every_ms"])
    if isinstance(spec, str) and spec in CHANGES:
        return lambda: EachRecord(CHANGES[spec])
    raise UnknownFunction(f"the processor {spec} is not known")
