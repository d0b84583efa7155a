"""TaskState: stores of a task are committed, discarded, reopened and restored as one."""

from pathlib import Path

import pytest

from broker.serde import LongSerde, StringSerde
from streams.errors import StoreNotFound
from streams.state.store import StoreKind, StoreSpec
from streams.state.task_state import TaskState

SPECS = (
    StoreSpec("plain", StoreKind.KEY_VALUE),
    StoreSpec("timed", StoreKind.TIMESTAMPED_KEY_VALUE),
    StoreSpec("windows", StoreKind.TIMESTAMPED_WINDOW, retention_ms=100_000, window_size_ms=10),
    StoreSpec(
        "joins", StoreKind.WINDOW, retention_ms=1000, window_size_ms=10, retain_duplicates=True
    ),
    StoreSpec("sessions", StoreKind.SESSION, retention_ms=1000),
)


def opened(directory: Path | None) -> TaskState:
    return TaskState(
        SPECS,
        directory=directory,
        default_key_serde=StringSerde(),
        default_value_serde=LongSerde(),
        application_id="app",
    )


def fill(state: TaskState) -> None:
    state.store("plain").put("a", 1)
    state.store("timed").put("a", 2, 50)
    state.store("windows").put("a", 3, 17, 10)
    state.store("joins").put("a", 4, 15)
    state.store("joins").put("a", 5, 15)
    state.store("sessions").put("a", 10, 20, 6)


def contents(state: TaskState) -> list[object]:
    return [
        list(state.store("plain").all()),
        list(state.store("timed").all()),
        list(state.store("windows").all()),
        list(state.store("joins").fetch("a", 0, 100)),
        list(state.store("sessions").fetch("a")),
    ]


FILLED: list[object] = [
    [("a", 1)],
    [("a", (2, 50))],
    [(("a", 10, 20), (3, 17))],
    [(15, 4), (15, 5)],
    [(("a", 10, 20), 6)],
]
EMPTY: list[object] = [[], [], [], [], []]


@pytest.fixture(params=["disk", "memory"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path if request.param == "disk" else None


def test_writes_are_read_at_once_and_after_a_commit(directory: Path | None) -> None:
    state = opened(directory)
    fill(state)
    assert contents(state) == FILLED
    state.commit({})
    assert contents(state) == FILLED
    assert state.dirty_bytes == 0
    state.close()


def test_a_discard_goes_back_to_the_last_commit(directory: Path | None) -> None:
    state = opened(directory)
    fill(state)
    state.discard()
    assert contents(state) == EMPTY
    fill(state)
    state.commit({})
    state.store("plain").put("a", None)
    state.store("joins").put("a", 9, 5000)
    state.discard()
    assert contents(state) == FILLED
    state.close()


def test_a_commit_is_found_when_the_task_is_opened_again(tmp_path: Path) -> None:
    state = opened(tmp_path)
    fill(state)
    state.commit({"plain": 7, "windows": 8})
    state.store("plain").put("b", 1)
    state.close()
    state = opened(tmp_path)
    assert contents(state) == FILLED
    assert state.position("plain") == 7
    assert state.position("windows") == 8
    assert state.position("sessions") is None
    state.store("joins").put("a", 6, 15)  # the sequence number goes on
    assert list(state.store("joins").fetch("a", 15, 15)) == [(15, 4), (15, 5), (15, 6)]
    state.close()


def test_changes_are_the_records_of_kafkas_changelogs() -> None:
    state = opened(None)
    fill(state)
    state.record_time.ms = 77
    state.store("plain").put("b", None)
    value = [number.to_bytes(8, "big") for number in range(10)]
    suffix = (10).to_bytes(8, "big")
    assert dict(state.changes()) == {
        "plain": [(b"a", value[1], (), 0), (b"b", None, (), 77)],
        "timed": [(b"a", value[2], (), 50)],
        "windows": [(b"a" + suffix + bytes(4), value[3], (), 17)],
        "joins": [
            (b"a" + (15).to_bytes(8, "big") + bytes([0, 0, 0, 1]), value[4], (), 15),
            (b"a" + (15).to_bytes(8, "big") + bytes([0, 0, 0, 2]), value[5], (), 15),
        ],
        "sessions": [(b"a" + (20).to_bytes(8, "big") + suffix, value[6], (), 20)],
    }
    state.commit({})
    assert state.changes() == []


def test_a_store_restored_from_its_changelog_is_the_same(directory: Path | None) -> None:
    source = opened(None)
    fill(source)
    restored = opened(directory)
    for name, rows in source.changes():
        restored.restore(name, [(key, value, time) for key, value, _, time in rows], 100)
    assert contents(restored) == FILLED
    assert restored.position("joins") == 100
    assert restored.changes() == []
    restored.close()


def test_an_unknown_store_is_named_with_those_there_are() -> None:
    with pytest.raises(StoreNotFound, match="joins, plain, sessions, timed, windows"):
        opened(None).store("nope")


def test_a_store_that_was_left_out_once_comes_back_empty(tmp_path: Path) -> None:
    state = opened(tmp_path)
    fill(state)
    state.commit({"plain": 7, "timed": 8})
    state.close()
    serdes = {"default_key_serde": StringSerde(), "default_value_serde": LongSerde()}
    TaskState(SPECS[1:], directory=tmp_path, **serdes).close()  # type: ignore[arg-type]
    state = opened(tmp_path)
    assert contents(state) == [[], *FILLED[1:]]
    assert state.position("plain") is None
    assert state.position("timed") == 8
    state.close()
