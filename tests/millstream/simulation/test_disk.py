"""SimulatedDisk: what a program sees of it, and what a kill, a loss of power and faults leave."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.files import FileSystem
from millstream.simulation import Simulation
from millstream.simulation.clock import START_MS, VirtualClock
from millstream.simulation.disk import ProcessEnded, SimulatedDisk, SimulatedFiles
from millstream.simulation.stored import SECTOR_BYTES

NEW = os.O_RDWR | os.O_CREAT


@contextmanager
def disk_of(seed: int) -> Iterator[tuple[Simulation, SimulatedDisk, SimulatedFiles]]:
    """A simulation with one disk, and the file system of a process on it."""
    with Simulation(seed) as simulation:
        disk = SimulatedDisk(simulation)
        yield simulation, disk, disk.files(simulation.process("writer"))


def after_power_loss(simulation: Simulation, disk: SimulatedDisk) -> SimulatedFiles:
    """The file system of the next process."""
    disk.power_loss()
    return disk.files(simulation.process("reader"))


def write(files: FileSystem, path: str, data: bytes, position: int = 0) -> None:
    files.write_all(files.open(path, NEW), data, position)


# --- kills and losses of power --------------------------------------------------------------------


def test_a_kill_keeps_what_was_written() -> None:
    with disk_of(1) as (simulation, disk, files):
        process = simulation.process("other")
        write(disk.files(process), "/a", b"x" * 2000)
        simulation.kill(process)
        assert files.read_file("/a") == b"x" * 2000


def test_a_file_system_refuses_a_dead_process() -> None:
    with disk_of(1) as (simulation, disk, files):
        disk.power_loss()
        with pytest.raises(ProcessEnded):
            files.list_folder("/")
        process = simulation.process("again")
        files = disk.files(process)
        file = files.open("/a", NEW)
        simulation.kill(process)
        for use in (lambda: files.pwrite(file, b"x", 0), lambda: file.read(1, 0)):
            with pytest.raises(ProcessEnded):
                use()


@pytest.mark.parametrize("synced", ["file", "name", "both"])
def test_a_new_file_is_safe_once_it_and_its_folder_are_synced(synced: str) -> None:
    found = []
    for seed in range(50):
        with disk_of(seed) as (simulation, disk, files):
            write(files, "/a", b"data")
            if synced != "name":
                files.fsync(files.open("/a"))
            if synced != "file":
                files.fsync_directory("/")
            found.append(after_power_loss(simulation, disk).read_file("/a"))
    if synced == "both":
        assert set(found) == {b"data"}
    else:
        assert b"data" in found
        assert (None if synced == "file" else b"") in found


def test_a_folder_that_was_not_synced_takes_its_files_with_it() -> None:
    found = set()
    for seed in range(30):
        with disk_of(seed) as (simulation, disk, files):
            files.make_folder("/data/logs")
            write(files, "/data/logs/a", b"data")
            files.fsync(files.open("/data/logs/a"))
            files.fsync_directory("/data/logs")
            files.fsync_directory("/data")
            found.add(after_power_loss(simulation, disk).read_file("/data/logs/a"))
    assert found == {None, b"data"}


def test_sectors_are_lost_in_any_order() -> None:
    """A later write may be kept and an earlier one lost, and the size may be kept without data."""
    outcomes = set()
    for seed in range(300):
        with disk_of(seed) as (simulation, disk, files):
            file = files.open("/a", NEW)
            files.fsync_directory("/")
            for number in range(4):
                files.pwrite(file, bytes([number + 1]) * SECTOR_BYTES, number * SECTOR_BYTES)
            data = after_power_loss(simulation, disk).read_file("/a")
            assert data is not None
            outcomes.add(tuple(data[::SECTOR_BYTES]))
    assert {(), (1, 2, 3, 4), (0, 0, 0, 0)} <= outcomes
    assert any(len(kept) == 4 and kept[0] == 0 and kept[-1] == 4 for kept in outcomes)
    assert any(0 < len(kept) < 4 for kept in outcomes)


DataSteps = list[tuple[str, int, int]]
DATA_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "write", "truncate", "fsync"]),
        st.integers(0, 3 * SECTOR_BYTES),
        st.integers(1, 2 * SECTOR_BYTES),
    ),
    max_size=12,
)


@given(steps=DATA_STEPS, seed=st.integers(0, 1000), lost_by_error=st.booleans())
def test_after_a_loss_of_power_each_sector_has_one_of_its_versions(
    steps: DataSteps, seed: int, lost_by_error: bool
) -> None:
    with disk_of(seed) as (simulation, disk, files):
        file = files.open("/a", NEW)
        files.fsync_directory("/")
        versions = [b""]
        for number, (kind, position, size) in enumerate(steps, start=1):
            if kind == "write":
                files.pwrite(file, bytes([number]) * size, position)
            elif kind == "truncate":
                files.truncate(file, position)
            else:
                files.fsync(file)
                versions.clear()
            versions.append(file.read(1 << 20, 0))
        if lost_by_error:
            disk.fail_fsyncs(times=1)
            with pytest.raises(OSError, match="Input/output"):
                files.fsync(file)
        data = after_power_loss(simulation, disk).read_file("/a")
        assert data is not None
        assert len(data) in {len(version) for version in versions}
        for start in range(0, len(data), SECTOR_BYTES):
            piece = data[start : start + SECTOR_BYTES]
            allowed = {
                version[start : start + SECTOR_BYTES][: len(piece)].ljust(len(piece), b"\0")
                for version in versions
            }
            assert _is_one_of(piece, allowed), (start, steps)


def _is_one_of(piece: bytes, versions: set[bytes]) -> bool:
    """Whether a sector is a version, maybe with zeros in place of its end."""
    return any(version.startswith(piece.rstrip(b"\0")) for version in versions)


@given(
    seed=st.integers(0, 10_000),
    operations=st.integers(1, 12),
    durable=st.booleans(),
    old=st.binary(max_size=1500),
    new=st.binary(max_size=1500),
)
def test_a_file_that_is_replaced_is_the_old_one_or_the_new(
    seed: int, operations: int, durable: bool, old: bytes, new: bytes
) -> None:
    with Simulation(seed) as simulation:
        disk = SimulatedDisk(simulation)
        process = simulation.process("writer")
        files = disk.files(process)
        written: list[bytes] = []

        def body() -> None:
            files.write_file("/a", old)
            written.append(old)
            disk.stop_after(process, operations, disk.power_loss)
            files.write_file("/a", new)
            written.append(new)
            disk.power_loss()

        simulation.start(process, "main", body)
        simulation.run(for_ms=1_000)
        assert not process.is_alive
        found = disk.files(simulation.process("reader")).read_file("/a")
        assert found in ((new,) if written[-1] is new else (old, new))


NameSteps = list[tuple[str, str, str]]
NAMES = st.sampled_from(["/a", "/b", "/c", "/f/a", "/f/b"])
NAME_STEPS = st.lists(
    st.tuples(st.sampled_from(["create", "rename", "unlink", "sync", "sync"]), NAMES, NAMES),
    max_size=12,
)


@given(steps=NAME_STEPS, seed=st.integers(0, 1000))
def test_names_are_as_synced_or_as_changed_since(steps: NameSteps, seed: int) -> None:
    with disk_of(seed) as (simulation, disk, files):
        files.make_folder("/f")
        files.fsync_directory("/")
        held: dict[str, set[bytes | None]] = {}  # what each name may have; the last sync is one
        for number, (kind, first, second) in enumerate(steps):
            if kind == "create" and files.read_file(first) is None:
                write(files, first, bytes([number]))
                files.fsync(files.open(first))
            elif kind == "rename" and files.read_file(first) is not None:
                files.rename(first, second)
            elif kind == "unlink":
                files.unlink(first)
            elif kind == "sync":
                folder = os.path.dirname(first)
                files.fsync_directory(folder)
                for name in list(held):
                    if os.path.dirname(name) == folder:
                        held[name] = set()
            for name in ("/a", "/b", "/c", "/f/a", "/f/b"):
                held.setdefault(name, {None}).add(files.read_file(name))
        again = after_power_loss(simulation, disk)
        for name, possible in held.items():
            assert again.read_file(name) in possible, (name, steps)


# --- what programs see ----------------------------------------------------------------------------

Call = tuple[str, str, str, int]
CALLS = st.lists(
    st.tuples(
        st.sampled_from(
            ["write", "append", "read", "truncate", "rename", "unlink", "folder", "remove", "list"]
        ),
        st.sampled_from(["a", "b", "f", "f/a", "f/b", "f/g", "f/g/a"]),
        st.sampled_from(["a", "b", "f", "f/a", "f/g"]),
        st.integers(0, 2000),
    ),
    max_size=15,
)


def call(files: FileSystem, root: str, each: Call) -> object:
    """The outcome of one use of a file system."""
    kind, first, second, size = each
    path, other = os.path.join(root, first), os.path.join(root, second)
    uses: dict[str, Callable[[], object]] = {
        "write": lambda: files.write_file(path, b"w" * size, durable=False),
        "append": lambda: files.write_all(files.open(path, NEW), b"a" * size, size),
        "read": lambda: files.read_file(path),
        "truncate": lambda: files.truncate(files.open(path), size),
        "rename": lambda: files.rename(path, other),
        "unlink": lambda: files.unlink(path),
        "folder": lambda: files.make_folder(path),
        "remove": lambda: files.remove_folder(path),
        "list": lambda: sorted(files.list_folder(path).items()),
    }
    try:
        return uses[kind]()
    except OSError as error:
        return error.errno


@given(calls=CALLS)
def test_programs_see_what_a_real_file_system_shows(
    tmp_path_factory: pytest.TempPathFactory, calls: list[Call]
) -> None:
    root = str(tmp_path_factory.mktemp("real"))
    real = FileSystem()
    with disk_of(1) as (_, disk, files):
        files.make_folder("/root")
        for each in calls:
            outcomes = call(real, root, each), call(files, "/root", each)
            assert outcomes[0] == outcomes[1], each
        shown = {
            str(path.relative_to(root)): path.read_bytes()
            for path in Path(root).rglob("*")
            if path.is_file()
        }
        assert {path[6:]: bytes(node.data) for path, node in disk.walk()} == shown
        assert disk.used_bytes == sum(map(len, shown.values()))


def test_who_has_a_file_open_reads_on_after_it_is_removed() -> None:
    with disk_of(1) as (_, disk, files):
        write(files, "/a", b"data")
        file = files.open("/a")
        files.unlink("/a")
        assert file.read(10, 1) == b"ata"
        assert disk.used_bytes == 0


def test_one_process_at_a_time_has_the_lock_of_a_file() -> None:
    with disk_of(1) as (simulation, disk, files):
        process = simulation.process("first")
        others = disk.files(process)
        held = others.lock("/lock")
        with pytest.raises(BlockingIOError):
            files.lock("/lock")
        simulation.kill(process)
        own = files.lock("/lock")
        del held  # of the dead process: it does not release the lock of another
        with pytest.raises(BlockingIOError):
            files.lock("/lock")
        del own
        assert files.lock("/lock")


def test_times_of_files_are_those_of_the_machines_clock() -> None:
    with Simulation(seed=1) as simulation:
        clock = VirtualClock(simulation.scheduler)
        disk = SimulatedDisk(simulation, clock=clock)
        files = disk.files(simulation.process("writer"))
        write(files, "/a", b"x")
        simulation.scheduler.spend(7)
        write(files, "/b", b"x")
        clock.ahead_ms = -1000
        write(files, "/c", b"x")
        times = [files.modified_ns(name) for name in ("/a", "/b", "/c", "/d")]
        assert times == [
            START_MS * 1_000_000,
            START_MS * 1_000_000 + 7_000,
            (START_MS - 1000) * 1_000_000 + 7_000,
            None,
        ]


# --- faults ---------------------------------------------------------------------------------------


def test_a_failed_fsync_is_reported_once_and_loses_what_it_was_for() -> None:
    outcomes = set()
    for seed in range(40):
        with disk_of(seed) as (simulation, disk, files):
            file = files.open("/a", NEW)
            files.fsync_directory("/")
            files.pwrite(file, b"x" * 4096, 0)
            disk.fail_fsyncs(times=1)
            with pytest.raises(OSError, match="Input/output"):
                files.fsync(file)
            seen = file.read(4096, 0)
            files.fsync(file)
            kept = after_power_loss(simulation, disk).read_file("/a")
            assert kept is not None
            assert len(kept) == len(seen) == 4096
            outcomes.add((seen == b"x" * 4096, kept == b"x" * 4096))
    assert (True, False) in outcomes  # the page cache shows what is not on the disk
    assert (False, False) in outcomes


def test_a_full_disk_takes_a_part_and_then_nothing_until_there_is_room() -> None:
    with disk_of(1) as (_, disk, files):
        write(files, "/a", b"a" * 1000)
        write(files, "/b", b"b" * 1000)
        file = files.open("/a")
        disk.fill(room_bytes=10)
        assert files.pwrite(file, b"x" * 100, 1000) == 10
        with pytest.raises(OSError, match="No space") as caught:
            files.pwrite(file, b"x", 1010)
        assert caught.value.errno == errno.ENOSPC
        assert files.pwrite(file, b"y" * 100, 0) == 100  # has its place already
        assert files.space("/") == (2010, 0)
        files.unlink("/b")
        assert files.pwrite(file, b"x" * 100, 1010) == 100
        disk.heal()
        assert files.pwrite(file, b"x" * 100_000, 0) == 100_000


def test_descriptors_run_out_until_files_are_closed() -> None:
    with disk_of(1) as (_, disk, files):
        held = [files.open(f"/{number}", NEW) for number in range(5)]
        disk.limit_descriptors(5)
        with pytest.raises(OSError, match="Too many open files") as caught:
            files.open("/0")
        assert caught.value.errno == errno.EMFILE

        def make_room() -> bool:
            held.clear()
            return True

        files.make_room = make_room
        assert files.open("/0")
        assert files.open_count == 0


def test_reads_fail_where_they_are_to_fail() -> None:
    with disk_of(1) as (_, disk, files):
        for name in ("/a", "/b"):
            write(files, name, b"data")
        disk.fail_reads(only=lambda path: path == "/b")
        assert files.read_file("/a") == b"data"
        with pytest.raises(OSError, match="Input/output"):
            files.read_file("/b")
        disk.heal()
        assert files.read_file("/b") == b"data"


def test_a_slow_disk_takes_virtual_time() -> None:
    taken = {}
    for slow in (False, True):
        with Simulation(seed=1) as simulation:
            disk = SimulatedDisk(simulation)
            process = simulation.process("writer")
            files = disk.files(process)
            if slow:
                disk.slow_down((1_000, 2_000), other_ms=(5, 6))

            def body(files: SimulatedFiles = files) -> None:
                for number in range(10):
                    write(files, "/a", b"x", number)
                    files.fsync(files.open("/a"))
                taken[slow] = simulation.scheduler.now_us  # noqa: B023

            simulation.start(process, "main", body)
            simulation.run(for_ms=60_000)
            assert files.read_file("/a") == b"x" * 10
    assert 10_000 < taken[False] < 10 * 20_000
    assert 10 * 1_005_000 < taken[True] < 10 * 2_012_000 + 6_000


def test_what_is_written_during_an_fsync_is_not_synced_by_it() -> None:
    kept = set()
    for seed in range(40):
        with Simulation(seed) as simulation:
            disk = SimulatedDisk(simulation)
            disk.slow_down((100, 100))
            process = simulation.process("writer")
            files = disk.files(process)
            file = files.open("/a", NEW)
            files.fsync_directory("/")
            files.pwrite(file, b"1" * SECTOR_BYTES, 0)
            simulation.start(process, "syncs", partial(files.fsync, file))
            simulation.run(for_ms=50)
            files.pwrite(file, b"2" * SECTOR_BYTES, SECTOR_BYTES)
            simulation.run(for_ms=100)
            data = after_power_loss(simulation, disk).read_file("/a")
            assert data is not None
            assert data.startswith(b"1" * SECTOR_BYTES)
            kept.add(data[SECTOR_BYTES:])
    assert {b"", b"2" * SECTOR_BYTES} <= kept


def test_files_can_be_lost_as_a_whole_one_without_the_other() -> None:
    kept = set()
    for seed in range(40):
        with disk_of(seed) as (simulation, disk, files):
            for path in ("/a", "/b"):
                write(files, path, b"1" * 1000)
                files.fsync(files.open(path))
                files.fsync_directory("/")
                write(files, path, b"2" * 1000, 1000)
            disk.power_loss(whole=True)
            after = disk.files(simulation.process("reader"))
            kept.add((after.read_file("/a"), after.read_file("/b")))
    old, new = b"1" * 1000, b"1" * 1000 + b"2" * 1000
    assert kept == {(one, other) for one in (old, new) for other in (old, new)}


def test_only_changes_that_are_meant_end_a_process() -> None:
    with Simulation(1) as simulation:
        disk = SimulatedDisk(simulation)
        process = simulation.process("writer")
        files = disk.files(process)
        done: list[str] = []
        disk.stop_after(process, 1, suffix=".x", only=lambda: "/b" in done)

        def body() -> None:
            for path in ("/a", "/b", "/c"):
                write(files, path, b"1")
                files.rename(path, f"{path}.x")
                done.append(path)

        simulation.start(process, "main", body)
        simulation.run(for_ms=1)
        assert not process.is_alive
        assert done == ["/a", "/b"]


def test_some_files_can_be_slow_alone() -> None:
    with Simulation(1) as simulation:
        disk = SimulatedDisk(simulation)
        process = simulation.process("writer")
        files = disk.files(process)
        took_ms = {}
        disk.slow_down((1_000.0, 2_000.0), suffix=".log")

        def body() -> None:
            for path in ("/a", "/b.log"):
                write(files, path, b"1")
                began_us = simulation.scheduler.now_us
                files.fsync(files.open(path))
                took_ms[path] = (simulation.scheduler.now_us - began_us) // 1_000

        simulation.start(process, "main", body)
        simulation.run(for_ms=10_000)
        assert took_ms["/a"] <= 20
        assert took_ms["/b.log"] >= 1_000


def test_a_process_that_is_killed_in_a_write_leaves_a_part_of_it() -> None:
    sizes = set()
    for seed in range(40):
        with Simulation(seed) as simulation:
            disk = SimulatedDisk(simulation)
            process = simulation.process("writer")
            files = disk.files(process)
            file = files.open("/a", NEW)
            disk.stop_after(process, 2)

            def body(files: SimulatedFiles = files) -> None:
                for position in (0, 100, 200):
                    files.pwrite(file, b"x" * 100, position)  # noqa: B023

            simulation.start(process, "main", body)
            simulation.run(for_ms=1)
            assert not process.is_alive
            data = disk.files(simulation.process("reader")).read_file("/a")
            assert data is not None
            sizes.add(len(data))
    assert min(sizes) >= 100
    assert max(sizes) <= 200
    assert len(sizes) > 10


def test_flipped_bits_stay() -> None:
    with disk_of(1) as (simulation, disk, files):
        write(files, "/a", bytes(5000))
        write(files, "/b", bytes(5000))
        for name in ("/a", "/b"):
            files.fsync(files.open(name))
        files.fsync_directory("/")
        disk.flip_bits(3, only=lambda path: path == "/b")
        assert files.read_file("/a") == bytes(5000)
        damaged = files.read_file("/b")
        assert damaged != bytes(5000)
        assert after_power_loss(simulation, disk).read_file("/b") == damaged


def test_a_seed_is_an_outcome() -> None:
    def outcome(seed: int) -> str:
        with disk_of(seed) as (simulation, disk, files):
            for number in range(10):
                files.write_file(f"/{number}", bytes([number]) * 1000, durable=number % 2 == 0)
            disk.power_loss()
            return f"{disk.digest()} {simulation.history.digest()}"

    outcomes = [outcome(seed) for seed in range(20)]
    assert outcomes == [outcome(seed) for seed in range(20)]
    assert len(set(outcomes)) > 10
