"""Queries: one read-only store over the partitions of several tasks, from any thread."""

import threading

import pytest

from broker.serde import LongSerde, StringSerde
from streams.errors import StoreNotFound, StoreNotReady
from streams.state.query import query
from streams.state.store import StoreKind, StoreSpec
from streams.state.task_state import TaskState

SPECS = (
    StoreSpec("counts", StoreKind.TIMESTAMPED_KEY_VALUE),
    StoreSpec("windows", StoreKind.TIMESTAMPED_WINDOW, retention_ms=1000, window_size_ms=10),
    StoreSpec("sessions", StoreKind.SESSION, retention_ms=1000),
    StoreSpec("prices", StoreKind.VERSIONED, history_ms=1000),
)


def opened() -> TaskState:
    return TaskState(
        SPECS,
        directory=None,
        default_key_serde=StringSerde(),
        default_value_serde=LongSerde(),
    )


@pytest.fixture
def tasks() -> list[TaskState]:
    """Two tasks: keys a and c in the first, b and d in the second; d is not committed."""
    found = [opened(), opened()]
    for number, key in enumerate("abcd"):
        state = found[number % 2]
        if key == "d":
            state.commit({})
        state.store("counts").put(key, number, 10)
        for start in (20, 30):
            state.store("windows").put(key, number, 15, start)
        state.store("sessions").put(key, number, 50 - number, number)
        state.store("prices").put(key, number, 5)
        state.store("prices").put(key, number + 10, 15)
    return found


def views(tasks: list[TaskState], name: str) -> list[object]:
    return [state.view(name) for state in tasks]


def test_key_value_stores(tasks: list[TaskState]) -> None:
    counts = query("counts", views(tasks, "counts"))  # type: ignore[arg-type]
    assert [counts.get(key) for key in "abcde"] == [(0, 10), (1, 10), (2, 10), (3, 10), None]
    everything = [("a", (0, 10)), ("b", (1, 10)), ("c", (2, 10)), ("d", (3, 10))]
    assert list(counts.all()) == everything
    assert list(counts.reverse_all()) == everything[::-1]
    assert list(counts.range("b", "c")) == everything[1:3]
    assert list(counts.reverse_range("b", None)) == everything[:0:-1]
    assert list(counts.prefix_scan(b"c")) == everything[2:3]
    assert counts.approximate_num_entries() == 4


def test_window_stores(tasks: list[TaskState]) -> None:
    windows = query("windows", views(tasks, "windows"))  # type: ignore[arg-type]
    assert windows.get("b", 20) == (1, 15)
    assert list(windows.fetch("c", 0, 100)) == [(20, (2, 15)), (30, (2, 15))]
    assert list(windows.backward_fetch("c", 0, 100)) == [(30, (2, 15)), (20, (2, 15))]
    keys = [key for key, _ in windows.all()]
    assert keys == [(key, start, start + 10) for key in "abcd" for start in (20, 30)]
    keys = [key for key, _ in windows.fetch_all(0, 100)]
    assert keys == [(key, start, start + 10) for start in (20, 30) for key in "abcd"]
    keys = [key for key, _ in windows.fetch_keys("b", "c", 25, 100)]
    assert keys == [("b", 30, 40), ("c", 30, 40)]


def test_session_stores(tasks: list[TaskState]) -> None:
    sessions = query("sessions", views(tasks, "sessions"))  # type: ignore[arg-type]
    assert sessions.get("b", 1, 49) == 1
    assert list(sessions.fetch("c")) == [(("c", 2, 48), 2)]
    assert list(sessions.find_sessions("c", 49, 100)) == []
    assert [value for _, value in sessions.sessions_ended(48, 50)] == [2, 1, 0]
    assert [value for _, value in sessions.all()] == [0, 1, 2, 3]


def test_versioned_stores(tasks: list[TaskState]) -> None:
    prices = query("prices", views(tasks, "prices"))  # type: ignore[arg-type]
    assert prices.get("b").value == 11
    assert prices.get_as_of("b", 7).value == 1
    assert [record.value for record in prices.versions("d")] == [13, 3]
    assert [key for key, _ in prices.all()] == ["a", "b", "c", "d"]


def test_a_store_without_partitions_is_not_ready(tasks: list[TaskState]) -> None:
    with pytest.raises(StoreNotReady, match='store "counts"'):
        query("counts", [])
    with pytest.raises(StoreNotFound):
        query("counts", [object()])  # type: ignore[list-item]


def test_a_task_that_has_ended_is_not_ready(tasks: list[TaskState]) -> None:
    counts = query("counts", views(tasks, "counts"))  # type: ignore[arg-type]
    tasks[1].close()
    assert counts.get("a") == (0, 10)
    with pytest.raises(StoreNotReady):
        counts.get("b")
    with pytest.raises(StoreNotReady):
        list(counts.all())


@pytest.mark.slow
def test_other_threads_read_while_the_task_writes_and_commits() -> None:
    state = opened()
    view = state.view("counts")
    ended = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        seen: dict[str, int] = {}
        while not ended.is_set():
            now = {key: value for key, (value, _) in view.all()}
            # No key that was there is missing, and none goes back to an older value.
            if any(now.get(key, -1) < value for key, value in seen.items()):
                wrong.append((seen, now))
            seen = now
            view.get("k05")

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(400):
        for key in range(20):
            state.store("counts").put(f"k{key:02}", number, 0)
        if number % 3 == 0:
            state.commit({})
    ended.set()
    for reader in readers:
        reader.join()
    assert wrong == []
