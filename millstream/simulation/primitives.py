"""Primitives: what `broker.concurrency` gives inside a simulation.

They behave as Python's own, but a thread that waits lets the scheduler choose who goes on, and
timeouts are of virtual time. Taking and releasing a lock are points at which another thread may
have its turn, so that a seed covers orders that a real machine shows once in a million runs.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from queue import Empty
from types import TracebackType
from typing import Any, Generic, TypeVar

from millstream.simulation.scheduler import MICROSECONDS, Scheduler, SimulationOver, Task

T = TypeVar("T")

SWITCH_CHANCE = 0.05  # of another thread's turn, where a lock is taken or released
SECOND_US = 1_000 * MICROSECONDS
LONG_US = 100 * MICROSECONDS  # no lock should be held for so long


class World:
    """What all primitives of a simulation share: its scheduler, and how long locks were held."""

    def __init__(self, scheduler: Scheduler) -> None:
        """Nothing measured yet."""
        self.scheduler = scheduler
        self.longest_virtual: dict[str, int] = {}
        self.longest_stack: dict[str, list[str]] = {}  # where its holder waited
        self.longest_real: dict[str, float] = {}

    def deadline_us(self, timeout: float | None) -> int | None:
        """The virtual time at which so many seconds have passed."""
        if timeout is None:
            return None
        return self.scheduler.now_us + max(0, int(timeout * SECOND_US))

    def task(self) -> Task:
        """The thread that runs."""
        task = self.scheduler.current
        assert task is not None, "no simulated thread runs"
        return task


class _Waiters:
    """Threads that wait for something, in the order they came."""

    __slots__ = ("_queue", "_world")

    def __init__(self, world: World) -> None:
        self._world = world
        self._queue: deque[tuple[Task, int]] = deque()

    def wait(self, until_us: int | None) -> bool:
        """Block the running thread; whether it was woken."""
        task = self._world.task()
        self._queue.append((task, task.ticket + 1))
        return self._world.scheduler.block(until_us)

    def __bool__(self) -> bool:
        """Whether anybody waits, or has waited until its time was up."""
        return bool(self._queue)

    def wake(self, count: int) -> None:
        """Wake so many, unless their time was up before."""
        queue = self._queue
        while queue and count > 0:
            task, ticket = queue.popleft()
            if task.ticket == ticket and task.process.is_alive:
                self._world.scheduler.wake(task)
                count -= 1

    def wake_all(self) -> None:
        """Wake all."""
        self.wake(len(self._queue))


class SimulatedLock:
    """A lock that one thread holds once."""

    def __init__(self, world: World) -> None:
        """Free."""
        self._world = world
        self._owner: Task | None = None
        self._waiters = _Waiters(world)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, if need be when it is free."""
        scheduler = self._world.scheduler
        if scheduler.is_over:
            return True
        if scheduler.random.random() < SWITCH_CHANCE and blocking:
            scheduler.yield_now()
        if self._owner is not None:
            if not blocking:
                return False
            until_us = self._world.deadline_us(None if timeout < 0 else timeout)
            while self._owner is not None:
                if not self._waiters.wait(until_us) and self._owner is not None:
                    return False
        self._owner = self._world.task()
        return True

    def release(self) -> None:
        """Give it back; any thread may."""
        if self._world.scheduler.is_over:
            return
        if self._owner is None:
            raise RuntimeError("release unlocked lock")
        self._owner = None
        self._waiters.wake(1)

    def locked(self) -> bool:
        """Whether somebody holds it."""
        return self._owner is not None

    def __enter__(self) -> bool:
        """Take it."""
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give it back."""
        self.release()


class SimulatedRLock:
    """A lock that its owner may take again; remembers for how long it was held."""

    def __init__(self, world: World) -> None:
        """Free."""
        self._world = world
        self._scheduler = world.scheduler
        self._owner: Task | None = None
        self._count = 0
        self._waiters = _Waiters(world)
        self._since_us = 0
        self._since_s = 0.0
        self._since_step = 0
        self.name: str | None = None  # of a lock whose holds are measured

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, if need be when it is free."""
        scheduler = self._scheduler
        if scheduler.is_over:
            return True
        task = scheduler.current
        assert task is not None, "no simulated thread runs"
        if self._owner is task:
            self._count += 1
            return True
        if blocking and scheduler.random.random() < SWITCH_CHANCE:
            scheduler.yield_now()
        if self._owner is not None:
            if not blocking:
                return False
            until_us = self._world.deadline_us(None if timeout < 0 else timeout)
            while self._owner is not None:
                if not self._waiters.wait(until_us) and self._owner is not None:
                    return False
        self._owner = task
        self._count = 1
        if self.name is not None:
            self._begin()
        return True

    def release(self) -> None:
        """Give it back."""
        scheduler = self._scheduler
        if scheduler.is_over:
            return
        if self._owner is not scheduler.current:
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if self._count == 0:
            self._free()

    def _free(self) -> None:
        if self.name is not None:
            self._measure(self.name)
        self._owner = None
        if self._waiters:
            self._waiters.wake(1)

    def _begin(self) -> None:
        self._world.task().watches_blocks = True
        self._since_us = self._scheduler.now_us
        self._since_step = self._scheduler.steps
        self._since_s = time.thread_time()

    def _measure(self, name: str) -> None:
        world = self._world
        if self._owner is not None:
            self._owner.watches_blocks = False
        held_us = world.scheduler.now_us - self._since_us
        if held_us > world.longest_virtual.get(name, 0):
            world.longest_virtual[name] = held_us
            if held_us > LONG_US and self._owner is not None:
                world.longest_stack[name] = self._owner.blocked_at
        if world.scheduler.steps == self._since_step:  # else others ran meanwhile
            held_s = time.thread_time() - self._since_s
            world.longest_real[name] = max(world.longest_real.get(name, 0.0), held_s)

    def _is_owned(self) -> bool:
        return self._owner is self._world.scheduler.current

    def _release_save(self) -> int:
        """Give it back however often it was taken; for conditions."""
        if not self._is_owned():
            raise RuntimeError("cannot release un-acquired lock")
        count, self._count = self._count, 0
        self._free()
        return count

    def _acquire_restore(self, count: int) -> None:
        """Take it as often as before; for conditions."""
        self.acquire()
        self._count = count

    def __enter__(self) -> bool:
        """Take it."""
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give it back."""
        self.release()


class SimulatedCondition:
    """Threads wait for others to say that something has changed."""

    def __init__(self, world: World, lock: SimulatedLock | SimulatedRLock | None = None) -> None:
        """With a lock of its own, unless one is given."""
        self._world = world
        self._lock = SimulatedRLock(world) if lock is None else lock
        self._waiters = _Waiters(world)
        self.acquire = self._lock.acquire
        self.release = self._lock.release

    def __enter__(self) -> bool:
        """Take the lock."""
        return self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the lock back."""
        self._lock.release()

    def _is_owned(self) -> bool:
        if isinstance(self._lock, SimulatedRLock):
            return self._lock._is_owned()  # noqa: SLF001 - as Python's own conditions do
        return self._lock.locked()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait without the lock; False when the time was up first."""
        if self._world.scheduler.is_over:
            raise SimulationOver
        if not self._is_owned():
            raise RuntimeError("cannot wait on un-acquired lock")
        until_us = self._world.deadline_us(timeout)
        lock = self._lock
        count = 0
        if isinstance(lock, SimulatedRLock):
            count = lock._release_save()  # noqa: SLF001
        else:
            lock.release()
        try:
            return self._waiters.wait(until_us)
        finally:
            if isinstance(lock, SimulatedRLock):
                lock._acquire_restore(count)  # noqa: SLF001
            else:
                lock.acquire()

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Wait until something is true."""
        until_us = self._world.deadline_us(timeout)
        found = predicate()
        while not found:
            left = None
            if until_us is not None:
                left = (until_us - self._world.scheduler.now_us) / SECOND_US
                if left <= 0:
                    break
            self.wait(left)
            found = predicate()
        return found

    def notify(self, n: int = 1) -> None:
        """Wake some that wait."""
        if not self._world.scheduler.is_over:
            if not self._is_owned():
                raise RuntimeError("cannot notify on un-acquired lock")
            self._waiters.wake(n)

    def notify_all(self) -> None:
        """Wake all that wait."""
        if not self._world.scheduler.is_over:
            if not self._is_owned():
                raise RuntimeError("cannot notify on un-acquired lock")
            self._waiters.wake_all()


