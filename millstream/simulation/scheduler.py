"""Scheduler: threads that take turns in one thread of the machine, on virtual time.

           blocks, with or without a deadline          woken, or its deadline has come
    READY ------------------------------------> BLOCKED -------------------------------> READY
      |  its function returns                          its process is killed
      +----------------------------> ENDED             (it is never resumed)

A simulated thread is a greenlet: it runs until it blocks on a lock, a condition, a socket or the
disk, and the scheduler then chooses, by the seed, which of those that are ready goes on. When none
is ready, virtual time moves on to the next deadline. So one seed is one order of events, and the
code that runs is that of production, where real threads do the same.
"""

import heapq
import itertools
import traceback
from collections.abc import Callable
from random import Random

from greenlet import getcurrent, greenlet

from millstream.simulation.history import History

STEPS_AT_ONE_TIME_MAX = 200_000
MICROSECONDS = 1_000
SECOND_US = 1_000_000
STACK_LINES = 16


class SimulationOver(BaseException):
    """Raised in threads that are left when a simulation ends, so that they end, too."""


class NoProgress(AssertionError):
    """Threads take turns without end, and time does not move."""


class Process:
    """One simulated process: its threads live and die together."""

    def __init__(self, name: str, random: Random) -> None:
        """A process that runs."""
        self.name = name
        self.random = random
        self.is_alive = True
        self.is_frozen = False
        self.suspended: list[Task] = []  # ready, but frozen
        self.on_kill: list[Callable[[], None]] = []
        self.thread_numbers = itertools.count(1)

    def __repr__(self) -> str:
        """As the history names it."""
        return self.name


class Task:
    """One simulated thread as the scheduler sees it."""

    __slots__ = (
        *("blocked_at", "greenlet", "is_over", "name", "number", "process", "second", "thread"),
        *("ticket", "turns", "watches_blocks", "woken"),
    )

    def __init__(self, name: str, process: Process, number: int) -> None:
        """Not started."""
        self.name = name
        self.number = number
        self.process = process
        self.greenlet: greenlet | None = None
        self.second = self.turns = 0  # how many turns it has had in the present second
        self.ticket = 0  # counts its blocks: an old deadline must not wake a later block
        self.woken = False
        self.is_over = False
        self.watches_blocks = False  # while it holds a lock that nobody should hold for long
        self.blocked_at: list[str] = []
        self.thread: object = None  # what its code calls the current thread

    def __repr__(self) -> str:
        """As the history names it."""
        return f"{self.process.name}/{self.name}"


