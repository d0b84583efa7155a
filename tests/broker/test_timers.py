"""Timers, pending answers and the manual clock."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.pending import Pending
from broker.timers import Timers


@given(st.lists(st.integers(0, 100)), st.lists(st.integers(0, 50), max_size=5))
def test_timers_run_in_order_of_their_time_and_never_early(
    delays: list[int], steps: list[int]
) -> None:
    clock = ManualClock(0)
    timers = Timers(clock)
    called: list[int] = []
    for delay in delays:
        timers.schedule(delay, lambda delay=delay: called.append(delay))  # type: ignore[misc]
    for step in steps:
        clock.advance(step)
        timers.run_due()
        assert called == sorted(delay for delay in delays if delay <= clock.now_ms())


def test_a_cancelled_timer_is_never_called() -> None:
    clock = ManualClock(0)
    timers = Timers(clock)
    timers.schedule(1, lambda: None).cancel()
    clock.advance(5)
    assert timers.run_due() == 0


def test_a_timer_that_fails_keeps_no_other_from_being_called() -> None:
    clock = ManualClock(0)
    timers = Timers(clock)
    called: list[str] = []

    def fails() -> None:
        called.append("fails")
        raise RuntimeError("unexpected")

    timers.repeat(10, fails)
    timers.schedule(10, lambda: called.append("next"))
    for _ in range(3):
        clock.advance(10)
        timers.run_due()
    assert called == ["fails", "next", "fails", "fails"]


def test_a_wall_clock_that_is_set_back_moves_no_timer() -> None:
    clock = ManualClock()
    timers = Timers(clock)
    called: list[int] = []
    timers.schedule(10, lambda: called.append(1))
    clock.set_wall_clock(clock.now_ms() - 3_600_000)
    assert clock.now_ms() < 1_700_000_000_000
    clock.advance(10)
    assert timers.run_due() == 1


def test_an_earlier_timer_wakes_the_waiting_thread() -> None:
    clock = ManualClock(0)
    timers = Timers(clock)
    timers.schedule(1000, lambda: None)
    waiting = threading.Thread(target=timers.wait_until_due, args=(5000,))
    waiting.start()
    timers.schedule(0, lambda: None)
    waiting.join(timeout=60)
    assert not waiting.is_alive()


def test_a_wait_that_begins_just_after_it_was_woken_ends_at_once() -> None:
    timers = Timers(ManualClock(0))
    timers.wake()
    waiting = threading.Thread(target=timers.wait_until_due, args=(5000,), daemon=True)
    waiting.start()
    waiting.join(timeout=60)
    assert not waiting.is_alive()


def test_a_pending_answer_reaches_who_came_first_or_later() -> None:
    for before in (True, False):
        pending: Pending[int] = Pending()
        seen: list[int] = []
        if before:
            pending.then(seen.append)
        assert pending.complete(7)
        assert not pending.complete(8)
        if not before:
            pending.then(seen.append)
        assert seen == [7]


def test_nobody_is_told_of_an_answer_that_was_abandoned() -> None:
    pending: Pending[int] = Pending(on_abandon=lambda: None)
    seen: list[int] = []
    pending.abandon()
    pending.then(seen.append)
    assert not pending.complete(7)
    assert seen == []


def test_a_wait_counts_from_the_look_at_a_manual_clock_that_told_how_long() -> None:
    clock = ManualClock(0)
    condition = threading.Condition()
    left_ms = 10 - clock.monotonic_ms()
    clock.advance(10)
    with condition:
        assert not clock.wait(condition, left_ms)


def test_a_manual_clock_ends_a_wait_when_time_has_passed() -> None:
    clock = ManualClock(0)
    condition = threading.Condition()
    result: list[bool] = []

    def wait() -> None:
        with condition:
            result.append(clock.wait(condition, 100))

    thread = threading.Thread(target=wait)
    thread.start()
    while thread.is_alive():
        clock.advance(60)
        thread.join(timeout=0.01)
    assert result == [False]
