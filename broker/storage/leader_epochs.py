"""LeaderEpochs: where each epoch of a log's leader begins, so that readers notice a lost tail.

The epoch moves whenever the broker starts after a crash, because the crash may have lost the end of
a log, and other records may get the offsets that a reader has seen. Each batch carries the epoch in
which it was appended. A reader who had records of epoch 3 up to an offset asks where epoch 3 ended:
if that is before its offset, what it read is no longer there.

    leader-epoch              the epoch of the broker's present run, in the data directory. Ours
    leader-epoch-checkpoint   the epochs of a log, in its folder; see checkpoints.py

An epoch in which nothing was appended has no entry: it begins and ends at the log's end.
"""

import os
from bisect import bisect_right

from broker.files import FileSystem
from broker.storage import checkpoints

FILE_NAME = "leader-epoch"
NO_EPOCH = -1

Entry = tuple[int, int]  # an epoch, and the offset at which it begins


class LeaderEpochs:
    """The epochs of one log, in ascending order of epochs and offsets."""

    __slots__ = ("entries", "latest")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.latest = NO_EPOCH

    def load(self, entries: list[Entry]) -> None:
        """Take the entries of a file; what does not ascend is left out."""
        for epoch, offset in entries:
            if not self.entries or (epoch > self.latest and offset >= self.entries[-1][1]):
                self.assign(epoch, offset)

    def assign(self, epoch: int, offset: int) -> None:
        """An epoch begins at an offset; entries that contradict it go."""
        while self.entries and (self.entries[-1][0] >= epoch or self.entries[-1][1] >= offset):
            self.entries.pop()
        self.entries.append((epoch, offset))
        self.latest = epoch

    def cut_end(self, end_offset: int) -> None:
        """The log ends there: no epoch begins there or later."""
        while self.entries and self.entries[-1][1] >= end_offset:
            self.entries.pop()
        self.latest = self.entries[-1][0] if self.entries else NO_EPOCH

    def cut_start(self, start_offset: int) -> None:
        """The log starts there: forget the epochs that ended before."""
        number = self._number_at(start_offset)
        if number > 0 or (number == 0 and self.entries[0][1] < start_offset):
            self.entries[: number + 1] = [(self.entries[number][0], start_offset)]

    def _number_at(self, offset: int) -> int:
        return bisect_right(self.entries, offset, key=lambda entry: entry[1]) - 1

    def at(self, offset: int) -> int:
        """The epoch in which the record at an offset was appended; -1 when that is not known."""
        number = self._number_at(offset)
        return self.entries[number][0] if number >= 0 else NO_EPOCH

    def end_of(self, epoch: int, *, current_epoch: int, end_offset: int) -> Entry | None:
        """The largest epoch up to this one, and where it ends; None for what was never an epoch."""
        if epoch == NO_EPOCH or epoch > current_epoch:
            return None
        if epoch == current_epoch:
            return epoch, end_offset
        number = bisect_right(self.entries, epoch, key=lambda entry: entry[0])
        following = self.entries[number][1] if number < len(self.entries) else end_offset
        return (self.entries[number - 1][0] if number else epoch), following


def read_epoch(files: FileSystem, folder: str) -> int:
    """The epoch of the last run; 0 for a directory of an older release."""
    data = files.read_file(os.path.join(folder, FILE_NAME))
    try:
        return max(int(data), 0) if data else 0
    except ValueError:  # damaged: the logs tell how far it got
        return 0


def write_epoch(files: FileSystem, folder: str, epoch: int) -> None:
    """Have the epoch of this run on the disk."""
    files.write_file(os.path.join(folder, FILE_NAME), f"{epoch}\n".encode())


def read_log_epochs(files: FileSystem, folder: str) -> LeaderEpochs:
    """The epochs of a log as stored in its directory."""
    epochs = LeaderEpochs()
    epochs.load(checkpoints.read_leader_epochs(files, folder))
    return epochs