class Scheduler:
    """Runs simulated threads, one at a time; everything happens in the thread that calls `run`."""

    def __init__(self, random: Random, history: History) -> None:
        """No threads yet; time starts at zero."""
        self.random = random
        self.history = history
        self.now_us = 0
        self.steps = 0
        self.current: Task | None = None
        self.is_over = False
        self.crashed: list[tuple[Task, BaseException]] = []
        self.busiest: tuple[int, str] = (0, "")  # most turns of a thread in one virtual second
        self._ready: list[Task] = []
        self._deadlines: list[tuple[int, int, Task, int]] = []
        self._order = itertools.count()
        self._tasks: dict[Task, None] = {}  # that have not ended: the killed ones stay as they are
        self._hub: greenlet | None = None
        self._steps_at_this_time = 0

    # --- called by simulated threads ------------------------------------------------------------

    def spawn(self, process: Process, name: str, body: Callable[[], object]) -> Task:
        """Start a thread of a process."""
        task = Task(name, process, next(self._order))
        if not process.is_alive or self.is_over:
            return task

        def run() -> None:
            try:
                body()
            except SimulationOver:
                pass
            except BaseException as error:
                self.crashed.append((task, error))
                self.history.add(task, "thread failed", repr(error))
                self.history.detail(traceback.format_exc())
            finally:
                task.is_over = True
                self._tasks.pop(task, None)

        task.greenlet = greenlet(run, parent=self._hub)  # where it goes when it ends
        self._tasks[task] = None
        self._ready.append(task)
        return task

    def block(self, until_us: int | None) -> bool:
        """Wait until `wake` or until a time has come; whether somebody woke the thread."""
        if self.is_over:
            raise SimulationOver
        task = self.current
        assert task is not None, "only simulated threads can wait"
        assert self._hub is not None
        task.woken = False
        task.ticket += 1
        if task.watches_blocks:
            task.blocked_at = traceback.format_stack(limit=STACK_LINES)
        if until_us is not None:
            entry = (until_us, next(self._order), task, task.ticket)
            heapq.heappush(self._deadlines, entry)
        self._hub.switch()
        if self.is_over:
            raise SimulationOver
        return task.woken

    def yield_now(self) -> None:
        """Let others have their turn."""
        if self.is_over:
            raise SimulationOver
        assert self.current is not None
        assert self._hub is not None
        self._ready.append(self.current)
        self._hub.switch()
        if self.is_over:
            raise SimulationOver

    def sleep(self, microseconds: int) -> None:
        """Do nothing for a while."""
        self.block(self.now_us + max(0, microseconds))

    def wake(self, task: Task) -> None:
        """Let a blocked thread go on; the caller knows that it is blocked."""
        task.woken = True
        task.ticket += 1
        if task.process.is_alive:
            self._ready.append(task)

    def wake_at(self, task: Task, ticket: int, at_us: int) -> None:
        """Let a blocked thread go on at a time at the latest; `ticket` says in which block."""
        heapq.heappush(self._deadlines, (at_us, next(self._order), task, ticket))

    def spend(self, microseconds: int) -> None:
        """Time that the running thread needs; others may be late for it."""
        self.now_us += microseconds

    # --- called from outside --------------------------------------------------------------------

    def kill(self, process: Process) -> None:
        """End a process at once: its threads are never resumed, and clean nothing up."""
        process.is_alive = False
        self._ready = [task for task in self._ready if task.process is not process]
        for callback in process.on_kill:
            callback()
        if self.current is not None and self.current.process is process:
            assert self._hub is not None
            self._hub.switch()  # for ever

    def freeze(self, process: Process) -> None:
        """Let no thread of a process go on, as SIGSTOP or a long page-in does.

        The rest of the world does not notice: its connections stay open, and its deadlines pass.
        """
        process.is_frozen = True

    def thaw(self, process: Process) -> None:
        """Let the threads of a process go on."""
        process.is_frozen = False
        suspended, process.suspended = process.suspended, []
        if process.is_alive:
            self._ready.extend(suspended)

    def run(self, until_us: int) -> None:
        """Run until a time has come, or nothing is left to do."""
        assert self.current is None, "the scheduler runs already"
        self._hub = getcurrent()
        while True:
            if not self._ready and not self._advance(until_us):
                return
            self._step()

    def _advance(self, until_us: int) -> bool:
        """Move time to the next deadline; False when there is none before the end."""
        while self._deadlines:
            due_us, _, task, ticket = self._deadlines[0]
            if task.ticket != ticket or not task.process.is_alive:
                heapq.heappop(self._deadlines)
                continue
            if due_us > until_us:
                break
            heapq.heappop(self._deadlines)
            if due_us > self.now_us:
                self.now_us = due_us
                self._steps_at_this_time = 0
            task.ticket += 1
            self._ready.append(task)
            self._take_due()
            return True
        self.now_us = max(self.now_us, until_us)
        return False

    def _take_due(self) -> None:
        """Make ready all threads whose time has come."""
        while self._deadlines and self._deadlines[0][0] <= self.now_us:
            _, _, task, ticket = heapq.heappop(self._deadlines)
            if task.ticket == ticket and task.process.is_alive:
                task.ticket += 1
                self._ready.append(task)

    def _step(self) -> None:
        """One turn of one of the threads that are ready."""
        if self._deadlines and self._deadlines[0][0] <= self.now_us:
            self._take_due()
        ready = self._ready
        number = int(self.random.random() * len(ready)) if len(ready) > 1 else 0
        task = ready[number]
        ready[number] = ready[-1]
        ready.pop()
        if task.process.is_frozen:
            task.process.suspended.append(task)
            return
        self.steps += 1
        self._steps_at_this_time += 1
        if self._steps_at_this_time > STEPS_AT_ONE_TIME_MAX:
            raise NoProgress(f"{task} and others take turns at {self.now_us} us without end")
        self._count_turn(task)
        self.current = task
        assert task.greenlet is not None
        task.greenlet.switch()
        self.current = None

    def _count_turn(self, task: Task) -> None:
        second = self.now_us // SECOND_US
        if task.second != second:
            task.second, task.turns = second, 0
        task.turns += 1
        if task.turns > self.busiest[0]:
            self.busiest = (task.turns, str(task))

    def end(self) -> None:
        """End all threads that are left: SimulationOver is raised where they wait."""
        self.is_over = True
        self._hub = getcurrent()
        for task in list(self._tasks):
            if task.greenlet is not None and not task.is_over and task.greenlet:
                self.current = task
                try:
                    task.greenlet.throw(SimulationOver)
                except BaseException as error:  # what a clean-up of the thread raised
                    self.history.detail(f"{task} ended with {error!r}")
        self.current = None
        self._tasks.clear()
        self._ready.clear()
        self._deadlines.clear()
