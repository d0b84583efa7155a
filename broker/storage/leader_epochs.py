"""LeaderEpochs: the start offset of each leader epoch, so that readers detect a lost tail.

The epoch is incremented whenever the broker starts after a crash, because the crash may have lost
the end of a log, and other records may get the offsets that a reader has seen. Each batch contains
the epoch in which it was appended. A reader that has read records of epoch 3 requests the end
offset of epoch 3: if it is before the reader's offset, the records that it has read are lost.

    leader-epoch              the epoch of this broker process, in the data directory. Not in Kafka
    leader-epoch-checkpoint   the epochs of a log, in its folder; see checkpoints.py

An epoch without appended records has no entry: it begins and ends at the log's end.
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
        """Load the entries of a file; entries out of order are skipped."""
        for epoch, offset in entries:
            if not self.entries or (epoch > self.latest and offset >= self.entries[-1][1]):
                self.assign(epoch, offset)

    def assign(self, epoch: int, offset: int) -> None:
        """Start an epoch at an offset; entries that contradict it are removed."""
        while self.entries and (self.entries[-1][0] >= epoch or self.entries[-1][1] >= offset):
            self.entries.pop()
        self.entries.append((epoch, offset))
        self.latest = epoch

    def cut_end(self, end_offset: int) -> None:
        """Remove epochs that begin at the new end of the log or later."""
        while self.entries and self.entries[-1][1] >= end_offset:
            self.entries.pop()
        self.latest = self.entries[-1][0] if self.entries else NO_EPOCH

    def cut_start(self, start_offset: int) -> None:
        """Remove epochs that end before the new start of the log."""
        number = self._number_at(start_offset)
        if number > 0 or (number == 0 and self.entries[0][1] < start_offset):
            self.entries[: number + 1] = [(self.entries[number][0], start_offset)]

    def _number_at(self, offset: int) -> int:
        return bisect_right(self.entries, offset, key=lambda entry: entry[1]) - 1

    def at(self, offset: int) -> int:
        """The epoch in which the record at an offset was appended; -1 if unknown."""
        number = self._number_at(offset)
        return self.entries[number][0] if number >= 0 else NO_EPOCH

    def end_of(self, epoch: int, *, current_epoch: int, end_offset: int) -> Entry | None:
        """The largest epoch up to this one, and its end; None for an unknown epoch."""
        if epoch == NO_EPOCH or epoch > current_epoch:
            return None
        if epoch == current_epoch:
            return epoch, end_offset
        number = bisect_right(self.entries, epoch, key=lambda entry: entry[0])
        following = self.entries[number][1] if number < len(self.entries) else end_offset
        return (self.entries[number - 1][0] if number else epoch), following


def read_epoch(files: FileSystem, folder: str) -> int:
    """The epoch of the last process; 0 for a directory of an older release."""
    data = files.read_file(os.path.join(folder, FILE_NAME))
    try:
        return max(int(data), 0) if data else 0
    except ValueError:  # damaged: the logs contain the latest epoch
        return 0


def write_epoch(files: FileSystem, folder: str, epoch: int) -> None:
    """Write the epoch of this process to disk."""
    files.write_file(os.path.join(folder, FILE_NAME), f"{epoch}\n".encode())


def read_log_epochs(files: FileSystem, folder: str) -> LeaderEpochs:
    """The epochs of a log, as stored in its directory."""
    epochs = LeaderEpochs()
    epochs.load(checkpoints.read_leader_epochs(files, folder))
    return epochs
