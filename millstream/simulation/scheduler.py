"""Scheduler: runs simulated threads in one thread of the machine, on virtual time.

           blocks, with or without a deadline          woken, or its deadline has come
    READY ------------------------------------> BLOCKED -------------------------------> READY
      |  its function returns                          its process is killed
      +----------------------------> ENDED             (it is never resumed)

A simulated thread is a greenlet: it runs until it blocks on a lock, a condition, a socket or the
disk. Then the scheduler chooses, by the seed, one of the ready threads. If none is ready, virtual
time advances to the next deadline. So a seed determines one order of events, and the code is the
production code.
"""

import itertools
import traceback
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

from greenlet import getcurrent, greenlet

from millstream.simulation.history import History

TURNS_MAX = 50_000  # of one thread in one virtual second
MICROSECONDS = 1_000
SECOND_US = 1_000_000
STACK_LINES = 16


class SimulationOver(BaseException):
    """Raised in all remaining threads when a simulation ends, to end them, too."""


class NoProgress(AssertionError):
    """A thread spins: it runs again and again, and virtual time hardly advances."""


def _no_hub() -> object:
    raise AssertionError("nothing runs")


class Process:
    """One simulated process; its threads are killed together."""

    def __init__(self, name: str, random: Random) -> None:
        self.name = name
        self.random = random
        self.is_alive = True
        self.is_frozen = False
        self.suspended: list[Task] = []  # ready, but frozen
        self.on_kill: list[Callable[[], None]] = []
        self.thread_numbers = itertools.count(1)

    def __repr__(self) -> str:
        return self.name


class Task:
    """One simulated thread."""

    __slots__ = (
        *("blocked_at", "greenlet", "is_over", "name", "number", "process", "second", "thread"),
        *("switch", "ticket", "turns", "watches_blocks", "woken"),
    )

    def __init__(self, name: str, process: Process, number: int) -> None:
        self.name = name
        self.number = number
        self.process = process
        self.greenlet: greenlet | None = None
        self.switch: Callable[[], object] = _no_hub  # to its greenlet
        self.second = self.turns = 0  # its turns in the current second
        self.ticket = 0  # counts its blocks: an old deadline must not wake a later block
        self.woken = False
        self.is_over = False
        self.watches_blocks = False  # while it holds a lock whose holds are measured
        self.blocked_at: list[str] = []
        self.thread: object = None  # its thread object

    def __repr__(self) -> str:
        return f"{self.process.name}/{self.name}"


