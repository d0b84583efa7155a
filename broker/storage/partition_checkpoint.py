"""partition-checkpoint: flushed, start and compacted offsets of partitions, by topic id.

    partition-checkpoint   0 \\n count \\n (row \\n)*
    row                    topic partition topic-id recovery-point start-offset cleaned-offset

Kafka's three checkpoint files contain the same by name only. A topic that is deleted and created
again has the same name, so entries of the old one would be applied to the new one. They are written
for Kafka's tools, and read only if this file is missing, as in older releases: an entry counts only
if it was written after the partition's folder was created.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from broker.files import FileSystem
from broker.model import TopicPartition
from broker.storage import checkpoints

FILE_NAME = "partition-checkpoint"
NOT_CLEANED = -1


class PartitionCheckpoint(NamedTuple):
    """The checkpoint of a partition; `has_id` is False if only its name identifies it."""

    topic_id: bytes = b""
    recovery_point: int = 0
    start_offset: int = 0
    cleaned_offset: int = NOT_CLEANED
    has_id: bool = True
    starts_inside_segment: bool = False


Checkpoints = Mapping[TopicPartition, PartitionCheckpoint]


def read_checkpoints(
    files: FileSystem, folder: str, topic_ids: Mapping[TopicPartition, bytes]
) -> dict[TopicPartition, PartitionCheckpoint]:
    """The checkpoints of these topics, not of earlier ones with the same names.

    A partition without an entry in Millstream's file had no records when it was written.
    """
    found = _read(files, folder)
    if found is None:
        unknown = {tp: PartitionCheckpoint(has_id=False) for tp in topic_ids}
        return unknown | _read_by_name(files, folder, topic_ids)
    nothing = PartitionCheckpoint()
    return {
        tp: item if (item := found.get(tp, nothing)).topic_id == topic_id else nothing
        for tp, topic_id in topic_ids.items()
    }


class CheckpointWriter:
    """Writes the checkpoint, and Kafka's files; files without changes are not written."""

    def __init__(self, files: FileSystem, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._written: dict[str, list[str]] = {}

    def write(self, found: Checkpoints) -> None:
        """Write all partitions; each file atomically, Millstream's first. Raises OSError."""
        tables = {
            FILE_NAME: [
                f"{tp.topic} {tp.partition} {checkpoints.id_to_text(item.topic_id)}"
                f" {item.recovery_point} {item.start_offset} {item.cleaned_offset}"
                for tp, item in found.items()
            ],
            checkpoints.RECOVERY_POINTS: [
                f"{tp.topic} {tp.partition} {item.recovery_point}" for tp, item in found.items()
            ],
            checkpoints.START_OFFSETS: [
                f"{tp.topic} {tp.partition} {item.start_offset}"
                for tp, item in found.items()
                if item.starts_inside_segment
            ],
            checkpoints.CLEANED_OFFSETS: [
                f"{tp.topic} {tp.partition} {item.cleaned_offset}"
                for tp, item in found.items()
                if item.cleaned_offset != NOT_CLEANED
            ],
        }
        for name, rows in tables.items():
            if self._written.get(name) != rows:
                checkpoints.write_table(self._files, os.path.join(self._folder, name), rows)
                self._written[name] = rows


def _read(files: FileSystem, folder: str) -> dict[TopicPartition, PartitionCheckpoint] | None:
    """The content of the file; None if it is missing or damaged."""
    path = os.path.join(folder, FILE_NAME)
    found = {}
    try:
        if files.modified_ns(path) is None:
            return None
        for topic, partition, text, recovery_point, start, cleaned in checkpoints.read_table(
            files, path
        ):
            topic_id = checkpoints.id_from_text(text) or b""
            offsets = (int(recovery_point), int(start), int(cleaned))
            found[TopicPartition(topic, int(partition))] = PartitionCheckpoint(topic_id, *offsets)
    except ValueError:
        return None
    return found


def _read_by_name(
    files: FileSystem, folder: str, topic_ids: Mapping[TopicPartition, bytes]
) -> dict[TopicPartition, PartitionCheckpoint]:
    recovery_points = _read_newer(files, folder, checkpoints.RECOVERY_POINTS)
    start_offsets = _read_newer(files, folder, checkpoints.START_OFFSETS)
    cleaned_offsets = _read_newer(files, folder, checkpoints.CLEANED_OFFSETS)
    return {
        tp: PartitionCheckpoint(
            topic_ids[tp],
            recovery_points.get(tp, 0),
            start_offsets.get(tp, 0),
            cleaned_offsets.get(tp, NOT_CLEANED),
            has_id=False,
        )
        for tp in {**recovery_points, **start_offsets, **cleaned_offsets}
        if tp in topic_ids
    }


def _read_newer(files: FileSystem, folder: str, name: str) -> dict[TopicPartition, int]:
    """One of Kafka's checkpoints, without partitions whose folders are newer than it."""
    written_ns = files.modified_ns(os.path.join(folder, name)) or 0

    def is_older(tp: TopicPartition) -> bool:
        metadata = os.path.join(folder, str(tp), checkpoints.PARTITION_METADATA)
        made_ns = files.modified_ns(metadata)
        return made_ns is None or made_ns < written_ns

    offsets = checkpoints.read_offsets(files, folder, name)
    return {tp: offset for tp, offset in offsets.items() if is_older(tp)}
