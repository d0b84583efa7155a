"""StoredFile and StoredFolder: the content of a simulated disk in memory, and its durable part.

    write, truncate            data: the page cache        changes: not on the disk yet
    create, rename, unlink     entries: names in memory
          | fsync of the file, or of the folder
          v
    durable                    what remains after a power loss, with any part of the changes

A disk writes sectors of 512 bytes, each atomically, in any order and at any time. So after a power
loss each sector has the content after any of its writes since the fsync, and the size is any size
since then, with zeros where no sector was written.
"""

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

SECTOR_BYTES = 512
OLD_VERSION_CHANCE = 0.2  # the chance that a sector that lacks writes has some of them


class DataChange(NamedTuple):
    """A write at a position, or without data a change of the size."""

    number: int
    position: int
    data: bytes | None
    size_after: int
    cuts: bool = False


class StoredFile:
    """The bytes of a file."""

    __slots__ = (
        "changes", "data", "durable", "is_linked", "lock_owner", "modified_ns", "next_number"
    )  # fmt: skip

    def __init__(self, modified_ns: int) -> None:
        self.data = bytearray()
        self.durable = bytearray()
        self.changes: list[DataChange] = []
        self.next_number = 0
        self.modified_ns = modified_ns
        self.is_linked = True
        self.lock_owner: object = None

    def write(self, data: bytes, position: int) -> None:
        """Write into the page cache."""
        _write(self.data, data, position)
        self._changed(position, data)

    def truncate(self, size: int) -> None:
        """Change the size in the page cache."""
        cuts = size < len(self.data)
        _resize(self.data, size)
        self._changed(size, None, cuts=cuts)

    def _changed(self, position: int, data: bytes | None, *, cuts: bool = False) -> None:
        change = DataChange(self.next_number, position, data, len(self.data), cuts)
        self.changes.append(change)
        self.next_number += 1

    def _count_before(self, end_number: int) -> int:
        return sum(1 for change in self.changes if change.number < end_number)

    def make_durable(self, end_number: int) -> None:
        """Make all changes before a number durable."""
        count = self._count_before(end_number)
        for change in self.changes[:count]:
            _apply(self.durable, change)
        del self.changes[:count]

    def lose_power(self, random: Random, *, whole: bool = False) -> None:
        """Keep a random part of the changes, or with `whole` all or none."""
        if whole and random.random() < 0.5:
            self.make_durable(self.next_number)
        elif self.changes and not whole:
            self.durable = self._image(self.changes, random)
        self.changes.clear()
        self.data = bytearray(self.durable)

    def lose_writes(self, end_number: int, random: Random) -> None:
        """Lose changes before a number in a failed fsync; they are not written later.

        Programs may or may not still see them in the page cache.
        """
        count = self._count_before(end_number)
        if not count:
            return
        size = self.changes[count - 1].size_after
        self.durable = self._image(self.changes[:count], random)
        del self.changes[:count]
        if len(self.durable) != size:  # the size is metadata and not lost with the pages
            cuts = size < len(self.durable)
            self.changes.insert(0, DataChange(end_number - 1, size, None, size, cuts))
        if random.random() < 0.5:
            self.data = bytearray(self.durable)
            for change in self.changes:
                _apply(self.data, change)

    def _image(self, changes: list[DataChange], random: Random) -> bytearray:
        """A possible content of the disk: some versions of the sectors, and some size."""
        count = len(changes)
        size_end = random.choice((count, count, 0, random.randint(0, count)))
        # If a truncation is not on disk, later writes to the blocks that it frees are not, either.
        end = next((n for n in range(size_end, count) if changes[n].cuts), count)
        keep_chance = random.choice((0.0, 1.0, random.random()))
        sectors: dict[int, int] = {}  # the number of changes in each
        image = bytearray(self.durable)
        for number, change in enumerate(changes[:end]):
            if change.data is None:
                if number < size_end:
                    _resize(image, change.size_after)
                continue
            for sector, start, stop in _pieces(change.position, len(change.data)):
                version = sectors.get(sector)
                if version is None:
                    version = sectors[sector] = _version(random, keep_chance, end)
                if number < version:
                    offset = change.position
                    _write(image, change.data[start - offset : stop - offset], start)
        _resize(image, changes[size_end - 1].size_after if size_end else len(self.durable))
        return image

    def flip_bit(self, position: int, bit: int) -> None:
        """Flip a bit, on disk and in memory."""
        for data in (self.data, self.durable):
            if position < len(data):
                data[position] ^= 1 << bit


def _version(random: Random, keep_chance: float, end: int) -> int:
    if random.random() < keep_chance:
        return end
    return random.randint(0, end) if random.random() < OLD_VERSION_CHANCE else 0


