"""Offsets of topics: as Spark stores them in a checkpoint, and the arithmetic of micro-batches.

    {"orders": {"0": 120, "1": 87},     the next offset to read of each partition
     "?packing": {"least": 0, "most": 2}}    how the micro-batch that ends here is packed into tasks

The packing is part of the checkpoint, so that a repeated micro-batch has the same tasks, whatever
the options are then: the sink stores what each task has written. Topic names cannot contain
question marks. Checkpoints of earlier versions have no packing.

This module uses neither Spark nor a cluster.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from broker.errors import ConfigError
from broker.model import TopicPartition

Offsets = Mapping[TopicPartition, int]
OFFSET_MAX = (1 << 63) - 1
PARTITION_MAX = (1 << 31) - 1
PACKING = "?packing"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Offsets of one partition that a task reads: from `start` to `end` (exclusive)."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Packing:
    """The minimum and maximum number of tasks that read a micro-batch; 0: one per partition."""

    least: int = 0
    most: int = 0

    def to_tree(self) -> dict[str, int]:
        """The format of checkpoints."""
        return {"least": self.least, "most": self.most}


def packing_of(tree: Mapping[str, object]) -> Packing | None:
    """The packing in a checkpoint; None if an earlier version wrote it."""
    found = tree.get(PACKING)
    if found is None:
        return None
    numbers = found if isinstance(found, Mapping) else {}
    if set(numbers) != {"least", "most"} or {type(each) for each in numbers.values()} != {int}:
        raise ConfigError(
            f"cannot read the task packing of the checkpoint: {found!r}",
            hint="a newer version may have written it: use that version",
        )
    return Packing(numbers["least"], numbers["most"])


def to_tree(offsets: Offsets) -> dict[str, dict[str, int]]:
    """The format of checkpoints, in a stable order."""
    tree: dict[str, dict[str, int]] = {}
    for tp in sorted(offsets):
        tree.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return tree


def of_tree(tree: object, what: str, *, least: int = 0) -> dict[TopicPartition, int]:
    """Offsets from `to_tree` or from a user; `what` is their name in errors."""
    hint = 'use the form {"topic": {"partition": offset}}, as in {"orders": {"0": 12, "1": 0}}'
    if not isinstance(tree, Mapping):
        raise ConfigError(f'"{what}" has no offsets: {tree!r}', hint=hint)
    result: dict[TopicPartition, int] = {}
    for topic, partitions in tree.items():
        if topic == PACKING:
            continue
        if not isinstance(topic, str) or not isinstance(partitions, Mapping):
            raise ConfigError(f'"{what}" has no partitions for topic {topic!r}', hint=hint)
        for number, offset in partitions.items():
            if not str(number).isdecimal() or int(number) > PARTITION_MAX:
                raise ConfigError(f'"{what}" has partition {number!r} of "{topic}"', hint=hint)
            if type(offset) is not int or not least <= offset <= OFFSET_MAX:
                raise ConfigError(f'"{what}" has offset {offset!r} for {topic}-{number}', hint=hint)
            result[TopicPartition(topic, int(number))] = offset
    return result


def of_text(text: str, what: str, *, least: int = 0) -> dict[TopicPartition, int]:
    """Offsets from JSON text."""
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise ConfigError(
            f'"{what}" is {text!r}', hint='use earliest, latest or {"topic": {"0": 12}}'
        ) from error
    return of_tree(tree, what, least=least)


def share(start: Offsets, end: Offsets, limit: int) -> dict[TopicPartition, int]:
    """The end of a batch of at most `limit` offsets, divided among partitions by their lag.

    The remainder of the division goes first to partitions that would get nothing, so that none
    waits forever behind a large one. Partitions of `start` that are not in `end` are omitted.
    """
    held = {tp: max(0, end[tp] - start.get(tp, 0)) for tp in end}
    total = sum(held.values())
    if total <= limit:
        return dict(end)
    parts = {tp: limit * size // total for tp, size in held.items()}
    left = limit - sum(parts.values())
    waiting = sorted(
        (tp for tp in held if held[tp] > parts[tp]),
        key=lambda tp: (parts[tp] > 0, -(limit * held[tp] % total), tp),
    )
    for tp in waiting[:left]:
        parts[tp] += 1
    # A log that became shorter ends at its end; this was reported before.
    return {tp: min(end[tp], start.get(tp, 0) + part) for tp, part in parts.items()}


def spans(start: Offsets, end: Offsets) -> list[Span]:
    """The spans between two sets of offsets, without empty ones."""
    return [
        Span(tp.topic, tp.partition, start[tp], end[tp])
        for tp in sorted(end)
        if tp in start and start[tp] < end[tp]
    ]


def pack(found: Iterable[Span], *, least: int = 0, most: int = 0) -> list[list[Span]]:
    """Divide spans among tasks, between a minimum (if there are enough records) and a maximum.

    The same spans are always packed in the same way: a repeated batch has the same tasks.
    """
    pieces = _split(sorted(found), least)
    count = min(most or len(pieces), len(pieces))
    tasks: list[list[Span]] = [[] for _ in range(count)]
    loads = [0] * count
    for piece in sorted(pieces, key=lambda span: (-span.size, span)):
        lightest = loads.index(min(loads))
        tasks[lightest].append(piece)
        loads[lightest] += piece.size
    return sorted(sorted(task) for task in tasks)


def _split(whole: list[Span], least: int) -> list[Span]:
    """Split the largest spans until there are `least`."""
    total = sum(span.size for span in whole)
    if len(whole) >= least or not total:
        return whole
    pieces = []
    for span in whole:
        count = max(1, min(span.size, -(-least * span.size // total)))
        edges = [span.start + span.size * i // count for i in range(count + 1)]
        pieces += [replace(span, start=first, end=last) for first, last in pairwise(edges)]
    return pieces