class Scheduler:
    """Runs simulated threads, one at a time; everything happens in the thread that calls `run`."""

    def __init__(self, random: Random, history: History) -> None:
        self.random = random
        self.history = history
        self.now_us = 0
        self.steps = 0
        self.current: Task | None = None
        self.is_over = False
        self.crashed: list[tuple[Task, BaseException]] = []
        self._ready: list[Task] = []
        self._deadlines: list[tuple[int, int, Task, int]] = []
        self._order = itertools.count()
        self._tasks: dict[Task, None] = {}  # that have not ended, including killed ones
        self._hub: greenlet | None = None
        self._switch_to_hub: Callable[[], object] = _no_hub
        self._most_turns = 0  # of a thread in one virtual second
        self._busiest: Task | None = None

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

        task.greenlet = greenlet(run, parent=self._hub)  # continues there when it ends
        task.switch = task.greenlet.switch
        self._tasks[task] = None
        self._ready.append(task)
        return task

    def block(self, until_us: int | None) -> bool:
        """Block until `wake` or until a time; returns whether the thread was woken."""
        if self.is_over:
            raise SimulationOver
        task = self.current
        assert task is not None, "only simulated threads can wait"
        task.woken = False
        ticket = task.ticket = task.ticket + 1
        if task.watches_blocks:
            task.blocked_at = traceback.format_stack(limit=STACK_LINES)
        if until_us is not None:
            heappush(self._deadlines, (until_us, next(self._order), task, ticket))
        self._switch_to_hub()
        if self.is_over:
            raise SimulationOver
        return task.woken

    def yield_now(self) -> None:
        """Yield to other threads."""
        if self.is_over:
            raise SimulationOver
        assert self.current is not None
        self._ready.append(self.current)
        self._switch_to_hub()
        if self.is_over:
            raise SimulationOver

    def sleep(self, microseconds: int) -> None:
        """Block for a duration."""
        self.block(self.now_us + max(0, microseconds))

    def wake(self, task: Task) -> None:
        """Make a blocked thread ready; it must be blocked."""
        task.woken = True
        task.ticket += 1
        if task.process.is_alive:
            self._ready.append(task)

    def wake_at(self, task: Task, ticket: int, at_us: int) -> None:
        """Make a blocked thread ready at a time at the latest, if it is still in this block."""
        heappush(self._deadlines, (at_us, next(self._order), task, ticket))

    def spend(self, microseconds: int) -> None:
        """Advance time by the cost of an operation of the running thread."""
        self.now_us += microseconds

    # --- called by the simulation ---------------------------------------------------------------

    def kill(self, process: Process) -> None:
        """Kill a process: its threads are never resumed, and do not clean up."""
        process.is_alive = False
        self._ready[:] = [task for task in self._ready if task.process is not process]
        for callback in process.on_kill:
            callback()
        if self.current is not None and self.current.process is process:
            self._switch_to_hub()  # never returns

    def freeze(self, process: Process) -> None:
        """Suspend all threads of a process, as SIGSTOP or a long page-in does.

        The rest of the world continues: its connections stay open, and its deadlines pass.
        """
        process.is_frozen = True

    def thaw(self, process: Process) -> None:
        """Resume the threads of a frozen process."""
        process.is_frozen = False
        suspended, process.suspended = process.suspended, []
        if process.is_alive:
            self._ready.extend(suspended)

    def run(self, until_us: int) -> None:
        """Run until a time, or until there is nothing left to run.

        Everything in a simulation is called by this loop, so it is written for speed.
        """
        assert self.current is None, "the scheduler runs already"
        self._become_hub()
        ready, deadlines, random = self._ready, self._deadlines, self.random.random
        while True:
            if not ready:
                if not self._advance(until_us):
                    return
            elif deadlines and deadlines[0][0] <= self.now_us:
                self._wake_due()
            count = len(ready)
            if count > 1:
                number = int(random() * count)
                task = ready[number]
                ready[number] = ready[-1]
                ready.pop()
            else:
                task = ready.pop()
            if task.process.is_frozen:
                task.process.suspended.append(task)
                continue
            self.steps += 1
            second = self.now_us // SECOND_US
            if task.second == second:
                task.turns = turns = task.turns + 1
                if turns > self._most_turns:
                    self._most_turns, self._busiest = turns, task
                    if turns > TURNS_MAX:
                        raise NoProgress(f"{task} runs again and again at {self.now_us} us")
            else:
                task.second, task.turns = second, 1
            self.current = task
            task.switch()
            self.current = None

    @property
    def busiest(self) -> tuple[int, str]:
        """The most turns of a thread in one virtual second, and which thread."""
        return self._most_turns, "" if self._busiest is None else str(self._busiest)

    def _become_hub(self) -> None:
        hub = getcurrent()
        if hub is not self._hub:
            self._hub, self._switch_to_hub = hub, hub.switch

    def _advance(self, until_us: int) -> bool:
        """Advance time to the next deadline; False if there is none before `until_us`."""
        while self._deadlines:
            due_us, _, task, ticket = self._deadlines[0]
            if task.ticket != ticket or not task.process.is_alive:
                heappop(self._deadlines)
                continue
            if due_us > until_us:
                break
            heappop(self._deadlines)
            if due_us > self.now_us:
                self.now_us = due_us
            task.ticket += 1
            self._ready.append(task)
            self._wake_due()
            return True
        self.now_us = max(self.now_us, until_us)
        return False

    def _wake_due(self) -> None:
        """Make all threads ready whose deadlines have passed."""
        while self._deadlines and self._deadlines[0][0] <= self.now_us:
            _, _, task, ticket = heappop(self._deadlines)
            if task.ticket == ticket and task.process.is_alive:
                task.ticket += 1
                self._ready.append(task)

    def end(self) -> None:
        """End all remaining threads: SimulationOver is raised where they wait."""
        self.is_over = True
        self._become_hub()
        for task in list(self._tasks):
            if task.greenlet is not None and not task.is_over and task.greenlet:
                self.current = task
                try:
                    task.greenlet.throw(SimulationOver)
                except BaseException as error:  # raised while the thread cleaned up
                    self.history.detail(f"{task} ended with {error!r}")
        self.current = None
        self._tasks.clear()
        self._ready.clear()
        self._deadlines.clear()
