"""Work that is done one after another."""

import threading
from concurrent.futures import CancelledError
from functools import partial

import pytest

from broker.clock import ManualClock, SystemClock
from connect.herder.serial_thread import SerialThread


def test_work_is_done_in_its_order_and_answered() -> None:
    thread = SerialThread("serial", SystemClock())
    seen: list[int] = []
    answers = [thread.submit(partial(seen.append, number)) for number in range(20)]
    for answer in answers:
        answer.result(10)
    assert seen == list(range(20))
    thread.close()


def test_an_error_is_reported_and_work_continues() -> None:
    thread = SerialThread("serial", SystemClock())
    failed = thread.submit(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        failed.result(10)
    assert thread.submit(lambda: 5).result(10) == 5
    thread.close()


def test_work_with_a_delay_waits_for_its_time() -> None:
    clock = ManualClock()
    thread = SerialThread("serial", clock)
    later = thread.submit(lambda: "later", delay_ms=1000)
    assert thread.submit(lambda: "now").result(10) == "now"
    assert not later.done()
    assert thread.is_idle()
    clock.advance(1000)
    assert later.result(10) == "later"
    thread.close()


def test_work_for_a_closed_thread_is_cancelled() -> None:
    thread = SerialThread("serial", SystemClock())
    begun, release = threading.Event(), threading.Event()

    def work() -> bool:
        begun.set()
        return release.wait(10)

    running = thread.submit(work)
    waiting = thread.submit(lambda: None)
    assert begun.wait(10)
    thread.close()
    release.set()
    assert running.result(10)
    assert thread.submit(lambda: None).cancelled()
    with pytest.raises(CancelledError):
        waiting.result(10)
