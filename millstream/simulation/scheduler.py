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
    """Raised in threads that are left when a simulation ends, so that they end, too."""


class NoProgress(AssertionError):
    """A thread takes turns without end, and time hardly moves."""


def _no_hub() -> object:
    raise AssertionError("nothing runs")


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
        *("switch", "ticket", "turns", "watches_blocks", "woken"),
    )

    def __init__(self, name: str, process: Process, number: int) -> None:
        """Not started."""
        self.name = name
        self.number = number
        self.process = process
        self.greenlet: greenlet | None = None
        self.switch: Callable[[], object] = _no_hub  # to its greenlet
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
        self._ready: list[Task] = []
        self._deadlines: list[tuple[int, int, Task, int]] = []
        self._order = itertools.count()
        self._tasks: dict[Task, None] = {}  # that have not ended: the killed ones stay as they are
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

        task.greenlet = greenlet(run, parent=self._hub)  # where it goes when it ends
        task.switch = task.greenlet.switch
        self._tasks[task] = None
        self._ready.append(task)
        return task

    def block(self, until_us: int | None) -> bool:
        """Wait until `wake` or until a time has come; whether somebody woke the thread."""
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
        """Let others have their turn."""
        if self.is_over:
            raise SimulationOver
        assert self.current is not None
        self._ready.append(self.current)
        self._switch_to_hub()
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
        heappush(self._deadlines, (at_us, next(self._order), task, ticket))

    def spend(self, microseconds: int) -> None:
        """Time that the running thread needs; others may be late for it."""
        self.now_us += microseconds

    # --- called from outside --------------------------------------------------------------------

    def kill(self, process: Process) -> None:
        """End a process at once: its threads are never resumed, and clean nothing up."""
        process.is_alive = False
        self._ready[:] = [task for task in self._ready if task.process is not process]
        for callback in process.on_kill:
            callback()
        if self.current is not None and self.current.process is process:
            self._switch_to_hub()  # for ever

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
        """Run until a time has come, or nothing is left to do.

        One turn of one thread after the other. Everything else in a simulation is called by these
        turns, so this loop looks nothing up that it has already.
        """
        assert self.current is None, "the scheduler runs already"
        self._be_hub()
        ready, deadlines, random = self._ready, self._deadlines, self.random.random
        while True:
            if not ready:
                if not self._advance(until_us):
                    return
            elif deadlines and deadlines[0][0] <= self.now_us:
                self._take_due()
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

    def _be_hub(self) -> None:
        hub = getcurrent()
        if hub is not self._hub:
            self._hub, self._switch_to_hub = hub, hub.switch

    def _advance(self, until_us: int) -> bool:
        """Move time to the next deadline; False when there is none before the end."""
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
            self._take_due()
            return True
        self.now_us = max(self.now_us, until_us)
        return False

    def _take_due(self) -> None:
        """Make ready all threads whose time has come."""
        while self._deadlines and self._deadlines[0][0] <= self.now_us:
            _, _, task, ticket = heappop(self._deadlines)
            if task.ticket == ticket and task.process.is_alive:
                task.ticket += 1
                self._ready.append(task)

    def end(self) -> None:
        """End all threads that are left: SimulationOver is raised where they wait."""
        self.is_over = True
        self._be_hub()
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