class SimulatedEvent:
    """A flag that threads wait for."""

    def __init__(self, world: World) -> None:
        """Not set."""
        self._world = world
        self._waiters = _Waiters(world)
        self._flag = False

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._flag

    def set(self) -> None:
        """Set it, and wake all that wait."""
        self._flag = True
        if not self._world.scheduler.is_over:
            self._waiters.wake_all()

    def clear(self) -> None:
        """Set it back."""
        self._flag = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; False when the time was up first."""
        if not self._flag:
            self._waiters.wait(self._world.deadline_us(timeout))
        return self._flag


class SimulatedThread:
    """A thread of a simulated process: that of the thread which starts it."""

    def __init__(  # noqa: PLR0913 - those of Python's own threads
        self,
        world: World,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[object] = (),
        kwargs: Mapping[str, object] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        """Not started."""
        self._world = world
        process = world.task().process
        self.name = name or f"Thread-{next(process.thread_numbers)}"
        self.daemon = bool(daemon)
        self._call = (target, tuple(args), dict(kwargs or {}))
        self._ended = SimulatedEvent(world)
        self.task: Task | None = None

    def start(self) -> None:
        """Let it have its turns."""
        if self.task is not None:
            raise RuntimeError("threads can only be started once")
        process = self._world.task().process
        self.task = self._world.scheduler.spawn(process, self.name, self._run)
        self.task.thread = self

    def _run(self) -> None:
        try:
            target, args, kwargs = self._call
            if target is not None:
                target(*args, **kwargs)
        finally:
            self._call = (None, (), {})  # what it was given may hold files
            self._ended.set()

    @property
    def ident(self) -> int | None:
        """A number of its own."""
        return None if self.task is None else self.task.number

    def is_alive(self) -> bool:
        """Whether it was started and has not ended."""
        return self.task is not None and not self._ended.is_set()

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        if self._world.scheduler.is_over:
            return
        if self.task is None:
            raise RuntimeError("cannot join thread before it is started")
        if self.task is self._world.scheduler.current:
            raise RuntimeError("cannot join current thread")
        self._ended.wait(timeout)


class SimulatedQueue(Generic[T]):
    """A queue without a limit, as queue.SimpleQueue."""

    def __init__(self, world: World) -> None:
        """Empty."""
        self._items: deque[T] = deque()
        self._world = world
        self._waiters = _Waiters(world)

    def put(self, item: T, block: bool = True, timeout: float | None = None) -> None:
        """Add to the end."""
        self._items.append(item)
        if not self._world.scheduler.is_over:
            self._waiters.wake(1)

    put_nowait = put

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Take from the front, if need be when something comes."""
        until_us = self._world.deadline_us(timeout)
        while not self._items:
            if not block or (not self._waiters.wait(until_us) and not self._items):
                raise Empty
        return self._items.popleft()

    def get_nowait(self) -> T:
        """Take from the front, if there is something."""
        return self.get(block=False)

    def empty(self) -> bool:
        """Whether nothing is in it."""
        return not self._items

    def qsize(self) -> int:
        """How much is in it."""
        return len(self._items)


