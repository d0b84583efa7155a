"""UserProcessor: runs a Processor of the user. Record objects are created only here."""

from collections.abc import Callable
from dataclasses import dataclass
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from streams.errors import StreamsError, TopologyError
from streams.operators.pairs import described
from streams.processor import (
    Cancellable,
    NodeContext,
    Process,
    Processor,
    PunctuationType,
    Punctuator,
)
from streams.record import Headers, Position, Record

# Any, because nodes are independent of the user's types.
AnyProcessor = Processor[Any, Any, Any, Any]


class _Context:
    """The context of the user's Processor."""

    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._forward = node.forward

    @property
    def task_id(self) -> str:
        return self._node.task_id

    @property
    def application_id(self) -> str:
        return self._node.application_id

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        forward = self._forward if child is None else self._node.forward_to(child)
        try:
            parts = (record.key, record.value, record.timestamp_ms, record.headers)
        except AttributeError:
            raise StreamsError(
                f"forward() was called with {record!r}, a {type(record).__name__}, not a Record",
                at=f'node "{self._node.node}"',
                hint="pass Record(key, value, timestamp_ms), or record.with_value(...)",
            ) from None
        forward(*parts)

    def store(self, name: str) -> Any:
        return self._node.store(name)

    def schedule(
        self, interval_ms: int, kind: PunctuationType, punctuator: Punctuator
    ) -> Cancellable:
        return self._node.schedule(interval_ms, kind, punctuator)

    def commit(self) -> None:
        self._node.request_commit()

    @property
    def record_metadata(self) -> Position | None:
        return self._node.position

    @property
    def stream_time_ms(self) -> int:
        return self._node.task_time_ms

    def now_ms(self) -> int:
        return self._node.now_ms()


class FixedKeyRecord(Record[Any, Any]):
    """The input of a Processor of `process_values`: a record whose key cannot change."""

    __slots__ = ()

    def with_key(self, key: object) -> Record[object, Any]:
        """Raise StreamsError: the key cannot change."""
        raise StreamsError(
            "process_values cannot change keys",
            hint="use process() for a processor that changes keys",
        )

    def with_value(self, value: object) -> Record[Any, object]:
        """The same record with another value."""
        return FixedKeyRecord(self.key, value, self.timestamp_ms, self.headers)


class _SameKeyContext(_Context):
    """The context of `process_values`: forwarded records must have the key of the input record."""

    key: object = None

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        # A FixedKeyRecord that was stored earlier may have another key than the current input.
        if not isinstance(record, FixedKeyRecord) and record.key != self.key:
            raise StreamsError(
                f"process_values forwards key {record.key!r} for input key {self.key!r}",
                at=f'node "{self._node.node}"',
                hint="use process() for a processor that changes keys",
            )
        super().forward(record, child)


# Types of return values that are probably meant as results, also of `yield` and `async`.
_RESULTS = (Record, tuple, list, dict, GeneratorType, CoroutineType, AsyncGeneratorType)


def _check_returned(returned: object, process: Callable[..., object]) -> None:
    """Raise for results that would be ignored; other values, such as numbers, are accepted."""
    if isinstance(returned, _RESULTS):
        if isinstance(returned, CoroutineType):
            returned.close()
        raise StreamsError(
            f"{described(process)} returned a {type(returned).__name__}, which is ignored",
            hint="process() returns nothing: call context.forward(record) for each result",
        )


@dataclass(frozen=True, slots=True)
class UserProcessor:
    """Calls a Processor of the user; each task has a new one."""

    supplier: Callable[[], AnyProcessor]
    at: str = ""

    def __post_init__(self) -> None:
        """Call the supplier, so that errors name the line of the user's call."""
        first, second = self.new(), self.new()
        if first is second:
            raise TopologyError(
                "the supplier returned the same Processor twice",
                at=self.at,
                hint="return a new one each time: pass the class, or a lambda that calls it",
            )

    def new(self) -> AnyProcessor:
        """Create a Processor."""
        if not callable(self.supplier):
            raise TopologyError(
                f"the supplier is {self.supplier!r}", at=self.at, hint="pass a class or a function"
            )
        try:
            processor = self.supplier()
        except Exception as error:
            raise TopologyError(
                f"the supplier failed: {type(error).__name__}: {error}",
                at=self.at,
                hint="it must return a new object of a subclass of Processor that has process()",
            ) from error
        if not callable(getattr(processor, "process", None)):
            raise TopologyError(
                f"the supplier returned {processor!r}, which has no process()",
                at=self.at,
                hint="return an object of a subclass of Processor",
            )
        return processor

    def open(self, context: NodeContext) -> Process:
        processor = self.new()
        processor.init(_Context(context))
        context.on_close(processor.close)
        process = processor.process

        def call(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            returned = process(Record(key, value, timestamp_ms, headers))
            if returned is not None:
                _check_returned(returned, process)

        return call


@dataclass(frozen=True, slots=True)
class UserValueProcessor:
    """Calls a Processor of the user that must not change keys."""

    supplier: Callable[[], AnyProcessor]
    at: str = ""

    def __post_init__(self) -> None:
        """Call the supplier, so that errors name the line of the user's call."""
        UserProcessor(self.supplier, self.at)

    def open(self, context: NodeContext) -> Process:
        processor = self.supplier()
        same_key = _SameKeyContext(context)
        processor.init(same_key)
        context.on_close(processor.close)
        process = processor.process

        def call(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            same_key.key = key
            returned = process(FixedKeyRecord(key, value, timestamp_ms, headers))
            if returned is not None:
                _check_returned(returned, process)

        return call
