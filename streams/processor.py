"""Operator and NodeContext: a node of a topology, and what it gets from the task that runs it.

An operator is an immutable description (a frozen dataclass with the user's functions and the names
of its stores). A task opens it once and gets the function of the node. Names are resolved when the
operator is opened, so the function itself finds everything in local variables.

    opened children first:   sink <- map_values <- filter <- source
    a record:                source -> filter -> map_values -> sink, as nested calls

So processing is depth-first and one record at a time, with the same order of effects as in Kafka
Streams.

If a source has only one path to a sink, and all nodes on it support it, records are pulled instead
of pushed: each node is a generator over the results of its parent. The order of effects is the
same, because no node reads a record before the previous one has reached the sink; one call per node
is saved.

    a run of records:        sink(map_values(filter(records of the chunk)))
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from streams.record import Headers, Position, Record

T = TypeVar("T")
KIn = TypeVar("KIn")
VIn = TypeVar("VIn")
KOut = TypeVar("KOut")
VOut = TypeVar("VOut")

# The function of a node: key, value, timestamp_ms, headers.
Process = Callable[[object, object, int, Headers], None]
# The same for all records of a run: the arguments of each, one after the other.
Rows = Iterator[tuple[object, object, int, Headers]]
# The function of a pulled node: a generator function. Its loop variables must be named key, value,
# timestamp_ms and headers, because error reports look for these names.
ProcessRows = Callable[[Rows], Rows]

NO_TIME = -1


class StreamTime:
    """The largest timestamp that an operator has processed; committed with the task."""

    __slots__ = ("ms",)

    def __init__(self, ms: int = NO_TIME) -> None:
        self.ms = ms

    def advance(self, timestamp_ms: int) -> int:
        """Advance to a timestamp if it is larger; returns the largest one so far."""
        if timestamp_ms > self.ms:
            self.ms = timestamp_ms
        return self.ms


class PunctuationType(Enum):
    """The kind of time by which a punctuator is scheduled."""

    STREAM_TIME = "stream_time"
    WALL_CLOCK_TIME = "wall_clock_time"


Punctuator = Callable[[int], None]  # called with the time of the punctuation in ms


class Cancellable(Protocol):
    """A schedule that can be cancelled."""

    def cancel(self) -> None:
        """Cancel the punctuator."""
        ...


class CacheBudget:
    """The used bytes and the limit of the cache of results; tasks of a thread share one."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0


class NodeContext(Protocol):
    """The context of a node in a task. Only the task's thread uses it."""

    @property
    def node(self) -> str:
        """The name of the node."""
        ...

    @property
    def task_id(self) -> str:
        """The task, for example "0_3"."""
        ...

    @property
    def partition(self) -> int:
        """The partition number of the task."""
        ...

    @property
    def application_id(self) -> str:
        """The application id, the prefix of the names of internal topics."""
        ...

    @property
    def forward(self) -> Process:
        """Forwards a record to all children, in order; get it when opening, not per record."""
        ...

    def forward_to(self, child: str) -> Process:
        """Get the function that forwards to one child; an unknown name raises StreamsError."""
        ...

    def store(self, name: str) -> object:
        """Get an open store of this node, or a global one to read; or raise StoreNotFound."""
        ...

    def time(self, name: str | None = None) -> StreamTime:
        """A stream time that is committed: the node's own, or one shared by name."""
        ...

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """An object that nodes of the task share by name; created on first use."""
        ...

    @property
    def task_time_ms(self) -> int:
        """The largest timestamp of the task's input records so far, -1 at first."""
        ...

    def now_ms(self) -> int:
        """The wall clock."""
        ...

    @property
    def position(self) -> Position | None:
        """The position of the current input record; None inside a punctuator."""
        ...

    def at(self, position: Position | None, action: Callable[[], None]) -> None:
        """Run an action with this as the current position: for cached results."""
        ...

    def drop(self, reason: str, *, expected: bool = False) -> None:
        """Count the current record as dropped, and log why: a warning unless it is expected."""
        ...

    def schedule(
        self, interval_ms: int, kind: PunctuationType, punctuator: Punctuator
    ) -> Cancellable:
        """Call a punctuator periodically.

        Stream time: times are multiples of the interval, the first with the first record. Wall
        clock: first after one interval. Missed times are skipped.
        """
        ...

    def request_commit(self) -> None:
        """Commit soon."""
        ...

    @property
    def cache(self) -> CacheBudget:
        """The cache of results between commits, which all tasks of the thread share."""
        ...

    @property
    def cache_bytes(self) -> int:
        """The size of the cache; 0: results are not cached."""
        ...

    def before_commit(self, action: Callable[[], None]) -> None:
        """Call this at each commit, before records are sent; those of parents are called first."""
        ...

    def after_round(self, action: Callable[[], None]) -> None:
        """Call this after each round of processing; those of parents are called first."""
        ...

    def on_close(self, action: Callable[[], None]) -> None:
        """Call this when the task closes."""
        ...

    def setting(self, name: str) -> object:
        """A setting of the application by its name; None when it is not set."""
        ...


class Operator(Protocol):
    """An immutable description of a node."""

    def open(self, context: NodeContext) -> Process:
        """Open the node in a task; returns its function."""
        ...


@runtime_checkable
class RowsOperator(Operator, Protocol):
    """An operator that can also be pulled. It uses neither stores nor stream times."""

    def open_rows(self, context: NodeContext) -> ProcessRows:
        """Open the node; its generator yields the results of a row before it reads the next one."""
        ...


class ProcessorContext(Protocol[KOut, VOut]):
    """The context of a user's Processor."""

    @property
    def task_id(self) -> str:
        """The task, for example "0_3"."""
        ...

    @property
    def application_id(self) -> str:
        """The application id."""
        ...

    def forward(self, record: Record[KOut, VOut], child: str | None = None) -> None:
        """Forward a record to all children, or to one by name."""
        ...

    # Any, because the type of the store is not known here.
    def store(self, name: str) -> Any:
        """A store that is connected to the processor, or a global one."""
        ...

    def schedule(
        self, interval_ms: int, kind: PunctuationType, punctuator: Punctuator
    ) -> Cancellable:
        """Call a punctuator periodically."""
        ...

    def commit(self) -> None:
        """Request a commit soon."""
        ...

    @property
    def record_metadata(self) -> Position | None:
        """Topic, partition and offset of the record; None inside a punctuator."""
        ...

    @property
    def stream_time_ms(self) -> int:
        """The task's stream time."""
        ...

    def now_ms(self) -> int:
        """The wall clock."""
        ...


class Processor(ABC, Generic[KIn, VIn, KOut, VOut]):
    """A node written by the user; each task has a new object.

    >>> class Alarm(Processor[str, float, str, str]):
    ...     def process(self, record):
    ...         if record.value > 90:
    ...             self.context.forward(record.with_value("too hot"))
    """

    context: ProcessorContext[KOut, VOut]

    def init(self, context: ProcessorContext[KOut, VOut]) -> None:
        """Initialize; a processor that overrides this stores the context or calls super()."""
        self.context = context

    @abstractmethod
    def process(self, record: Record[KIn, VIn]) -> None:
        """Process a record."""

    def close(self) -> None:
        """Release what `init` acquired."""
