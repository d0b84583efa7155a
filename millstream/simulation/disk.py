"""SimulatedDisk: the disk of one simulated machine, in memory. It survives the machine's processes.

    kill of a process    keeps everything: the page cache belongs to the machine
    power_loss           keeps fsynced data, and any part of the rest (see stored.py)

    disk = SimulatedDisk(simulation, "broker")
    machine = replace(simulation.machine(process), files=disk.files(process))

Methods switch faults on and off; the seed decides which operations fail, how long they take, and
what is lost.
"""

import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from broker.files import FileSystem
from broker.model import OpenFile
from millstream.simulation.clock import START_MS, VirtualClock
from millstream.simulation.scheduler import MICROSECONDS, Process, SimulationOver
from millstream.simulation.simulation import Simulation
from millstream.simulation.stored import SECTOR_BYTES, Names, Node, StoredFile, StoredFolder

CAPACITY_BYTES = 1 << 40
DESCRIPTORS_MAX = 1024
FSYNC_MS = (0.1, 20.0)
NO_TIME_MS = (0.0, 0.0)
SLOW_FSYNC_MS = (20.0, 3_000.0)
CREATE_REFUSED_CHANCE = 0.5  # on a full disk there may still be room for a name

Milliseconds = tuple[float, float]


class ProcessEnded(SimulationOver):
    """A process used its disk after it was killed, or after its machine lost power."""


@dataclass(slots=True)
class DiskFault:
    """A fault that occurs with some probability."""

    chance: float = 0.0
    times: int | None = None  # how often at most
    only: Callable[[str], bool] = lambda _: True


