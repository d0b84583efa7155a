"""ModelDatabase: it answers as RocksDB does, and survives what RocksDB survives."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.files import FileSystem
from millstream.simulation import Simulation
from millstream.simulation.disk import SimulatedDisk
from millstream.simulation.stores import ModelDatabases
from streams.errors import StateDirectoryLocked, StoreError, StoreNotReady
from streams.state.backing import Database, Databases, Write, metadata_key
from streams.state.rocks import RocksDatabases

STORES = ("one", "two", "default")
KEYS = st.binary(max_size=2)
BOUNDS = st.none() | KEYS
ROWS = st.dictionaries(KEYS, st.none() | st.binary(max_size=3), max_size=12)
METADATA = st.sampled_from([metadata_key(what, store) for what in ("a", "b") for store in STORES])

writes = st.builds(
    Write,
    rows=st.dictionaries(st.sampled_from(STORES), ROWS, max_size=3),
    expired=st.dictionaries(st.sampled_from(STORES), KEYS, max_size=1),
    metadata=st.dictionaries(METADATA, st.none() | st.binary(max_size=3), max_size=3),
)
scans = st.tuples(st.sampled_from(STORES), BOUNDS, BOUNDS, st.booleans())
steps = st.lists(
    writes | scans | st.sampled_from(["close", "kill"]) | st.sets(st.sampled_from(STORES)),
    max_size=25,
)

Contents = tuple[dict[bytes, bytes], dict[str, list[tuple[bytes, bytes]]]]


def contents(database: Database, stores: tuple[str, ...]) -> Contents:
    """All metadata and rows."""
    return database.metadata(), {
        name: list(database.backing(name).scan(None, None)) for name in stores
    }


class Opened:
    """A database of one kind, that is closed, killed and opened again."""

    def __init__(self, databases: Databases, folder: Path) -> None:
        self._databases = databases
        self._folder = folder
        self._number = 0
        self.stores = STORES
        self.database = databases.open(folder / "0", STORES)

    def do(self, step: object) -> object:
        """Take a step; the answer."""
        if isinstance(step, Write):
            rows = {name: each for name, each in step.rows.items() if name in self.stores}
            expired = {name: each for name, each in step.expired.items() if name in self.stores}
            self.database.write(Write(rows, expired, step.metadata))
            return None
        if isinstance(step, tuple):
            store, first, before, backwards = step
            if store not in self.stores:
                return None
            backing = self.database.backing(store)
            found = list(backing.scan(first, before, backwards=backwards))
            return found, [backing.get(key) for key, _ in found], backing.get(b"a")
        if step == "kill":
            # What a process leaves behind that is ended at this moment.
            old, self._number = self._number, self._number + 1
            shutil.copytree(self._folder / str(old), self._folder / str(self._number))
        if isinstance(step, set):
            self.stores = tuple(sorted(step))
        self.database.close()
        self.database = self._databases.open(self._folder / str(self._number), self.stores)
        return contents(self.database, self.stores)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(steps=steps, log_bytes_max=st.sampled_from([0, 100, 1 << 20]))
def test_the_model_answers_as_rocksdb_does(steps: list[object], log_bytes_max: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = ModelDatabases(FileSystem(), log_bytes_max=log_bytes_max)
        pair = [
            Opened(RocksDatabases(), Path(folder) / "rocks"),
            Opened(model, Path(folder) / "model"),
        ]
        for step in steps:
            first, second = (each.do(step) for each in pair)
            assert first == second, step
        first, second = (contents(each.database, each.stores) for each in pair)
        assert first == second
        for each in pair:
            each.database.close()


def of_rocks(folder: Path) -> Database:
    return RocksDatabases().open(folder / "database", ["one", "two"])


def of_model(folder: Path) -> Database:
    return ModelDatabases(FileSystem()).open(folder / "database", ["one", "two"])


both = pytest.mark.parametrize("opened", [of_rocks, of_model])


@both
def test_a_database_is_open_once(tmp_path: Path, opened: Callable[[Path], Database]) -> None:
    database = opened(tmp_path)
    with pytest.raises(StateDirectoryLocked):
        opened(tmp_path)
    database.close()
    database.close()
    opened(tmp_path).close()


@both
def test_a_closed_database_says_so(tmp_path: Path, opened: Callable[[Path], Database]) -> None:
    database = opened(tmp_path)
    rows = {bytes([number]): b"x" for number in range(20)}
    database.write(Write(rows={"one": rows}))
    backing = database.backing("one")
    entries = backing.scan(None, None)
    assert next(entries) == (b"\0", b"x")
    database.close()
    with pytest.raises(StoreNotReady):
        backing.get(b"a")
    with pytest.raises(StoreNotReady):
        list(entries)


@pytest.mark.slow
@pytest.mark.parametrize(("opened", "log"), [(of_rocks, "*.log"), (of_model, "*.log")])
def test_a_torn_log_gives_the_writes_up_to_some_point(
    tmp_path: Path, opened: Callable[[Path], Database], log: str
) -> None:
    database = opened(tmp_path)
    expected = [contents(database, ("one", "two"))]
    for number in range(10):
        text = b"%d" % number
        database.write(
            Write(
                rows={"one": {text: text, b"last": text}, "two": {b"last": text}},
                metadata={b"n": text},
            )
        )
        expected.append(contents(database, ("one", "two")))
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "database", copy / "database")
    database.close()
    (path,) = [each for each in (copy / "database").glob(log) if each.stat().st_size]
    size = path.stat().st_size
    found = []
    for length in range(0, size + 1, size // 20):
        torn = tmp_path / f"torn-{length}"
        shutil.copytree(copy, torn)
        os.truncate(torn / "database" / path.name, length)
        database = opened(torn)
        found.append(expected.index(contents(database, ("one", "two"))))
        database.close()
        database = opened(torn)
        assert expected.index(contents(database, ("one", "two"))) == found[-1]
        database.close()
    assert found == sorted(found)
    assert len(set(found)) > 5


@pytest.mark.parametrize("file", ["MANIFEST", "*.rows"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_a_damaged_model_is_made_again(tmp_path: Path, file: str, damage: str) -> None:
    database = of_model(tmp_path)
    rows = {b"%d" % number: os.urandom(100) for number in range(100)}
    database.write(Write(rows={"one": dict(rows)}, metadata={b"n": b"1"}))
    database.close()
    (path,) = (tmp_path / "database").glob(file)
    data = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    else:
        if damage == "flip":
            data[len(data) // 2] ^= 1
        else:
            del data[len(data) // 2 :]
        path.write_bytes(data)
    for _ in range(2):
        database = of_model(tmp_path)
        try:
            found = list(database.backing("one").scan(None, None))
        except StoreError:
            continue
        finally:
            database.close()
        assert found == []
        assert database_metadata(tmp_path) == {}
        return
    raise AssertionError("the second start failed as the first did")


def database_metadata(folder: Path) -> dict[bytes, bytes]:
    database = of_model(folder)
    try:
        return database.metadata()
    finally:
        database.close()


class FullDisk(FileSystem):
    """A disk on which nothing can be written after a while."""

    is_full = False

    def pwrite(self, file: object, data: memoryview | bytes, position: int) -> int:
        """Write half of it, then nothing more."""
        if self.is_full:
            raise OSError(28, "No space left on device")
        return super().pwrite(file, data, position)  # type: ignore[arg-type]


def test_a_write_that_fails_is_not_there_and_is_no_damage(tmp_path: Path) -> None:
    files = FullDisk()
    database: Database = ModelDatabases(files).open(tmp_path / "database", ["one", "two"])
    database.write(Write(rows={"one": {b"a": b"1"}}))
    files.is_full = True
    with pytest.raises(StoreError, match="No space left"):
        database.write(Write(rows={"one": {b"a": b"2"}}))
    files.is_full = False
    assert database.backing("one").get(b"a") == b"1"
    with pytest.raises(StoreError, match="No space left"):  # until it is opened again
        database.write(Write(rows={"one": {b"a": b"3"}}))
    database.close()
    database = of_model(tmp_path)
    assert contents(database, ("one",)) == ({}, {"one": [(b"a", b"1")]})
    database.write(Write(rows={"one": {b"a": b"4"}}))
    database.close()


def write_until(seed: int, writes: int, *, closes_at: int, loses_power: bool) -> int:
    """How many of so many writes are there after the process, or the power, has ended."""
    left: list[int] = []
    with Simulation(seed) as simulation:
        disk = SimulatedDisk(simulation)

        def opened(files: FileSystem) -> Database:
            return ModelDatabases(files, log_bytes_max=2_000).open(Path("/state/0_0/db"), ["one"])

        def write() -> None:
            database = opened(disk.files(first))
            for folder in ("/", "/state", "/state/0_0"):  # else all of it may be lost
                disk.files(first).fsync_directory(folder)
            for number in range(1, writes + 1):
                text = b"%d" % number
                rows = {b"%d" % (number % 7): text, b"last": text * 100}
                database.write(Write(rows={"one": dict(rows)}, metadata={b"n": text}))
                if number == closes_at:
                    database.close()
                    database = opened(disk.files(first))

        def read() -> None:
            database = opened(disk.files(second))
            number = int(database.metadata().get(b"n", b"0"))
            expected: dict[bytes, bytes] = {}
            for each in range(1, number + 1):
                text = b"%d" % each
                expected |= {b"%d" % (each % 7): text, b"last": text * 100}
            assert dict(database.backing("one").scan(None, None)) == expected
            left.append(number)

        first, second = simulation.process("first"), simulation.process("second")
        simulation.start(first, "main", write)
        simulation.run(for_ms=60_000)
        if loses_power:
            disk.power_loss()
        else:
            simulation.kill(first)
        simulation.start(second, "main", read)
        simulation.run(for_ms=60_000)
        assert not simulation.scheduler.crashed, simulation.scheduler.crashed
    return left[0]


@pytest.mark.slow
def test_a_kill_keeps_all_writes_and_a_power_loss_those_up_to_some_point() -> None:
    for seed in range(20):
        assert write_until(seed, 12, closes_at=5, loses_power=False) == 12
    found = [write_until(seed, 12, closes_at=5, loses_power=True) for seed in range(60)]
    assert min(found) >= 5, "what was there when the database was closed is lost"
    assert len(set(found)) > 3, "a power loss loses nothing"
