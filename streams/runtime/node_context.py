"""The contexts of nodes: one that all nodes of a task share, and one for each node."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from broker.clock import Clock
from streams.config import StreamsConfig
from streams.errors import StoreNotFound, StreamsError
from streams.processor import (
    NO_TIME,
    CacheBudget,
    Cancellable,
    Process,
    PunctuationType,
    Punctuator,
    StreamTime,
)
from streams.record import Headers, Position
from streams.runtime.current import Current
from streams.runtime.dead_letters import Failures
from streams.runtime.drop_log import DropLog
from streams.runtime.output import Output
from streams.runtime.punctuation import PunctuationQueue, Schedule
from streams.runtime.task_metrics import DROPPED, TaskMetrics
from streams.runtime.task_times import short_name
from streams.state.task_state import TaskState

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class TaskContext:
    """The state that all nodes of a task share."""

    task_id: str
    partition: int
    application_id: str
    config: StreamsConfig
    clock: Clock
    output: Output
    metrics: TaskMetrics
    state: TaskState
    global_stores: Mapping[str, object]
    cache: CacheBudget
    current: Current = field(default_factory=Current)
    stream_punctuations: PunctuationQueue = field(default_factory=PunctuationQueue)
    clock_punctuations: PunctuationQueue = field(default_factory=PunctuationQueue)
    times: dict[str, StreamTime] = field(default_factory=dict)
    committed_times: dict[str, int] = field(default_factory=dict)  # by short name
    shared: dict[str, object] = field(default_factory=dict)
    before_commit: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    after_round: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    on_close: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    # Schedules created while nodes are opened, children first; they are added parents first.
    early_schedules: list[tuple[int, PunctuationType, Schedule]] | None = field(
        default_factory=list
    )
    commit_requested: bool = False
    failures: Failures = field(init=False)

    def __post_init__(self) -> None:
        self.failures = Failures(self.task_id, self.config, self.current, self.output, self.metrics)

    def time(self, name: str) -> StreamTime:
        """The stream time of this name; it continues from the last commit."""
        time = self.times.get(name)
        if time is None:
            time = StreamTime(self.committed_times.get(short_name(name), NO_TIME))
            self.times[name] = time
        return time

    def resume_times(self, committed: Mapping[str, int]) -> None:
        """Continue from committed times, by their short names; time never goes back."""
        for name, ms in committed.items():
            self.committed_times[name] = max(ms, self.committed_times.get(name, NO_TIME))
        for name, time in self.times.items():
            time.advance(self.committed_times.get(short_name(name), NO_TIME))

    def add_schedule(self, kind: PunctuationType, schedule: Schedule) -> None:
        """Add a schedule; by stream time it is due immediately, otherwise after one interval."""
        if kind is PunctuationType.STREAM_TIME:
            self.stream_punctuations.add(0, schedule)
        else:
            self.clock_punctuations.add(self.clock.now_ms() + schedule.interval_ms, schedule)

    def opened(self) -> None:
        """Sort actions and schedules, parents first; called when all nodes are open."""
        early, self.early_schedules = self.early_schedules or [], None
        for _, kind, schedule in sorted(early, key=lambda entry: entry[0]):
            self.add_schedule(kind, schedule)
        self.before_commit.sort(key=lambda entry: entry[0])
        self.after_round.sort(key=lambda entry: entry[0])
        self.on_close.sort(key=lambda entry: entry[0])


def forward_to_all(children: tuple[Process, ...]) -> Process:
    """A function that forwards a record to each child, in order."""
    if not children:
        return _forward_to_none
    if len(children) == 1:
        return children[0]
    if len(children) == 2:
        first, second = children

        def forward_to_two(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            first(key, value, timestamp_ms, headers)
            second(key, value, timestamp_ms, headers)

        return forward_to_two

    def forward(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        for child in children:
            child(key, value, timestamp_ms, headers)

    return forward


def _forward_to_none(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
    """A node without children."""


class TaskNodeContext:
    """The NodeContext of one node; `index` is its position in the sub-topology, parents first."""

    __slots__ = (
        "_children",
        "_dropped",
        "_drops",
        "_forward",
        "_index",
        "_node",
        "_stores",
        "_task",
    )

    def __init__(
        self,
        task_context: TaskContext,
        node: str,
        index: int,
        *,
        children: Mapping[str, Process],
        stores: tuple[str, ...],
    ) -> None:
        self._task = task_context
        self._node = node
        self._index = index
        self._children = children
        self._stores = stores
        self._forward = forward_to_all(tuple(children.values()))
        self._dropped = task_context.metrics.counter(DROPPED)
        self._drops = DropLog(node, task_context.task_id, task_context.current, task_context.clock)

    @property
    def node(self) -> str:
        """The name of the node."""
        return self._node

    @property
    def task_id(self) -> str:
        """The task, for example "0_3"."""
        return self._task.task_id

    @property
    def partition(self) -> int:
        """The partition number of the task."""
        return self._task.partition

    @property
    def application_id(self) -> str:
        """The application id."""
        return self._task.application_id

    @property
    def forward(self) -> Process:
        """Forwards a record to all children, in order."""
        return self._forward

    def forward_to(self, child: str) -> Process:
        """The function that forwards a record to one child."""
        process = self._children.get(child)
        if process is None:
            names = ", ".join(f'"{name}"' for name in self._children) or "none"
            raise StreamsError(
                f'node "{self._node}" has no child "{child}"', hint=f"its children are {names}"
            )
        return process

    def store(self, name: str) -> object:
        """An open store of this node, or a global one."""
        if name in self._stores:
            return self._task.state.store(name)
        if name in self._task.global_stores:
            return self._task.global_stores[name]
        known = ", ".join(f'"{store}"' for store in self._stores) or "none"
        raise StoreNotFound(
            f'store "{name}" is not connected to node "{self._node}"',
            at=f"task {self._task.task_id}",
            hint=f"connected are {known}; name the store when you add the processor",
        )

    def time(self, name: str | None = None) -> StreamTime:
        """A stream time that is committed with the task's offsets."""
        return self._task.time(self._node if name is None else name)

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """An object that nodes of the task share by name."""
        shared = self._task.shared
        if name not in shared:
            shared[name] = make()
        return cast("T", shared[name])

    @property
    def task_time_ms(self) -> int:
        """The largest timestamp of the task's input records so far."""
        return self._task.current.time_ms

    def now_ms(self) -> int:
        """The wall clock."""
        return self._task.clock.now_ms()

    @property
    def position(self) -> Position | None:
        """The position of the current input record."""
        return self._task.current.position

    def at(self, position: Position | None, action: Callable[[], None]) -> None:
        """Run an action with this position as that of the current record."""
        current = self._task.current
        chunk, held = current.chunk, current.held
        current.chunk, current.held = None, position
        try:
            action()
        except Exception as error:
            if current.failed is None or current.failed[0] is not error:
                current.failed = (error, position)
            raise
        finally:
            current.chunk, current.held = chunk, held

    def drop(self, reason: str, *, expected: bool = False) -> None:
        """Count the current record as dropped, and log why, at a limited rate."""
        self._dropped.value += 1
        self._drops.add(reason, expected=expected)

    def schedule(
        self, interval_ms: int, kind: PunctuationType, punctuator: Punctuator
    ) -> Cancellable:
        """Call a punctuator periodically."""
        schedule = Schedule(self._node, interval_ms, punctuator)
        if self._task.early_schedules is None:
            self._task.add_schedule(kind, schedule)
        else:
            self._task.early_schedules.append((self._index, kind, schedule))
        return schedule

    def request_commit(self) -> None:
        """Commit soon."""
        self._task.commit_requested = True

    @property
    def cache(self) -> CacheBudget:
        """The cache of results between commits, which all tasks of the thread share."""
        return self._task.cache

    @property
    def cache_bytes(self) -> int:
        """The size of the cache; 0: results are not cached."""
        return self._task.cache.limit

    def before_commit(self, action: Callable[[], None]) -> None:
        """Call this at each commit, before records are sent; those of parents are called first."""
        self._task.before_commit.append((self._index, action))

    def after_round(self, action: Callable[[], None]) -> None:
        """Call this after each round of processing; those of parents are called first."""
        self._task.after_round.append((self._index, action))

    def on_close(self, action: Callable[[], None]) -> None:
        """Call this when the task closes, parents first."""
        self._task.on_close.append((self._index, action))

    def setting(self, name: str) -> object:
        """A setting of the application by its name."""
        return self._task.config.get(name)
