"""Pieces of work that take turns on a few threads."""

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from broker import concurrency
from broker.client.shared_threads import SharedThreads, Work
from broker.clock import ManualClock
from tests.support.peer import wait_until

DEADLINE_S = 60


class Turns:
    """A piece of work whose turns a test decides: what each returns, and when it has begun."""

    def __init__(self, *rests: int | None) -> None:
        self._rests = list(rests)
        self.begun = threading.Semaphore(0)
        self.count = 0

    def __call__(self) -> int | None:
        self.count += 1
        self.begun.release()
        return self._rests.pop(0) if self._rests else None

    def wait(self) -> None:
        """Wait for one more turn."""
        assert self.begun.acquire(timeout=DEADLINE_S)


@pytest.fixture
def threads() -> Iterator[SharedThreads]:
    made = SharedThreads("test", 2)
    yield made
    made.close()


def test_a_turn_that_wants_no_rest_is_followed_by_the_next(threads: SharedThreads) -> None:
    turns = Turns(0, 0, 0)
    work = threads.run(turns)
    assert work.join(DEADLINE_S)
    assert turns.count == 4


def test_work_that_rests_goes_on_when_it_is_woken(threads: SharedThreads) -> None:
    turns = Turns(1 << 40, 1 << 40)
    work = threads.run(turns)
    turns.wait()
    work.wake()
    turns.wait()
    work.wake()
    assert work.join(DEADLINE_S)
    assert turns.count == 3


def test_work_that_rests_goes_on_when_its_time_has_come() -> None:
    clock = ManualClock()
    threads = SharedThreads("test", 1, clock)
    first, second = Turns(100), Turns(50)
    works = [threads.run(first), threads.run(second)]
    wait_until(lambda: all(work.stage.value == "resting" for work in works), "their rest")
    clock.advance(50)
    assert works[1].join(DEADLINE_S)
    assert first.count == 1
    clock.advance(50)
    assert works[0].join(DEADLINE_S)
    threads.close()


def test_a_wake_in_the_middle_of_a_turn_is_not_lost(threads: SharedThreads) -> None:
    works: list[Work] = []
    given = threading.Event()
    count = 0

    def turn() -> int | None:
        nonlocal count
        assert given.wait(DEADLINE_S)
        count += 1
        if count == 2:
            return None
        works[0].wake()
        return 1 << 40

    works.append(threads.run(turn))
    given.set()
    assert works[0].join(DEADLINE_S)


def test_turns_of_one_piece_never_overlap_while_others_run_beside(threads: SharedThreads) -> None:
    running = 0
    most = 0
    lock = threading.Lock()
    both = threading.Barrier(2)
    overlaps: list[int] = []

    def piece() -> Callable[[], int | None]:
        inside = threading.Lock()
        left = 50

        def turn() -> int | None:
            nonlocal running, most, left
            if not inside.acquire(blocking=False):
                overlaps.append(left)
                return None
            with lock:
                running += 1
                most = max(most, running)
            if left == 50:
                both.wait(DEADLINE_S)  # only passes when two pieces run at the same time
            with lock:
                running -= 1
            left -= 1
            inside.release()
            return 0 if left else None

        return turn

    works = [threads.run(piece()), threads.run(piece())]
    for _ in range(100):
        for work in works:
            work.wake()
    assert all(work.join(DEADLINE_S) for work in works)
    assert (overlaps, most) == ([], 2)


def test_work_that_breaks_ends_alone(
    threads: SharedThreads, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> int | None:
        raise ValueError("out of order")

    turns = Turns(0)
    assert threads.run(broken).join(DEADLINE_S)
    assert threads.run(turns).join(DEADLINE_S)
    assert turns.count == 2
    assert "out of order" in caplog.text


def test_inside_a_turn_nobody_waits_for_its_own_end(threads: SharedThreads) -> None:
    seen: list[bool] = []
    works: list[Work] = []
    given = threading.Event()

    def turn() -> int | None:
        assert given.wait(DEADLINE_S)
        seen.append(works[0].is_current() and works[0].join(DEADLINE_S))
        return None

    works.append(threads.run(turn))
    given.set()
    assert works[0].join(DEADLINE_S)
    assert seen == [True]
    assert not works[0].is_current()


def test_closing_ends_what_rests() -> None:
    threads = SharedThreads("test", 1)
    turns = Turns(1 << 40)
    work = threads.run(turns)
    turns.wait()
    threads.close()
    assert work.join(0)
    with pytest.raises(RuntimeError, match="closed"):
        threads.run(turns)


def test_one_idle_thread_keeps_time_for_all() -> None:
    clock = ManualClock()
    timed: list[int | None] = []
    wait = clock.wait

    def counted(condition: concurrency.Condition, timeout_ms: int | None) -> bool:
        timed.append(timeout_ms)
        return wait(condition, timeout_ms)

    clock.wait = counted  # type: ignore[method-assign]
    threads = SharedThreads("test", 3, clock)
    together = threading.Barrier(3)
    begun = [False] * 3
    turns = [0] * 3

    def turn(number: int) -> int:
        if not begun[number]:
            begun[number] = True
            together.wait(10)  # so that there are three threads
        turns[number] += 1
        return 1_000

    for number in range(3):
        threads.run(partial(turn, number))
    wait_until(lambda: turns == [1, 1, 1] and len(timed) == 3, "all have rested")
    assert sorted(timed, key=str) == [1_000, None, None]
    clock.advance(1_000)
    wait_until(lambda: turns == [2, 2, 2], "all have had another turn")
    threads.close()
