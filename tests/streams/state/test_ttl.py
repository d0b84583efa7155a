"""Entries of a store with a ttl go once the store has seen a time so much later."""

from pathlib import Path

import pytest

from broker.serde import LongSerde, StringSerde
from streams.state.store import StoreKind, StoreSpec
from streams.state.task_state import TaskState

SPECS = (
    StoreSpec("plain", StoreKind.KEY_VALUE, ttl_ms=100),
    StoreSpec("timed", StoreKind.TIMESTAMPED_KEY_VALUE, ttl_ms=100),
)


def opened(directory: Path | None) -> TaskState:
    return TaskState(
        SPECS,
        directory=directory,
        default_key_serde=StringSerde(),
        default_value_serde=LongSerde(),
    )


@pytest.fixture(params=["disk", "memory"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> TaskState:
    return opened(tmp_path if request.param == "disk" else None)


def put(state: TaskState, key: str, value: int, time_ms: int) -> None:
    state.record_time.ms = time_ms
    state.store("plain").put(key, value)
    state.store("timed").put(key, value, time_ms)


def test_an_entry_is_gone_when_its_time_is_over(state: TaskState) -> None:
    put(state, "a", 1, 1000)
    put(state, "b", 2, 1099)
    assert state.store("plain").get("a") == 1
    assert state.store("timed").get("a") == (1, 1000)
    put(state, "c", 3, 1100)
    assert state.store("plain").get("a") is None
    assert state.store("timed").get("a") is None
    assert list(state.store("plain").all()) == [("b", 2), ("c", 3)]
    assert list(state.view("timed").all()) == [("b", (2, 1099)), ("c", (3, 1100))]
    state.close()


def test_a_write_lets_an_entry_live_on(state: TaskState) -> None:
    put(state, "a", 1, 1000)
    put(state, "a", 2, 1050)
    put(state, "b", 3, 1120)
    assert state.store("plain").get("a") == 2
    state.close()


def test_what_is_over_leaves_the_store_and_its_changelog(state: TaskState) -> None:
    put(state, "a", 1, 1000)
    state.changes()
    state.commit({})
    put(state, "b", 2, 1200)
    changes = dict(state.changes())
    assert [(key, value is None) for key, value, _, _ in changes["plain"]] == [
        (b"b", False),
        (b"a", True),
    ]
    assert [(key, value is None) for key, value, _, _ in changes["timed"]] == [
        (b"b", False),
        (b"a", True),
    ]
    state.commit({})
    assert state.store("plain").approximate_num_entries() == 1
    state.close()


def test_a_restored_store_knows_its_time(state: TaskState) -> None:
    put(state, "a", 1, 1000)
    put(state, "b", 2, 1200)
    other = opened(None)
    for name, rows in state.changes():
        other.restore(name, [(key, value, time) for key, value, _, time in rows], 2)
    assert list(other.store("plain").all()) == [("b", 2)]
    assert list(other.store("timed").all()) == [("b", (2, 1200))]
    state.close()
