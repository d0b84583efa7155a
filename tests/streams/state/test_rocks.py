"""RocksDatabase: commits survive a kill; damage is found and rebuilt, never a crash without end."""

import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from rocksdict import Rdict

from broker.serde import BytesSerde
from streams.errors import StateDirectoryLocked, StoreError, StoreNotReady
from streams.state.rocks import (
    RocksDatabase,
    RocksDatabases,
    RocksMemory,
    share_memory,
    shared_memory,
)
from streams.state.store import StoreKind, StoreSpec
from streams.state.task_state import TaskState

SPECS = [
    StoreSpec("plain", StoreKind.KEY_VALUE),
    StoreSpec("windows", StoreKind.TIMESTAMPED_WINDOW, retention_ms=1000, window_size_ms=10),
]
ROWS = 2000


def opened(directory: Path) -> TaskState:
    return TaskState(
        SPECS,
        directory=directory,
        default_key_serde=BytesSerde(),
        default_value_serde=BytesSerde(),
        buffer_bytes=0,
    )


def write_commit(state: TaskState, number: int) -> None:
    """Commit `number`: every row has its number, in both stores."""
    text = b"%d" % number
    for row in range(20):
        state.store("plain").put(b"%d" % row, text)
    state.store("windows").put(b"k", text, number, number)
    state.commit({"plain": number, "windows": number})


def check_is_one_commit(state: TaskState) -> int:
    """All stores and positions are those of one commit; which one, 0 for none."""
    position = state.position("plain")
    assert state.position("windows") == position
    rows = dict(state.store("plain").all())
    if position is None:
        assert rows == {}
        assert list(state.store("windows").all()) == []
        return 0
    text = b"%d" % position
    assert rows == {b"%d" % row: text for row in range(20)}
    assert state.store("windows").get(b"k", position) == (text, position)
    assert state.store("windows").get(b"k", position + 1) is None
    return position


