"""Primitives: the threads and locks of `broker.concurrency` inside a simulation.

They behave like Python's own, but when a thread waits, the scheduler chooses the next one, and
timeouts are in virtual time. Acquiring and releasing a lock can switch to another thread, so that
seeds cover interleavings that are very rare on a real machine.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future
from functools import partial
from queue import Empty
from typing import Any, Generic, TypeVar

from millstream.simulation.scheduler import MICROSECONDS, Scheduler, SimulationOver, Task

T = TypeVar("T")

SWITCH_CHANCE = 0.05  # of a switch to another thread when a lock is acquired or released
SECOND_US = 1_000 * MICROSECONDS
MARK_SECONDS = 0.002
SHORT_REAL_S = 0.005  # shorter holds are not measured more exactly
LONG_US = 100 * MICROSECONDS  # no lock should be held for this long


class World:
    """The scheduler of a simulation, and the hold times of locks; all primitives share it."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.longest_virtual: dict[str, int] = {}
        self.longest_stack: dict[str, list[str]] = {}  # where its holder waited
        self.longest_real: dict[str, float] = {}
        self._marked_s = 0.0
        self._mark_s = 0.0

    def deadline_us(self, timeout: float | None) -> int | None:
        """The virtual time after this many seconds."""
        if timeout is None:
            return None
        return self.scheduler.now_us + max(0, int(timeout * SECOND_US))

    def processor_mark(self, now_s: float) -> float:
        """The processor time, at most MARK_SECONDS old, because reading it is slow."""
        if now_s - self._marked_s > MARK_SECONDS:
            self._marked_s, self._mark_s = now_s, time.thread_time()
        return self._mark_s

    def task(self) -> Task:
        """The running thread."""
        task = self.scheduler.current
        assert task is not None, "no simulated thread runs"
        return task


class _Waiters:
    """Waiting threads, in order of arrival."""

    __slots__ = ("_queue", "_scheduler")

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._queue: deque[tuple[Task, int]] = deque()

    def wait(self, until_us: int | None) -> bool:
        """Block the running thread; returns whether it was woken."""
        scheduler = self._scheduler
        task = scheduler.current
        assert task is not None, "no simulated thread runs"
        self._queue.append((task, task.ticket + 1))
        return scheduler.block(until_us)

    def wake(self, count: int) -> None:
        """Wake this many threads, except those that have timed out."""
        queue = self._queue
        while queue and count > 0:
            task, ticket = queue.popleft()
            if task.ticket == ticket and task.process.is_alive:
                self._scheduler.wake(task)
                count -= 1

    def wake_all(self) -> None:
        self.wake(len(self._queue))


