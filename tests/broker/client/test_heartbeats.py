"""When a member sends heartbeats, and when it gives up."""

import pytest

from broker.client.heartbeats import Due, HeartbeatSchedule


def joined_at_zero() -> HeartbeatSchedule:
    schedule = HeartbeatSchedule(interval_ms=3_000, session_ms=10_000, poll_max_ms=30_000)
    schedule.polled(0)
    schedule.joined(0)
    return schedule


@pytest.mark.parametrize(
    ("events", "now_ms", "expected"),
    [
        ([], 0, (Due.NOTHING, 3_000)),
        ([], 2_999, (Due.NOTHING, 1)),
        ([], 3_000, (Due.HEARTBEAT, 0)),
        ([("sent", 3_000)], 3_000, (Due.NOTHING, 7_000)),
        ([("sent", 3_000), ("answered", 3_010)], 3_010, (Due.NOTHING, 2_990)),
        ([("sent", 3_000), ("answered", 3_010)], 6_000, (Due.HEARTBEAT, 0)),
        ([("sent", 3_000)], 10_000, (Due.SESSION_EXPIRED, 0)),
        ([("sent", 3_000), ("restart_session", 10_000)], 10_000, (Due.HEARTBEAT, 0)),
        ([("answered", 29_000), ("sent", 29_000)], 29_999, (Due.NOTHING, 1)),
        ([("answered", 29_000)], 30_000, (Due.POLL_TOO_LATE, 0)),
        ([("answered", 29_000), ("polled", 29_500)], 30_000, (Due.HEARTBEAT, 0)),
        ([("sent", 3_000), ("joined", 3_500)], 3_500, (Due.NOTHING, 3_000)),
    ],
)
def test_what_is_due(events: list[tuple[str, int]], now_ms: int, expected: tuple[Due, int]) -> None:
    schedule = joined_at_zero()
    for event, at_ms in events:
        getattr(schedule, event)(at_ms)
    assert schedule.next(now_ms) == expected


def test_a_failed_heartbeat_is_tried_again_soon() -> None:
    schedule = joined_at_zero()
    schedule.sent(3_000)
    schedule.failed(3_010, retry_ms=100)
    assert schedule.next(3_010) == (Due.NOTHING, 100)
    assert schedule.next(3_110) == (Due.HEARTBEAT, 0)