@pytest.mark.slow
def test_a_commit_survives_a_kill(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from tests.streams.state.test_rocks import opened, write_commit\n"
        "state = opened(Path(sys.argv[1]))\n"
        "for number in range(1, 51): write_commit(state, number)\n"
        "state.store('plain').put(b'uncommitted', b'x')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ended.returncode == -signal.SIGKILL
    state = opened(tmp_path)
    assert check_is_one_commit(state) == 50
    state.close()


@pytest.mark.slow
def test_a_torn_log_is_at_an_older_commit_and_the_changelog_does_the_rest(tmp_path: Path) -> None:
    original = tmp_path / "original"
    state = opened(original)
    for number in range(1, 31):
        write_commit(state, number)
    copy_of = tmp_path / "copy"
    shutil.copytree(original, copy_of)  # as a machine that lost its power has it
    state.close()
    (log,) = (copy_of / "rocksdb").glob("*.log")
    whole = log.read_bytes()
    found = set()
    for length in range(0, len(whole), len(whole) // 12):
        torn = tmp_path / f"torn-{length}"
        shutil.copytree(copy_of, torn)
        with (torn / "rocksdb" / log.name).open("r+b") as file:
            file.truncate(length)
        state = opened(torn)
        number = check_is_one_commit(state)
        found.add(number)
        write_commit(state, 99)  # and it can go on
        state.close()
        state = opened(torn)
        assert check_is_one_commit(state) == 99
        state.close()
    assert len(found) > 5


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncate", "flip", "remove"])
@pytest.mark.parametrize("pattern", ["*.sst", "MANIFEST-*", "CURRENT"])
def test_damage_is_found_and_rebuilt(
    tmp_path: Path, damage: str, pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    state = opened(tmp_path)
    for row in range(ROWS):
        state.store("plain").put(b"%d" % row, os.urandom(100))
    state.commit({"plain": ROWS})
    state.close()  # flushes rows to files
    file = max((tmp_path / "rocksdb").glob(pattern), key=lambda path: path.stat().st_size)
    data = bytearray(file.read_bytes())
    if damage == "remove":
        file.unlink()
    else:
        if damage == "truncate":
            del data[len(data) // 2 :]
        else:
            data[len(data) // 3] ^= 0xFF
        file.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        position = start_until_it_reads(tmp_path)
    assert position is None
    # Without its last part, or without a name, the list of files is that of an older commit.
    if (pattern, damage) not in {("CURRENT", "remove"), ("MANIFEST-*", "truncate")}:
        assert "restored from the changelogs" in caplog.text


def test_damaged_metadata_is_found_when_the_database_is_opened(tmp_path: Path) -> None:
    state = opened(tmp_path)
    state.commit({"plain": 7, "windows": 7})
    state.close()
    (file,) = (tmp_path / "rocksdb").glob("*.sst")
    data = bytearray(file.read_bytes())
    data[20] ^= 0xFF
    file.write_bytes(data)
    state = opened(tmp_path)
    assert state.position("plain") is None
    write_commit(state, 3)
    state.close()
    state = opened(tmp_path)
    assert check_is_one_commit(state) == 3
    state.close()


def test_stores_that_cannot_be_opened_are_not_left_locked(tmp_path: Path) -> None:
    state = opened(tmp_path)
    write_commit(state, 3)
    state.close()

    class Unreadable(RocksDatabase):
        def metadata(self) -> dict[bytes, bytes]:
            raise StoreError("a read failed")

    class AllUnreadable(RocksDatabases):
        def open(self, path: Path, stores: Sequence[str]) -> RocksDatabase:
            return Unreadable(path, stores)

    kept: list[StoreError] = []
    try:
        TaskState(
            SPECS,
            directory=tmp_path,
            databases=AllUnreadable(),
            default_key_serde=BytesSerde(),
            default_value_serde=BytesSerde(),
        )
    except StoreError as error:
        kept.append(error)  # with its frames, which hold the database
    assert len(kept) == 1
    state = opened(tmp_path)
    assert check_is_one_commit(state) == 3
    state.close()


def start_until_it_reads(directory: Path) -> int | None:
    """The position, once everything can be read; two starts must do."""
    for _ in range(2):
        state = opened(directory)
        try:
            rows = list(state.store("plain").all())
        except StoreError:
            continue
        finally:
            state.close()
        assert len(rows) in (0, ROWS)
        return state.position("plain")
    raise AssertionError("the second start failed as the first did")


def test_a_database_that_is_open_cannot_be_opened_again(tmp_path: Path) -> None:
    state = opened(tmp_path)
    with pytest.raises(StateDirectoryLocked):
        opened(tmp_path)
    state.close()
    opened(tmp_path).close()


@pytest.mark.slow
def test_a_database_of_another_process_is_locked_not_damaged(tmp_path: Path) -> None:
    state = opened(tmp_path)
    write_commit(state, 3)
    program = (
        "import sys; from pathlib import Path\n"
        "from tests.streams.state.test_rocks import opened\n"
        "from streams.errors import StateDirectoryLocked\n"
        "try: opened(Path(sys.argv[1]))\n"
        "except StateDirectoryLocked: sys.exit(7)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ended.returncode == 7
    assert check_is_one_commit(state) == 3
    state.close()


def test_a_view_of_a_closed_task_says_so(tmp_path: Path) -> None:
    state = opened(tmp_path)
    write_commit(state, 1)
    view = state.view("plain")
    entries = view.all()
    state.close()
    with pytest.raises(StoreNotReady):
        view.get(b"1")
    with pytest.raises(StoreNotReady):
        list(entries)


@pytest.mark.slow
def test_memory_of_rocksdb_stays_inside_its_budget(tmp_path: Path) -> None:
    before = shared_memory()
    budget = 8 << 20
    memory = RocksMemory(cache_bytes=budget, write_buffer_bytes=budget // 2)
    share_memory(memory)
    try:
        state = opened(tmp_path)
        value = os.urandom(1000)
        for start in range(0, 40_000, 2000):
            for row in range(start, start + 2000):
                state.store("plain").put(b"%d" % row, value)
            state.commit({})
            for row in range(0, start, 7):
                state.store("plain").get(b"%d" % row)
            assert memory.used_bytes < 2 * budget
        assert state.memory_bytes < budget
        state.close()
    finally:
        share_memory(before)


def test_expired_segments_are_gone_from_the_disk(tmp_path: Path) -> None:
    state = opened(tmp_path)
    windows = state.store("windows")
    for minute in range(10):
        windows.put(b"k", b"v", 0, minute * 60_000)
        state.commit({})
    backing = windows.parts.buffer.committed_reads
    assert len(list(backing.scan(None, None))) <= 2
    assert [start for start, _ in windows.fetch(b"k", 0, 1 << 40)] == [540_000]
    state.close()


def test_a_store_may_be_called_default(tmp_path: Path) -> None:
    for number in range(2):
        state = TaskState(
            [StoreSpec("default", StoreKind.KEY_VALUE), *SPECS],
            directory=tmp_path,
            default_key_serde=BytesSerde(),
            default_value_serde=BytesSerde(),
        )
        assert list(state.store("default").all()) == [(b"k", b"v")] * number
        assert state.position("default") == (5 if number else None)
        state.store("default").put(b"k", b"v")
        state.commit({"default": 5})
        state.close()


def test_a_database_with_a_store_called_default_among_the_metadata_is_restored(
    tmp_path: Path,
) -> None:
    old = Rdict(str(tmp_path / "rocksdb"), shared_memory().options(), {})
    old[b"k"] = b"v"
    old[b"shape/default"] = b"key-value 0"
    old[b"position/default"] = (5).to_bytes(8, "big")
    old.close()
    state = TaskState(
        [StoreSpec("default", StoreKind.KEY_VALUE)],
        directory=tmp_path,
        default_key_serde=BytesSerde(),
        default_value_serde=BytesSerde(),
    )
    assert state.position("default") is None
    assert list(state.store("default").all()) == []
    state.close()


@pytest.mark.slow
def test_a_store_that_is_dropped_and_comes_back_is_empty_also_after_a_power_loss(
    tmp_path: Path,
) -> None:
    first = opened(tmp_path / "a")
    write_commit(first, 7)
    first.close()
    dropped = TaskState(
        SPECS[:1],
        directory=tmp_path / "a",
        default_key_serde=BytesSerde(),
        default_value_serde=BytesSerde(),
    )
    # The machine loses its power now: the log of the database was not synced since.
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    dropped.close()
    for log in (tmp_path / "b" / "rocksdb").glob("*.log"):
        os.truncate(log, 0)
    state = opened(tmp_path / "b")
    assert state.position("plain") == 7
    assert state.position("windows") is None
    assert list(state.store("windows").all()) == []
    state.close()