class SimulatedLock:
    """A lock, optimized for the case that it is free."""

    __slots__ = ("__weakref__", "_owner", "_scheduler", "_waiters", "_world")

    def __init__(self, world: World) -> None:
        self._world = world
        self._scheduler = world.scheduler
        self._owner: Task | None = None
        self._waiters: _Waiters | None = None  # created for the first waiter

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock, waiting if necessary."""
        scheduler = self._scheduler
        if scheduler.is_over:
            return True
        if scheduler.random.random() < SWITCH_CHANCE and blocking:
            scheduler.yield_now()
        if self._owner is not None and not (blocking and self._wait(timeout)):
            return False
        assert scheduler.current is not None, "no simulated thread runs"
        self._owner = scheduler.current
        return True

    def _wait(self, timeout: float) -> bool:
        """Wait until the lock is free; False on timeout."""
        if self._waiters is None:
            self._waiters = _Waiters(self._scheduler)
        until_us = self._world.deadline_us(None if timeout < 0 else timeout)
        while self._owner is not None:
            if not self._waiters.wait(until_us) and self._owner is not None:
                return False
        return True

    def release(self) -> None:
        """Release the lock; any thread may call this."""
        if self._scheduler.is_over:
            return
        if self._owner is None:
            raise RuntimeError("release unlocked lock")
        self._owner = None
        if self._waiters is not None:
            self._waiters.wake(1)

    def locked(self) -> bool:
        """Whether the lock is held."""
        return self._owner is not None

    def _is_owned(self) -> bool:
        return self._owner is not None

    def _release_save(self) -> int:
        """Release the lock, for conditions."""
        self.release()
        return 1

    def _acquire_restore(self, _count: int) -> None:
        """Acquire the lock again, for conditions."""
        self.acquire()

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()


class SimulatedRLock:
    """A reentrant lock; if it has a name, the time of its holds is measured."""

    __slots__ = (
        *("__weakref__", "_count", "_owner", "_scheduler", "_since_mark", "_since_s"),
        *("_since_step", "_since_us", "_waiters", "_world", "name"),
    )

    def __init__(self, world: World) -> None:
        self._world = world
        self._scheduler = world.scheduler
        self._owner: Task | None = None
        self._count = 0
        self._waiters: _Waiters | None = None  # created for the first waiter
        self.name: str | None = None  # holds of a lock with a name are measured

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock, waiting if necessary."""
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
        if self._owner is not None and not (blocking and self._wait(timeout)):
            return False
        self._owner = task
        self._count = 1
        if self.name is not None:
            self._begin(task)
        return True

    def _wait(self, timeout: float) -> bool:
        """Wait until the lock is free; False on timeout."""
        if self._waiters is None:
            self._waiters = _Waiters(self._scheduler)
        until_us = self._world.deadline_us(None if timeout < 0 else timeout)
        while self._owner is not None:
            if not self._waiters.wait(until_us) and self._owner is not None:
                return False
        return True

    def release(self) -> None:
        scheduler = self._scheduler
        if scheduler.is_over:
            return
        if self._owner is not scheduler.current:
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if self._count == 0:
            if self.name is not None:
                self._measure(self.name)
            self._owner = None
            if self._waiters is not None:
                self._waiters.wake(1)

    def _begin(self, task: Task) -> None:
        task.watches_blocks = True
        self._since_us = self._scheduler.now_us
        self._since_step = self._scheduler.steps
        now_s = self._since_s = time.perf_counter()
        self._since_mark = self._world.processor_mark(now_s)

    def _measure(self, name: str) -> None:
        world, owner = self._world, self._owner
        assert owner is not None
        owner.watches_blocks = False
        held_us = self._scheduler.now_us - self._since_us
        if held_us > world.longest_virtual.get(name, 0):
            world.longest_virtual[name] = held_us
            if held_us > LONG_US:
                world.longest_stack[name] = owner.blocked_at
        if self._scheduler.steps == self._since_step:  # otherwise other threads ran meanwhile
            held_s = time.perf_counter() - self._since_s
            if held_s > world.longest_real.get(name, SHORT_REAL_S):
                # The processor may have run something else in the meantime.
                held_s = min(held_s, time.thread_time() - self._since_mark)
                world.longest_real[name] = max(world.longest_real.get(name, 0.0), held_s)

    def _is_owned(self) -> bool:
        return self._owner is self._scheduler.current

    def _release_save(self) -> int:
        """Release the lock completely, for conditions."""
        count, self._count = self._count, 1
        self.release()
        return count

    def _acquire_restore(self, count: int) -> None:
        """Acquire the lock as often as before, for conditions."""
        self.acquire()
        self._count = count

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()


class SimulatedCondition:
    """Threads wait until others notify them."""

    __slots__ = ("__weakref__", "_lock", "_waiters", "_world", "acquire", "release")

    def __init__(self, world: World, lock: SimulatedLock | SimulatedRLock | None = None) -> None:
        self._world = world
        self._lock = lock = SimulatedRLock(world) if lock is None else lock
        self._waiters: _Waiters | None = None  # created for the first waiter
        self.acquire = lock.acquire
        self.release = lock.release

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait without the lock; False on timeout."""
        if self._world.scheduler.is_over:
            raise SimulationOver
        lock = self._lock
        if not lock._is_owned():  # noqa: SLF001 - as Python's own conditions do
            raise RuntimeError("cannot wait on un-acquired lock")
        if self._waiters is None:
            self._waiters = _Waiters(self._world.scheduler)
        until_us = self._world.deadline_us(timeout)
        count = lock._release_save()  # noqa: SLF001
        try:
            return self._waiters.wait(until_us)
        finally:
            lock._acquire_restore(count)  # noqa: SLF001

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Wait until a predicate is true; returns its last value."""
        until_us = self._world.deadline_us(timeout)
        result = predicate()
        while not result:
            left = None
            if until_us is not None:
                left = (until_us - self._world.scheduler.now_us) / SECOND_US
                if left <= 0:
                    break
            self.wait(left)
            result = predicate()
        return result

    def notify(self, n: int = 1) -> None:
        """Wake some waiting threads."""
        if not self._world.scheduler.is_over:
            if not self._lock._is_owned():  # noqa: SLF001
                raise RuntimeError("cannot notify on un-acquired lock")
            if self._waiters is not None:
                self._waiters.wake(n)

    def notify_all(self) -> None:
        """Wake all waiting threads."""
        if not self._world.scheduler.is_over:
            if not self._lock._is_owned():  # noqa: SLF001
                raise RuntimeError("cannot notify on un-acquired lock")
            if self._waiters is not None:
                self._waiters.wake_all()