class SimulatedDisk:
    """One disk; `files` returns the file system of a process on it."""

    def __init__(
        self,
        simulation: Simulation,
        name: str = "disk",
        *,
        clock: VirtualClock | None = None,
        capacity_bytes: int = CAPACITY_BYTES,
    ) -> None:
        """Create an empty disk; modification times are those of the clock."""
        self.name = name
        self.random = simulation.random(f"disk {name}")
        self.scheduler = simulation.scheduler
        self.names = Names()
        self.used_bytes = 0
        self.power_losses = 0
        self.capacity_bytes = capacity_bytes
        self._capacity_bytes = capacity_bytes
        self._simulation = simulation
        self._clock = clock
        self._mounted: dict[Process, SimulatedFiles] = {}
        self._fsync_faults = DiskFault()
        self._read_faults = DiskFault()
        self.fsync_ms = FSYNC_MS
        self.other_ms = NO_TIME_MS
        self._slow_suffix = ""

    def __repr__(self) -> str:
        return f"disk {self.name}"

    def files(
        self, process: Process, *, descriptors_max: int = DESCRIPTORS_MAX
    ) -> "SimulatedFiles":
        """The file system for a process, until it ends."""
        files = self._mounted.get(process)
        if files is None:
            files = self._mounted[process] = SimulatedFiles(self, process, descriptors_max)
            process.on_kill.append(lambda: self._unmount(process))
        return files

    def _unmount(self, process: Process) -> None:
        files = self._mounted.pop(process, None)
        if files is not None:
            files.die()

    def now_ns(self) -> int:
        """The wall-clock time for modification times."""
        ahead_ms = 0 if self._clock is None else self._clock.ahead_ms
        return (START_MS + ahead_ms) * 1_000_000 + self.scheduler.now_us * 1_000

    def note(self, event: str, *details: object) -> None:
        """Add an event to the history."""
        self._simulation.history.add(self, event, *details)

    # --- faults ---------------------------------------------------------------------------------

    def power_loss(self, *, whole: bool = False) -> None:
        """Cut the power: the machine's processes end, and data that was not fsynced is lost.

        With `whole`, each file loses all such data or none, see stored.py.
        """
        self.power_losses += 1
        dead = list(self._mounted)
        for process in dead:
            self._unmount(process)
        self.names.lose_power(self.random, whole=whole)
        self.used_bytes = sum(len(node.data) for _, node in self.walk())
        self.note("lost power, keeps", self.digest())
        current = self.scheduler.current
        own = None if current is None else current.process
        for process in sorted(
            dead, key=lambda process: process is own
        ):  # the caller's process last
            if process.is_alive:
                self._simulation.kill(process)

    def stop_after(
        self,
        process: Process,
        operations: int,
        stop: Callable[[], None] | None = None,
        *,
        suffix: str = "",
        only: Callable[[], bool] = lambda: True,
    ) -> None:
        """Kill a process, or call `stop`, during a later file operation.

        A write is then partial. `stop` can be `disk.power_loss`. With a suffix only renames to such
        names count, and only operations while `only` returns true.
        """
        assert operations > 0
        files = self._mounted[process]
        files.stop_suffix, files.stop_only = suffix, only
        files.operations_left = operations
        files.stop = stop or (lambda: self._simulation.kill(process))

    def fail_fsyncs(
        self,
        chance: float = 1.0,
        *,
        times: int | None = None,
        only: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Make fsyncs fail with EIO: the data is lost, and the next fsync succeeds."""
        self._fsync_faults = DiskFault(chance, times, only)

    def fail_reads(
        self,
        chance: float = 1.0,
        *,
        times: int | None = None,
        only: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """Make reads fail with EIO."""
        self._read_faults = DiskFault(chance, times, only)

    def fill(self, room_bytes: int = 0) -> None:
        """Limit the free space; removed files release space."""
        self.capacity_bytes = self.used_bytes + room_bytes
        self.note("is full up to", room_bytes, "bytes")

    def slow_down(
        self,
        fsync_ms: Milliseconds = SLOW_FSYNC_MS,
        *,
        other_ms: Milliseconds = NO_TIME_MS,
        suffix: str = "",
    ) -> None:
        """Set the range of durations of fsyncs, and of other operations.

        With a suffix only fsyncs of files with such names are slow.
        """
        self.fsync_ms, self.other_ms, self._slow_suffix = fsync_ms, other_ms, suffix

    def limit_descriptors(self, count: int | None) -> None:
        """Limit the open files of each running process; None: the default."""
        for files in self._mounted.values():
            files.open_max = files.descriptors_max() if count is None else count

    def open_count(self) -> int:
        """The number of open files of running processes."""
        return sum(files.open_count for files in self._mounted.values())

    def heal(self) -> None:
        """End all faults; lost data stays lost."""
        self._fsync_faults = DiskFault()
        self._read_faults = DiskFault()
        self.capacity_bytes = self._capacity_bytes
        self.fsync_ms, self.other_ms, self._slow_suffix = FSYNC_MS, NO_TIME_MS, ""
        for files in self._mounted.values():
            files.open_max = files.descriptors_max()
            files.operations_left = 0

    def flip_bits(self, count: int = 1, *, only: Callable[[str], bool] = lambda _: True) -> None:
        """Damage bits of one sector of one of the files."""
        candidates = [(path, node) for path, node in self.walk() if node.durable and only(path)]
        if not candidates:
            return
        path, node = self.random.choice(candidates)
        sector = self.random.randrange(0, len(node.durable), SECTOR_BYTES)
        end = min(sector + SECTOR_BYTES, len(node.durable))
        for _ in range(count):
            node.flip_bit(self.random.randrange(sector, end), self.random.randrange(8))
        self.note("flips bits of", path, "at", sector)

    def is_hit(self, kind: str, path: str) -> bool:
        """Whether a read or an fsync must fail."""
        fault = self._fsync_faults if kind == "fsync" else self._read_faults
        if not fault.chance or fault.times == 0 or not fault.only(path):
            return False
        if self.random.random() >= fault.chance:
            return False
        if fault.times is not None:
            fault.times -= 1
        self.note(f"{kind} failed", path)
        return True

    def delay(self, kind: str, path: str = "") -> None:
        """Block the current thread for the duration of an operation."""
        low_ms, high_ms = self.other_ms
        if kind == "fsync":
            low_ms, high_ms = self.fsync_ms if path.endswith(self._slow_suffix) else FSYNC_MS
        if high_ms > 0 and self.scheduler.current is not None:
            self.scheduler.sleep(int(self.random.uniform(low_ms, high_ms) * MICROSECONDS))

    # --- content --------------------------------------------------------------------------------

    def walk(
        self, folder: StoredFolder | None = None, path: str = ""
    ) -> Iterator[tuple[str, StoredFile]]:
        """All files, with their paths, in order."""
        for name, node in sorted((folder or self.names.root).entries.items()):
            if isinstance(node, StoredFolder):
                yield from self.walk(node, f"{path}/{name}")
            else:
                yield f"{path}/{name}", node

    def has_name_with_end(self, end: str, folder: StoredFolder | None = None) -> bool:
        """Whether a name has this suffix; called for each write, so it builds no paths."""
        return any(
            self.has_name_with_end(end, node)
            if isinstance(node, StoredFolder)
            else name.endswith(end)
            for name, node in (folder or self.names.root).entries.items()
        )

    def digest(self) -> str:
        """A digest of all paths and contents."""
        digest = hashlib.blake2b(digest_size=8)
        for path, node in self.walk():
            digest.update(f"{path}\n{len(node.data)}\n".encode())
            digest.update(node.data)
        return digest.hexdigest()

    def find(self, path: str) -> Node:
        """The file or directory of a path; raises FileNotFoundError."""
        folder, name = self.find_folder_of(path)
        if not name:
            return folder
        try:
            return folder.entries[name]
        except KeyError:
            raise failure(errno.ENOENT, path) from None

    def find_folder_of(self, path: str) -> tuple[StoredFolder, str]:
        """The parent directory of a path, and the name in it; the root has no name."""
        assert path.startswith("/"), f"{path} depends on the working directory"
        *parents, name = [part for part in path.split("/") if part] or [""]
        node: Node = self.names.root
        for part in parents:
            if not isinstance(node, StoredFolder):
                raise failure(errno.ENOTDIR, path)
            child = node.entries.get(part)
            if child is None:
                raise failure(errno.ENOENT, path)
            node = child
        if not isinstance(node, StoredFolder):
            raise failure(errno.ENOTDIR, path)
        return node, name

    def unlink(self, folder: StoredFolder, name: str) -> None:
        """Remove a name."""
        self.release(folder.entries[name])
        self.names.change((folder, name, folder.entries[name]), None)

    def release(self, node: Node) -> None:
        """Release the space of a file without a name; open files can still be read."""
        if isinstance(node, StoredFile) and node.is_linked:
            node.is_linked = False
            self.used_bytes -= len(node.data)

    def resize(self, node: StoredFile, before_bytes: int) -> None:
        """Count the space of a file whose size has changed."""
        if node.is_linked:
            self.used_bytes += len(node.data) - before_bytes

    @property
    def free_bytes(self) -> int:
        """The free space."""
        return max(0, self.capacity_bytes - self.used_bytes)


def failure(number: int, path: str) -> OSError:
    """The error that the kernel would return."""
    return OSError(number, os.strerror(number), path)


class SimulatedFile(OpenFile):
    """An open file or folder of a simulated process."""

    __slots__ = ("files", "node", "path", "writable")

    def __init__(self, files: "SimulatedFiles", node: Node, path: str, *, writable: bool) -> None:
        self.descriptor = -1  # not a descriptor of the real machine
        self.files = files
        self.node = node
        self.path = path
        self.writable = writable
        files.open_count += 1

    def read(self, size: int, position: int) -> bytes:
        """Bytes at a position; fewer at the end of the file."""
        return self.files.pread(self, size, position)

    def __del__(self) -> None:
        self.files.open_count -= 1
        if isinstance(self.node, StoredFile) and self.node.lock_owner == (self.files, id(self)):
            self.node.lock_owner = None


class SimulatedFiles(FileSystem):
    """The file system of a simulated process; see FileSystem."""

    def __init__(self, disk: SimulatedDisk, process: Process, descriptors_max: int) -> None:
        self._disk = disk
        self._process = process
        self._descriptors_max = self.open_max = descriptors_max
        self._locked: list[StoredFile] = []
        self.open_count = 0
        self.is_dead = False
        self.operations_left = 0  # until `stop` is called; 0: never
        self.stop_suffix = ""  # only renames to names with this suffix count
        self.stop_only: Callable[[], bool] = lambda: True
        self.stop: Callable[[], None] = lambda: None

    def die(self) -> None:
        """Release the locks of a process that has ended."""
        self.is_dead = True
        for node in self._locked:
            if isinstance(node.lock_owner, tuple) and node.lock_owner[0] is self:
                node.lock_owner = None

    def _check(self) -> None:
        if self.is_dead or not self._process.is_alive:
            raise ProcessEnded(f"{self._process} is dead")
        if self._disk.scheduler.is_over:
            raise SimulationOver

    def _begin(self, kind: str = "other", path: str = "") -> None:
        """Called at the start of every file operation: faults, and delays."""
        if self._must_stop("" if kind == "fsync" else path):
            self.stop()
        self._check()
        self._disk.delay(kind, path)

    def _must_stop(self, path: str = "") -> bool:
        self._check()
        if not self.operations_left or not path.endswith(self.stop_suffix):
            return False
        if not self.stop_only():
            return False
        self.operations_left -= 1
        return not self.operations_left

    # --- files ----------------------------------------------------------------------------------

    def open_once(self, path: str, flags: int) -> OpenFile:
        """Open a file or folder."""
        self._check()
        if self.open_count >= self.open_max:
            self._disk.note("no descriptors left for", self._process)
            raise failure(errno.EMFILE, path)
        folder, name = self._disk.find_folder_of(path)
        node = folder.entries.get(name) if name else folder
        if node is None:
            if not flags & os.O_CREAT:
                raise failure(errno.ENOENT, path)
            node = self._create(folder, name, path)
        elif flags & os.O_EXCL:
            raise failure(errno.EEXIST, path)
        writable = bool(flags & (os.O_RDWR | os.O_WRONLY))
        if isinstance(node, StoredFolder):
            if writable:
                raise failure(errno.EISDIR, path)
        elif flags & os.O_DIRECTORY:
            raise failure(errno.ENOTDIR, path)
        elif flags & os.O_TRUNC and node.data:
            self._truncate(node, 0)
        return SimulatedFile(self, node, path, writable=writable)

    def _create(self, folder: StoredFolder, name: str, path: str) -> StoredFile:
        self._begin()
        self._need_room_for_name(path)
        existing = folder.entries.get(name)  # another thread may have created it meanwhile
        if isinstance(existing, StoredFile):
            return existing
        node = StoredFile(self._disk.now_ns())
        self._disk.names.change(None, (folder, name, node))
        return node

    def _need_room_for_name(self, path: str) -> None:
        disk = self._disk
        if not disk.free_bytes and disk.random.random() < CREATE_REFUSED_CHANCE:
            raise failure(errno.ENOSPC, path)

    def lock(self, path: str) -> OpenFile:
        """Open a file that no other process has locked."""
        file = self.open(path, os.O_RDWR | os.O_CREAT)
        node = _stored(file)
        if node.lock_owner is not None:
            raise failure(errno.EWOULDBLOCK, path)
        node.lock_owner = (self, id(file))
        self._locked.append(node)
        return file

    def size(self, file: OpenFile) -> int:
        """Size of an open file in bytes."""
        self._check()
        return len(_stored(file).data)

    def pwrite(self, file: OpenFile, data: memoryview | bytes, position: int) -> int:
        """Write at a position, as much as fits; a part of it if the process ends here."""
        node = _stored(file, to_write=True)
        if self._must_stop():
            self._write(node, data[: self._disk.random.randint(0, len(data))], position)
            self.stop()
        self._check()
        self._disk.delay("write")
        growth = max(0, position + len(data) - len(node.data))
        missing = max(0, growth - self._disk.free_bytes) if node.is_linked else 0
        if missing >= len(data) > 0:
            raise failure(errno.ENOSPC, _path(file))
        return self._write(node, data[: len(data) - missing], position)

    def _write(self, node: StoredFile, data: memoryview | bytes, position: int) -> int:
        before_bytes = len(node.data)
        node.write(bytes(data), position)
        node.modified_ns = self._disk.now_ns()
        self._disk.resize(node, before_bytes)
        return len(data)

    def pread(self, file: OpenFile, size: int, position: int) -> bytes:
        """Read at a position; less at the end of the file."""
        self._check()
        node = _stored(file)
        self._disk.delay("read")
        if self._disk.is_hit("read", _path(file)):
            raise failure(errno.EIO, _path(file))
        return bytes(node.data[position : position + size])

    def truncate(self, file: OpenFile, size: int) -> None:
        """Cut a file to a size."""
        self._truncate(_stored(file, to_write=True), size)

    def _truncate(self, node: StoredFile, size: int) -> None:
        self._begin()
        before_bytes = len(node.data)
        node.truncate(size)
        node.modified_ns = self._disk.now_ns()
        self._disk.resize(node, before_bytes)

    def fsync(self, file: OpenFile) -> None:
        """Make bytes that were written before the call durable."""
        node = _stored(file)
        end_number = node.next_number
        self._begin("fsync", _path(file))
        if self._disk.is_hit("fsync", _path(file)):
            node.lose_writes(end_number, self._disk.random)
            raise failure(errno.EIO, _path(file))
        node.make_durable(end_number)

    # --- names ----------------------------------------------------------------------------------

    def fsync_names(self, folder: OpenFile) -> None:
        """Make the names in an open directory durable."""
        assert isinstance(folder, SimulatedFile)
        assert isinstance(folder.node, StoredFolder)
        end_number = self._disk.names.next_number
        self._begin("fsync", folder.path)
        if self._disk.is_hit("fsync", folder.path):
            raise failure(errno.EIO, folder.path)
        self._disk.names.make_durable(folder.node, end_number)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory, replacing an existing one."""
        self._begin(path=new)
        disk = self._disk
        old_folder, old_name = disk.find_folder_of(old)
        new_folder, new_name = disk.find_folder_of(new)
        node = old_folder.entries.get(old_name)
        if node is None:
            raise failure(errno.ENOENT, old)
        replaced = new_folder.entries.get(new_name)
        if replaced is node:
            return
        if f"{new}/".startswith(f"{old}/"):
            raise failure(errno.EINVAL, new)
        if f"{old}/".startswith(f"{new}/"):
            raise failure(errno.ENOTEMPTY, new)
        if isinstance(replaced, StoredFolder):
            if not isinstance(node, StoredFolder):
                raise failure(errno.EISDIR, new)
            if replaced.entries:
                raise failure(errno.ENOTEMPTY, new)
        elif replaced is not None:
            if isinstance(node, StoredFolder):
                raise failure(errno.ENOTDIR, new)
            disk.release(replaced)
        disk.names.change((old_folder, old_name, node), (new_folder, new_name, node))

    def unlink(self, path: str) -> None:
        """Remove a file, if it exists."""
        self._begin()
        try:
            folder, name = self._disk.find_folder_of(path)
        except FileNotFoundError:
            return
        node = folder.entries.get(name)
        if isinstance(node, StoredFolder):
            raise failure(errno.EISDIR, path)
        if node is not None:
            self._disk.unlink(folder, name)

    def make_folder(self, path: str) -> None:
        """Create a folder with its parents, unless it exists."""
        folder = self._disk.names.root
        names = [part for part in path.split("/") if part]
        for number, name in enumerate(names, start=1):
            node = folder.entries.get(name)
            if node is None:
                self._begin()
                self._need_room_for_name(path)
                node = folder.entries.get(name)  # another thread may have created it meanwhile
            if node is None:
                node = StoredFolder(self._disk.now_ns())
                self._disk.names.change(None, (folder, name, node))
            if not isinstance(node, StoredFolder):
                raise failure(errno.EEXIST if number == len(names) else errno.ENOTDIR, path)
            folder = node

    def remove_folder(self, path: str) -> None:
        """Remove a folder and its content, in some order."""
        self._check()
        try:
            folder, name = self._disk.find_folder_of(path)
        except OSError:
            return
        node = folder.entries.get(name)
        if isinstance(node, StoredFolder):
            self._remove_all(node)
            self._begin()
            if not node.entries and folder.entries.get(name) is node:
                self._disk.unlink(folder, name)

    def _remove_all(self, folder: StoredFolder) -> None:
        for name, node in list(folder.entries.items()):
            if isinstance(node, StoredFolder):
                self._remove_all(node)
            self._begin()
            if folder.entries.get(name) is node:
                self._disk.unlink(folder, name)

    def list_folder(self, path: str) -> dict[str, int]:
        """Names and sizes of the files in a folder; sub-folders have size -1."""
        self._check()
        node = self._disk.find(path)
        if not isinstance(node, StoredFolder):
            raise failure(errno.ENOTDIR, path)
        return {
            name: -1 if isinstance(entry, StoredFolder) else len(entry.data)
            for name, entry in node.entries.items()
        }

    def modified_ns(self, path: str) -> int | None:
        """When a file was last written; None if it does not exist."""
        self._check()
        try:
            return self._disk.find(path).modified_ns
        except (FileNotFoundError, NotADirectoryError):
            return None

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        """Set the modification time of a file or directory."""
        self._begin()
        self._disk.find(path).modified_ns = time_ms * 1_000_000

    def is_named(self, file: OpenFile, path: str) -> bool:
        """Whether a path still names an open file: it was neither removed nor replaced."""
        self._check()
        assert isinstance(file, SimulatedFile)
        try:
            return self._disk.find(path) is file.node
        except FileNotFoundError:
            return False

    def space(self, path: str) -> tuple[int, int]:
        """The capacity of the disk and its free space, in bytes."""
        self._check()
        return self._disk.capacity_bytes, self._disk.free_bytes

    def descriptors_max(self) -> int:
        """The maximum number of descriptors of the process."""
        return self._descriptors_max


def _stored(file: OpenFile, *, to_write: bool = False) -> StoredFile:
    """The stored file of an open one; raises as the kernel does for other files."""
    assert isinstance(file, SimulatedFile)
    if not isinstance(file.node, StoredFile):
        raise failure(errno.EISDIR, file.path)
    if to_write and not file.writable:
        raise failure(errno.EBADF, file.path)
    return file.node


def _path(file: OpenFile) -> str:
    assert isinstance(file, SimulatedFile)
    return file.path