class SimulatedExecutor(Executor):
    """A pool of threads; one thread for each call, which is the same to those who use it."""

    def __init__(
        self,
        world: World,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        **_options: Any,  # Any: initializers, which nobody uses here
    ) -> None:
        """No threads yet."""
        self._world = world
        self._room = SimulatedCondition(world)
        self._free = max_workers or 4
        self._prefix = thread_name_prefix or "pool"
        self._open: dict[SimulatedThread, None] = {}
        self._closed = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Call a function in a thread of its own, once there is one."""
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[T] = Future()

        def body() -> None:
            with self._room:
                while self._free == 0:
                    self._room.wait()
                self._free -= 1
            try:
                if future.set_running_or_notify_cancel():
                    try:
                        future.set_result(fn(*args, **kwargs))
                    except BaseException as error:
                        future.set_exception(error)
            finally:
                with self._room:
                    self._free += 1
                    self._room.notify()
                    self._open.pop(thread, None)

        thread = SimulatedThread(self._world, target=body, name=self._prefix)
        self._open[thread] = None
        thread.start()
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Iterator[T]:
        """Results in the order of the arguments."""
        futures = [self.submit(fn, *each) for each in zip(*iterables, strict=False)]
        return (future.result(timeout) for future in futures)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls, and wait for those that run."""
        self._closed = True
        while wait and self._open and not self._world.scheduler.is_over:
            next(iter(self._open)).join()