class SimulatedEvent:
    """A flag that threads wait for."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiters = _Waiters(world.scheduler)
        self._flag = False

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._flag

    def set(self) -> None:
        """Set the flag, and wake all waiting threads."""
        self._flag = True
        if not self._world.scheduler.is_over:
            self._waiters.wake_all()

    def clear(self) -> None:
        """Clear the flag."""
        self._flag = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flag is set; False on timeout."""
        if not self._flag:
            self._waiters.wait(self._world.deadline_us(timeout))
        return self._flag


class SimulatedThread:
    """A thread of the simulated process that starts it."""

    def __init__(  # noqa: PLR0913 - the arguments of Python's own threads
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
        self._world = world
        process = world.task().process
        self.name = name or f"Thread-{next(process.thread_numbers)}"
        self.daemon = bool(daemon)
        self._call = (target, tuple(args), dict(kwargs or {}))
        self._ended = SimulatedEvent(world)
        self.task: Task | None = None

    def start(self) -> None:
        """Start the thread."""
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
            self._call = (None, (), {})  # arguments may reference files
            self._ended.set()

    @property
    def ident(self) -> int | None:
        return None if self.task is None else self.task.number

    def is_alive(self) -> bool:
        """Whether the thread was started and has not ended."""
        return self.task is not None and not self._ended.is_set()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread ends."""
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
        self._items: deque[T] = deque()
        self._world = world
        self._waiters = _Waiters(world.scheduler)

    def put(self, item: T, block: bool = True, timeout: float | None = None) -> None:
        """Add an item."""
        self._items.append(item)
        if not self._world.scheduler.is_over:
            self._waiters.wake(1)

    put_nowait = put

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """Remove and return the first item, waiting if necessary."""
        until_us = self._world.deadline_us(timeout)
        while not self._items:
            if not block or (not self._waiters.wait(until_us) and not self._items):
                raise Empty
        return self._items.popleft()

    def get_nowait(self) -> T:
        """Remove and return the first item, or raise Empty."""
        return self.get(block=False)

    def empty(self) -> bool:
        """Whether the queue is empty."""
        return not self._items

    def qsize(self) -> int:
        """The number of items."""
        return len(self._items)


class SimulatedExecutor(Executor):
    """A pool of threads, which are started when needed."""

    def __init__(
        self,
        world: World,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        **_options: Any,  # Any: initializers are not supported
    ) -> None:
        self._world = world
        self._calls: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._idle_threads = _Waiters(world.scheduler)
        self._idle = 0  # the number of idle threads
        self._threads: list[SimulatedThread] = []
        self._threads_max = max_workers or 4
        self._prefix = thread_name_prefix or "pool"
        self._closed = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Call a function in one of the threads, when one is idle."""
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[T] = Future()
        self._calls.append((future, partial(fn, *args, **kwargs)))
        if len(self._calls) <= self._idle:
            self._idle_threads.wake(1)
        elif len(self._threads) < self._threads_max:
            thread = SimulatedThread(self._world, target=self._work, name=self._prefix)
            self._threads.append(thread)
            thread.start()
        return future

    def _work(self) -> None:
        while True:
            while self._calls:
                future, call = self._calls.popleft()
                if future.set_running_or_notify_cancel():
                    try:
                        future.set_result(call())
                    except BaseException as error:
                        future.set_exception(error)
                        if isinstance(error, SimulationOver):
                            raise
            if self._closed:
                return
            self._idle += 1
            self._idle_threads.wait(None)
            self._idle -= 1

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
        """Accept no more calls, and wait for running ones."""
        self._closed = True
        if self._world.scheduler.is_over:
            return
        self._idle_threads.wake_all()
        for thread in self._threads if wait else ():
            thread.join()
