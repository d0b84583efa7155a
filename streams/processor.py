"""What a node of a topology is to the task that runs it: an Operator, opened in a NodeContext.

An operator is an immutable description (a frozen dataclass with the user's functions and the names
of its stores). A task opens it once and gets a function: the node's code. Opening is where names
become objects, so the function itself finds everything in local variables.

    opened children first:   sink <- map_values <- filter <- source
    a record:                source -> filter -> map_values -> sink, one call inside the other

So processing is depth-first and one record at a time, as in Kafka Streams; whatever the order of
effects there, it is the same here.

Where a source has only one way down to a sink, and every node of it can, records are pulled instead
of pushed: each node is a generator over what its parent gives. The order of effects is the same,
because no node takes a record before the previous one has arrived; a call per node is saved.

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

# The code of a node: key, value, timestamp_ms, headers.
Process = Callable[[object, object, int, Headers], None]
# The same for all records of a run: the arguments of each, one after the other.
Rows = Iterator[tuple[object, object, int, Headers]]
# The code of a node that is pulled: a generator function whose variables for what it takes are
# called key, value, timestamp_ms and headers, because reports of errors look for these names.
ProcessRows = Callable[[Rows], Rows]

NO_TIME = -1


class StreamTime:
    """The largest timestamp an operator has seen; kept with the task's commits."""

    __slots__ = ("ms",)

    def __init__(self, ms: int = NO_TIME) -> None:
        """Begin where the last commit ended, or before all time."""
        self.ms = ms

    def advance(self, timestamp_ms: int) -> int:
        """Take a timestamp into account; the largest so far."""
        if timestamp_ms > self.ms:
            self.ms = timestamp_ms
        return self.ms


class PunctuationType(Enum):
    """Whose time lets a punctuator run."""

    STREAM_TIME = "stream_time"
    WALL_CLOCK_TIME = "wall_clock_time"


Punctuator = Callable[[int], None]  # is given the time of the punctuation, in ms


class Cancellable(Protocol):
    """A schedule that can be ended."""

    def cancel(self) -> None:
        """Let the punctuator not run again."""
        ...


class CacheBudget:
    """How many bytes of results are held back, and how many may be; tasks of a thread share one."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0


class NodeContext(Protocol):
    """What one node of a task may see and do. Only the task's own thread uses it."""

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
        """The application, whose name begins the names of its internal topics."""
        ...

    @property
    def forward(self) -> Process:
        """Hands a record to all children, in order; take it when opening, not per record."""
        ...

    def forward_to(self, child: str) -> Process:
        """Hands a record to one child; an unknown name raises StreamsError."""
        ...

    def store(self, name: str) -> object:
        """An open store of this node (or a global one, to read); else StoreNotFound."""
        ...

    def time(self, name: str | None = None) -> StreamTime:
        """A stream time that is kept with commits: the node's own, or one shared by name."""
        ...

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """An object that nodes of the task share by name; created on first use."""
        ...

    @property
    def task_time_ms(self) -> int:
        """The largest timestamp the task has taken from its inputs, -1 at first."""
        ...

    def now_ms(self) -> int:
        """The wall clock."""
        ...

    @property
    def position(self) -> Position | None:
        """Where the current input record came from; None inside a punctuator."""
        ...

    def at(self, position: Position | None, action: Callable[[], None]) -> None:
        """Do something as if the current record came from there: for results held back."""
        ...

    def drop(self, reason: str, *, expected: bool = False) -> None:
        """Count the current record as dropped, and log why: a warning unless it is expected."""
        ...

    def schedule(
        self, interval_ms: int, kind: PunctuationType, punctuator: Punctuator
    ) -> Cancellable:
        """Call a punctuator again and again.

        Stream time: times are multiples of the interval, the first as soon as time is known. Wall
        clock: first after one interval. Missed times are not made up one by one.
        """
        ...

    def request_commit(self) -> None:
        """Commit soon."""
        ...

    @property
    def cache(self) -> CacheBudget:
        """What results may be held back between commits, by all tasks of the thread."""
        ...

    @property
    def cache_bytes(self) -> int:
        """How large that is; 0: none are."""
        ...

    def before_commit(self, action: Callable[[], None]) -> None:
        """Call this at each commit, before anything is sent; parents' actions come first."""
        ...

    def after_round(self, action: Callable[[], None]) -> None:
        """Call this when the task has processed what it takes at a time; parents' come first."""
        ...

    def on_close(self, action: Callable[[], None]) -> None:
        """Call this when the task closes."""
        ...

    def setting(self, name: str) -> object:
        """A setting of the application by its name; None when it is not set."""
        ...


class Operator(Protocol):
    """An immutable description of a node's code."""

    def open(self, context: NodeContext) -> Process:
        """The node's code, inside one task."""
        ...


@runtime_checkable
class RowsOperator(Operator, Protocol):
    """An operator whose node can be pulled, too. It uses neither stores nor times of the task."""

    def open_rows(self, context: NodeContext) -> ProcessRows:
        """The node's code, for runs: it gives on a row's results before it takes the next row."""
        ...


class ProcessorContext(Protocol[KOut, VOut]):
    """What a user's Processor may see and do."""

    @property
    def task_id(self) -> str:
        """The task, for example "0_3"."""
        ...

    @property
    def application_id(self) -> str:
        """The application."""
        ...

    def forward(self, record: Record[KOut, VOut], child: str | None = None) -> None:
        """Hand a record to all children, or to one by name."""
        ...

    # Any, because the topology knows the store's type by its name only.
    def store(self, name: str) -> Any:
        """A store that is connected to the processor, or a global one."""
        ...

    def schedule(
        self, interval_ms: int, kind: PunctuationType, punctuator: Punctuator
    ) -> Cancellable:
        """Call a punctuator again and again."""
        ...

    def commit(self) -> None:
        """Ask for a commit soon."""
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
    """The code of a node written by the user: a new object for each task.

    >>> class Alarm(Processor[str, float, str, str]):
    ...     def process(self, record):
    ...         if record.value > 90:
    ...             self.context.forward(record.with_value("too hot"))
    """

    context: ProcessorContext[KOut, VOut]

    def init(self, context: ProcessorContext[KOut, VOut]) -> None:
        """Get ready; a processor that overrides this keeps the context or calls super()."""
        self.context = context

    @abstractmethod
    def process(self, record: Record[KIn, VIn]) -> None:
        """Do something with a record."""

    def close(self) -> None:
        """Release what `init` acquired."""
