"""Retries, tolerance and reports of operations that fail."""

import logging
import threading
from collections.abc import Callable

import pytest

from broker.client.api import ConsumerRecord
from broker.clock import ManualClock
from connect.config.connector import ErrorSettings
from connect.errors import ConnectError, DataError, RetriableError
from connect.records import SourceRecord
from connect.runtime.error_handling import (
    ABOUT_THE_RECORD,
    SKIPPED,
    ErrorHandler,
    ErrorLog,
    RecordFailure,
    Stage,
)
from connect.runtime.metrics import ErrorCounts
from connect.state.task_state import TaskId
from connect.stop_signal import StopSignal, TaskStopped
from tests.connect.hasty_clock import HastyClock
from tests.support.peer import wait_until

AWAY = RetriableError("the system is away")
BAD = DataError("no number")


def handler_with(settings: ErrorSettings, clock: ManualClock | None = None) -> ErrorHandler:
    clock = clock or HastyClock()
    return ErrorHandler(settings, ErrorCounts(), clock, StopSignal(clock))


def failing(*errors: Exception) -> Callable[[], str]:
    """An operation that raises these, one after the other, and then works."""
    left = list(errors)

    def operation() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return operation


def failed(error: Exception, stage: Stage = Stage.VALUE_CONVERTER) -> RecordFailure:
    return RecordFailure(stage, "a.Converter", error)


def test_a_retriable_error_is_tried_again_with_growing_delays() -> None:
    clock = HastyClock()
    handler = handler_with(ErrorSettings(retry_timeout_ms=60_000), clock)
    assert handler.recover(failed(AWAY), failing(AWAY, AWAY, AWAY)) == "done"
    assert clock.waits_ms == [300, 600, 1200, 2400]
    assert (handler.counts.failures, handler.counts.retries) == (4, 4)
    assert (handler.counts.errors, handler.counts.skipped) == (0, 0)


def test_delays_are_bounded_by_the_longest_and_by_the_end() -> None:
    clock = HastyClock()
    settings = ErrorSettings(retry_timeout_ms=3_000, retry_delay_max_ms=1_000, tolerates_all=True)
    assert handler_with(settings, clock).recover(failed(AWAY), failing(*[AWAY] * 20)) is SKIPPED
    assert clock.waits_ms == [300, 600, 1000, 1000, 100]


def test_a_timeout_of_minus_one_retries_for_ever() -> None:
    handler = handler_with(ErrorSettings(retry_timeout_ms=-1))
    assert handler.recover(failed(AWAY), failing(*[AWAY] * 500)) == "done"
    assert handler.counts.retries == 501


def test_an_error_that_is_not_retriable_is_not_tried_again() -> None:
    handler = handler_with(ErrorSettings(retry_timeout_ms=60_000, tolerates_all=True))
    assert handler.recover(failed(BAD), failing()) is SKIPPED
    assert handler.counts.retries == 0


@pytest.mark.parametrize("stage", Stage)
@pytest.mark.parametrize("error", [AWAY, BAD, ValueError("x")])
def test_tolerance_all_takes_everything_of_the_record_and_elsewhere_what_is_retriable(
    stage: Stage, error: Exception
) -> None:
    handler = handler_with(ErrorSettings(tolerates_all=True))
    if stage in ABOUT_THE_RECORD or error is AWAY:
        assert handler.recover(failed(error, stage), failing()) is SKIPPED
        assert handler.counts.skipped == 1
    else:
        with pytest.raises(ConnectError, match="Unhandled exception in error handler"):
            handler.recover(failed(error, stage), failing())
    assert handler.counts.errors == 1


@pytest.mark.parametrize("error", [AWAY, BAD, ValueError("x")])
def test_tolerance_none_fails_with_the_error_as_cause(error: Exception) -> None:
    handler = handler_with(ErrorSettings())
    with pytest.raises(ConnectError, match="Tolerance exceeded in error handler") as raised:
        handler.recover(failed(error), failing())
    assert raised.value.__cause__ is error
    assert handler.counts.skipped == 0


def test_unreported_records_are_logged_now_and_then_with_their_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handler = handler_with(ErrorSettings(tolerates_all=True))
    for _ in range(100):
        handler.recover(failed(BAD), failing())
    counts = [entry.getMessage().split()[0] for entry in caplog.records]
    assert counts == ["1", "2", "4", "8", "16", "32", "64"]
    assert "no number" in caplog.text


def test_a_wait_for_the_next_attempt_ends_when_the_task_stops() -> None:
    clock = ManualClock()
    handler = handler_with(ErrorSettings(retry_timeout_ms=-1), clock)
    ended = threading.Event()

    def recover() -> None:
        with pytest.raises(TaskStopped):
            handler.recover(failed(AWAY), failing(AWAY))
        ended.set()

    thread = threading.Thread(target=recover)
    thread.start()
    handler.stop.set()
    thread.join()
    assert ended.is_set()


def test_a_wait_goes_on_until_the_clock_has_passed_it() -> None:
    clock = ManualClock()
    handler = handler_with(ErrorSettings(retry_timeout_ms=-1), clock)
    results: list[object] = []
    thread = threading.Thread(
        target=lambda: results.append(handler.recover(failed(AWAY), failing()))
    )
    thread.start()
    wait_until(lambda: handler.counts.failures == 1, "the first failure")
    clock.advance(299)
    assert results == []
    clock.advance(1)
    thread.join()
    assert results == ["done"]


def test_every_reporter_is_notified_even_when_the_task_fails() -> None:
    reported: list[RecordFailure] = []

    class Notes:
        def report(self, failure: RecordFailure) -> None:
            reported.append(failure)

    handler = handler_with(ErrorSettings())
    handler.reporters = [Notes(), Notes()]
    failure = failed(BAD)
    with pytest.raises(ConnectError):
        handler.recover(failure, failing())
    assert reported == [failure, failure]
    assert handler.counts.last_error_ms == handler.clock.now_ms()


@pytest.mark.parametrize(
    ("with_records", "shown"),
    [
        (
            True,
            "Error encountered in task orders-3. Executing stage 'KEY_CONVERTER' with class "
            "'a.Converter', where consumed record is {topic='t', partition=1, offset=7, "
            "timestamp=99}.",
        ),
        (
            False,
            "Error encountered in task orders-3. Executing stage 'KEY_CONVERTER' with class "
            "'a.Converter'.",
        ),
    ],
)
def test_the_log_shows_stage_and_class_and_the_record_if_it_may(
    with_records: bool, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    counts = ErrorCounts()
    log = ErrorLog(TaskId("orders", 3), counts, with_records=with_records)
    record = ConsumerRecord("t", 1, 7, 99, b"k", b"v")
    with caplog.at_level(logging.ERROR):
        log.report(RecordFailure(Stage.KEY_CONVERTER, "a.Converter", BAD, record))
    (entry,) = caplog.records
    assert entry.getMessage() == shown
    assert entry.exc_info is not None
    assert entry.exc_info[1] is BAD
    assert counts.logged == 1


def test_the_log_can_show_source_records() -> None:
    record = SourceRecord({"file": "a"}, {"line": 3}, "lines", value="x")
    failure = RecordFailure(Stage.TRANSFORMATION, "a.Transform", BAD, record)
    assert failure.describe(with_record=True).endswith(f", where source record is = {record}.")