def _pieces(position: int, size: int) -> list[tuple[int, int, int]]:
    """The sectors of a write, with its start and end in each."""
    end = position + size
    return [
        (sector, max(position, sector * SECTOR_BYTES), min(end, (sector + 1) * SECTOR_BYTES))
        for sector in range(position // SECTOR_BYTES, (end + SECTOR_BYTES - 1) // SECTOR_BYTES)
    ]


def _apply(target: bytearray, change: DataChange) -> None:
    if change.data is None:
        _resize(target, change.size_after)
    else:
        _write(target, change.data, change.position)


def _write(target: bytearray, data: bytes, position: int) -> None:
    if position > len(target):
        target.extend(bytes(position - len(target)))
    target[position : position + len(data)] = data


def _resize(target: bytearray, size: int) -> None:
    if size < len(target):
        del target[size:]
    else:
        target.extend(bytes(size - len(target)))


class StoredFolder:
    """Names of files and folders."""

    __slots__ = ("durable", "entries", "modified_ns")

    def __init__(self, modified_ns: int) -> None:
        self.entries: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}
        self.modified_ns = modified_ns


Node = StoredFile | StoredFolder
Name = tuple[StoredFolder, str, Node]


class NameChange(NamedTuple):
    """A removed name, an added one, or both atomically."""

    number: int
    removed: Name | None
    added: Name | None

    def objects(self) -> list[object]:
        """The names and nodes of the change; changes of the same object keep their order."""
        return [
            each
            for folder, name, node in filter(None, (self.removed, self.added))
            for each in ((id(folder), name), id(node))
        ]

    @property
    def is_move(self) -> bool:
        """Whether it moves a node between directories."""
        return (
            self.removed is not None
            and self.added is not None
            and self.removed[0] is not self.added[0]
        )

    def touches(self, folder: StoredFolder) -> bool:
        """Whether an fsync of the directory covers it."""
        return (self.removed is not None and self.removed[0] is folder) or (
            self.added is not None and self.added[0] is folder
        )

    def make_durable(self) -> None:
        """Make the change durable."""
        if self.removed is not None:
            self.removed[0].durable.pop(self.removed[1], None)
        if self.added is not None:
            self.added[0].durable[self.added[1]] = self.added[2]


@dataclass(slots=True)
class Names:
    """The tree of directories, and the changes of names that are not durable yet."""

    root: StoredFolder = field(default_factory=lambda: StoredFolder(0))
    changes: list[NameChange] = field(default_factory=list)
    next_number: int = 0

    def change(
        self,
        removed: Name | None,
        added: Name | None,
    ) -> None:
        """Remove a name, add one, or rename, in memory."""
        if removed is not None:
            del removed[0].entries[removed[1]]
        if added is not None:
            added[0].entries[added[1]] = added[2]
        self.changes.append(NameChange(self.next_number, removed, added))
        self.next_number += 1

    def make_durable(self, folder: StoredFolder, end_number: int) -> None:
        """Make the changes of a directory before a number durable, with their dependencies."""
        kept: list[NameChange] = []
        made_durable: list[NameChange] = []
        elsewhere: set[object] = set()  # names and nodes that moved between directories
        for change in reversed(self.changes):
            is_due = change.number < end_number and change.touches(folder)
            if is_due or (elsewhere and not elsewhere.isdisjoint(change.objects())):
                made_durable.append(change)
                if not is_due or change.is_move:
                    elsewhere.update(change.objects())
            else:
                kept.append(change)
        for change in reversed(made_durable):
            change.make_durable()
        self.changes = kept[::-1]

    def lose_power(self, random: Random, *, whole: bool = False) -> None:
        """Keep a random part of the changes of names; then files lose data.

        With `whole` each file has its latest or its fsynced content: systems write back one file
        after another, in any order, so this is more likely than a mixture of sectors.
        """
        count = len(self.changes)
        if whole:
            chance = random.choice((0.5, 1.0))
            kept = [random.random() < chance for _ in range(count)]
        elif random.random() < 0.4:  # as a journal does
            end = random.randint(0, count)
            kept = [number < end for number in range(count)]
        else:
            chance = random.choice((0.0, 1.0, random.random()))
            kept = [random.random() < chance for _ in range(count)]
        lost: set[object] = set()
        for change, is_kept in zip(self.changes, kept, strict=True):
            objects = change.objects()
            if is_kept and lost.isdisjoint(objects):
                change.make_durable()
            else:
                lost.update(objects)
        self.changes.clear()
        self._restore(self.root, random, whole=whole)

    def _restore(self, folder: StoredFolder, random: Random, *, whole: bool) -> None:
        folder.entries = dict(folder.durable)
        for node in folder.entries.values():
            if isinstance(node, StoredFolder):
                self._restore(node, random, whole=whole)
            else:
                node.is_linked = True
                node.lose_power(random, whole=whole)
