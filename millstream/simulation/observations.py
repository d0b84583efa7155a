"""Observations: everything that the platform has acknowledged to its users.

Actors add acknowledged records, ended transactions and committed offsets. The checker reads all
topics and compares.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from broker.model import TopicPartition

Offset = int


class Violation(AssertionError):
    """An invariant does not hold."""

    def __init__(self, invariant: str, details: str) -> None:
        super().__init__(f"{invariant}: {details}")
        self.invariant = invariant
        self.details = details


@dataclass(slots=True)
class Transaction:
    """The records and the outcome of a transaction."""

    values: list[tuple[TopicPartition, bytes]] = field(default_factory=list)
    outcome: str = "unknown"  # or committed, aborted


@dataclass(frozen=True, slots=True)
class TaskCommit:
    """An instance of an application has committed a task."""

    instance: str
    generation: int  # of the group
    since_us: int
    until_us: int


@dataclass(slots=True)
class Observations:
    """Everything that was acknowledged."""

    acknowledged: dict[TopicPartition, dict[Offset, bytes]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    transactions: dict[str, Transaction] = field(default_factory=dict)
    delivered: dict[str, dict[TopicPartition, set[Offset]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    committed: dict[tuple[str, TopicPartition], Offset] = field(default_factory=dict)
    # Records that were read with read_committed, while transactions were open.
    visible: dict[TopicPartition, dict[Offset, bytes]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    # The last owner of a partition of a group, and its generation or member epoch.
    owners: dict[tuple[str, TopicPartition], tuple[str, int]] = field(default_factory=dict)
    task_commits: dict[str, list[TaskCommit]] = field(default_factory=lambda: defaultdict(list))

    def acknowledge(self, tp: TopicPartition, offset: Offset, value: bytes) -> None:
        """Add an acknowledged record."""
        before = self.acknowledged[tp].setdefault(offset, value)
        if before != value:
            raise Violation(
                "one offset, one record",
                f"{tp} offset {offset} was acknowledged for {before!r} and for {value!r}",
            )

    def commit_task(self, task: str, commit: TaskCommit) -> None:
        """Add a committed transaction of a task.

        After a later generation of the group has committed, a commit that an earlier generation
        starts must be refused.
        """
        commits = self.task_commits[task]
        for other in commits:
            if other.generation > commit.generation and other.until_us < commit.since_us:
                raise Violation(
                    "one owner of a task at a time",
                    f"task {task}: {commit.instance} commits in generation {commit.generation}, "
                    f"after {other.instance} has in generation {other.generation}",
                )
        commits.append(commit)


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record, for checks."""

    offset: int
    value: bytes
    key: bytes = b""
    timestamp_ms: int = 0


Stored = dict[TopicPartition, Sequence[StoredRecord]]


def check_acknowledged(observations: Observations, stored: Stored) -> None:
    """Check that acknowledged records exist and are unchanged."""
    for tp, acknowledged in observations.acknowledged.items():
        values = {each.offset: each.value for each in stored.get(tp, ())}
        lost = [offset for offset, value in acknowledged.items() if values.get(offset) != value]
        if lost:
            first = min(lost)
            raise Violation(
                "no acknowledged record is lost",
                f"{tp}: {len(lost)} of {len(acknowledged)} records, the first at {first}: "
                f"{acknowledged[first]!r}, now {values.get(first)!r}",
            )


def check_order(stored: Stored) -> None:
    """Check that the records of each producer are in order, without duplicates."""
    for tp, records in stored.items():
        numbers: dict[bytes, list[int]] = defaultdict(list)
        for each in records:
            who, _, number = each.value.rpartition(b" ")
            numbers[who].append(int(number))
        for who, sent in numbers.items():
            for before, after in pairwise(sent):
                if after <= before:
                    problem = "is duplicated" if after == before else f"comes after {before}"
                    raise Violation(
                        "records are in order, without duplicates",
                        f"{tp}: number {after} of {who.decode()} {problem}",
                    )


def check_offsets(stored: Stored) -> None:
    """Check that each offset has a record, for topics without compaction or transactions.

    Otherwise, later records have survived earlier ones, which their producer may send again.
    """
    for tp, records in stored.items():
        for before, after in pairwise(each.offset for each in records):
            if after != before + 1:
                raise Violation("a log has no gaps", f"{tp}: {after} comes after {before}")


def check_transactions(observations: Observations, visible: Stored) -> None:
    """Check that transactions are visible completely or not at all, by their outcomes."""
    values: dict[TopicPartition, set[bytes]] = {
        tp: {each.value for each in records} for tp, records in visible.items()
    }
    for name, each in observations.transactions.items():
        visible_now = sum(value in values.get(tp, ()) for tp, value in each.values)
        expected = {"committed": {len(each.values)}, "aborted": {0}}.get(
            each.outcome, {0, len(each.values)}
        )
        if visible_now not in expected:
            raise Violation(
                "transactions are atomic",
                f"{name}, {each.outcome}: {visible_now} of {len(each.values)} records are visible",
            )


def check_visible(observations: Observations, stored: Stored) -> None:
    """Check that records that were read as committed are committed."""
    for tp, visible in observations.visible.items():
        values = {each.offset: each.value for each in stored.get(tp, ())}
        for offset, value in visible.items():
            if values.get(offset) != value:
                raise Violation(
                    "only committed records are read",
                    f"{tp} offset {offset} was read as {value!r}, now {values.get(offset)!r}",
                )


def check_delivered(observations: Observations, stored: Stored) -> None:
    """Check that each group has read all records of its topics."""
    for group, partitions in observations.delivered.items():
        for tp, records in stored.items():
            missing = [each.offset for each in records if each.offset not in partitions[tp]]
            if missing:
                raise Violation(
                    "groups read all records",
                    f"group {group} has not read {len(missing)} of {len(records)} records of {tp}, "
                    f"the first at {missing[0]}",
                )
