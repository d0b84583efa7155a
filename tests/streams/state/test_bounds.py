"""The exact bounds of stores by time, and versions that come out of order."""

import pytest

from broker.serde import LongSerde, StringSerde
from streams.state.store import LATEST, REFUSED, StoreKind, StoreSpec
from streams.state.task_state import TaskState

SPECS = (
    StoreSpec("windows", StoreKind.WINDOW, retention_ms=100, window_size_ms=10),
    StoreSpec("sessions", StoreKind.SESSION, retention_ms=100),
    StoreSpec("prices", StoreKind.VERSIONED, history_ms=100),
)


@pytest.fixture
def state() -> TaskState:
    return TaskState(
        SPECS,
        directory=None,
        default_key_serde=StringSerde(),
        default_value_serde=LongSerde(),
    )


def test_a_window_is_shown_until_its_start_is_as_old_as_the_retention(state: TaskState) -> None:
    windows = state.store("windows")
    for start in (900, 901, 1000):
        assert windows.put("k", start, start) != REFUSED
    assert windows.get("k", 900) is None
    assert windows.get("k", 901) == 901
    assert list(windows.fetch("k", 0, 2000)) == [(901, 901), (1000, 1000)]
    assert [key.start_ms for key, _ in windows.all()] == [901, 1000]
    assert windows.put("k", 1, 899) != REFUSED  # its segment is still there
    assert windows.get("k", 899) is None
    windows.put("k", 1, 120_100)
    assert windows.put("k", 1, 59_999) == REFUSED


def test_a_session_is_shown_until_its_end_is_as_old_as_the_retention(state: TaskState) -> None:
    sessions = state.store("sessions")
    for end in (900, 901, 1000):
        assert sessions.put("k", 5, end, end) != REFUSED
    assert sessions.get("k", 5, 900) is None
    assert sessions.get("k", 5, 901) == 901
    assert [value for _, value in sessions.fetch("k")] == [901, 1000]
    assert [value for _, value in sessions.sessions_ended(0, 2000)] == [901, 1000]
    assert [value for _, value in sessions.all()] == [901, 1000]


def test_a_version_inside_another_splits_it(state: TaskState) -> None:
    prices = state.store("prices")
    assert prices.put("k", 1, 10) == LATEST
    assert prices.put("k", 2, 50) == LATEST
    assert prices.put("k", 3, 30) == 50
    assert prices.get_as_of("k", 29) == (1, 10, 30)
    assert prices.get_as_of("k", 30) == (3, 30, 50)
    assert prices.put("k", 4, 20) == 30
    assert prices.get_as_of("k", 25) == (4, 20, 30)
    assert prices.get_as_of("k", 45) == (3, 30, 50)
    assert [record.value for record in prices.versions("k")] == [2, 3, 4, 1]


def test_a_version_of_the_same_time_replaces_the_other(state: TaskState) -> None:
    prices = state.store("prices")
    prices.put("k", 1, 10)
    assert prices.put("k", 2, 10) == LATEST
    assert list(prices.versions("k")) == [(2, 10, LATEST)]
    prices.put("k", 3, 20)
    assert prices.put("k", 4, 10) == 20
    assert list(prices.versions("k")) == [(3, 20, LATEST), (4, 10, 20)]


def test_a_deletion_is_a_version(state: TaskState) -> None:
    prices = state.store("prices")
    prices.put("k", 1, 10)
    assert prices.delete("k", 30) == (1, 10, LATEST)
    assert prices.get("k") is None
    assert prices.get_as_of("k", 29) == (1, 10, 30)
    assert prices.get_as_of("k", 30) is None
    assert prices.put("k", 2, 20) == 30
    assert prices.put("k", 3, 30) == LATEST
    assert prices.get("k") == (3, 30, LATEST)


def test_versions_older_than_the_history_are_not_taken_and_not_shown(state: TaskState) -> None:
    prices = state.store("prices")
    prices.put("k", 1, 10)
    prices.put("k", 2, 50)
    prices.put("other", 1, 150)
    assert prices.put("k", 3, 49) is None
    assert prices.put("k", 3, 50) == LATEST
    assert prices.get_as_of("k", 49) is None
    assert prices.get_as_of("k", 50) == (3, 50, LATEST)
    prices.put("other", 1, 1000)
    assert prices.get_as_of("k", 60) == (3, 50, LATEST)  # the newest never expires
