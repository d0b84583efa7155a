"""The kinds of faults of tests; the seed chooses times and records.

    crash()                            the application or the broker ends and is restarted
    network()                          connections break or become slow
    reorder(within=timedelta(...))     records that are close in time are reordered
    duplicate(within=timedelta(...))   a record is sent twice
    late(by=timedelta(...))            a record arrives when others are newer by up to this time

Crashes and network faults must never change the result of an exactly-once pipeline. The others
change the input: only a pipeline that handles them has the same result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Protocol

from millstream.simulation.scenario import Fault
from millstream.testing.records import EncodedRecord

APPLICATION, BROKER = "application", "broker"
CRASHES = ("kill", "kill", "end in a write", "power loss", "stop")
NETWORK_FAULTS = ("disconnect", "partition", "slow network")
CHUNKS = 20  # the number of parts in which the input is sent
BUSY_MS = 300
DOWN_MS = (50, 1_000, 4_000)
SHARE = 0.3  # of the records of a topic, at most, are moved or duplicated

Topics = Mapping[str, Sequence[EncodedRecord]]


@dataclass(frozen=True, slots=True)
class FaultScope:
    """The possible targets of faults: processes, times and input records."""

    applications: Sequence[str]
    work_ms: int
    topics: Topics


class FaultKind(Protocol):
    """A kind of fault: `crash`, `network`, `reorder`, `duplicate` or `late`."""

    def choose(self, random: Random, scope: FaultScope) -> list[Fault]:
        """Choose the faults of this kind for one run."""
        ...


@dataclass(frozen=True, slots=True)
class InputFault(Fault):
    """A change of the input: a record is sent again, or later, after another one."""

    record: str = ""
    number: int = 0
    behind: int = 0  # the number of the record after which it is sent

    def __str__(self) -> str:
        how = "is sent again" if self.kind == "duplicate" else "arrives late"
        where = "" if self.behind == self.number else f" after {self.target}[{self.behind}]"
        return f"{self.kind}: {self.record} {how}{where}"


@dataclass(frozen=True, slots=True)
class Crash:
    """See `crash`."""

    times_max: int
    of: tuple[str, ...]

    def choose(self, random: Random, scope: FaultScope) -> list[Fault]:
        """Choose crashes of processes."""
        targets = [
            *(name for name in scope.applications if APPLICATION in self.of for _ in range(3)),
            *([BROKER] if BROKER in self.of else []),
        ]
        return [
            Fault(
                _random_time_ms(random, scope.work_ms),
                random.choice(CRASHES),
                random.choice(targets),
                random.choice(DOWN_MS),
            )
            for _ in range(random.randint(1, self.times_max))
        ]


def _random_time_ms(random: Random, work_ms: int) -> int:
    """A random time, possibly shortly after records were sent."""
    if random.random() < 0.5:
        return random.randrange(work_ms)
    return random.randrange(CHUNKS) * work_ms // CHUNKS + random.randrange(BUSY_MS)


def crash(*, times: int = 3, of: Sequence[str] = (APPLICATION, BROKER)) -> FaultKind:
    """The application or the broker is killed, loses power or is stopped, and is restarted.

    This happens at least once and at most `times` times in a run.
    """
    unknown = [name for name in of if name not in (APPLICATION, BROKER)]
    if unknown or not of:
        raise ValueError(f'crash(of={of!r}): pass "{APPLICATION}", "{BROKER}" or both')
    return Crash(times, tuple(of))


@dataclass(frozen=True, slots=True)
class Network:
    """See `network`."""

    times_max: int

    def choose(self, random: Random, scope: FaultScope) -> list[Fault]:
        """Choose network faults."""
        return [
            Fault(
                random.randrange(scope.work_ms),
                random.choice(NETWORK_FAULTS),
                random.choice([*scope.applications, BROKER]),
                random.choice((500, 2_000, 5_000)),
            )
            for _ in range(random.randint(1, self.times_max))
        ]


def network(*, times: int = 2) -> FaultKind:
    """Connections break, or nothing arrives for some seconds, or messages become slow."""
    return Network(times)


@dataclass(frozen=True, slots=True)
class MovedRecords:
    """See `reorder`, `duplicate` and `late`."""

    kind: str
    by_ms: int
    share_min: float  # of `by_ms`

    def choose(self, random: Random, scope: FaultScope) -> list[Fault]:
        """Choose records of each topic, and later positions for them."""
        faults: list[Fault] = []
        for topic, records in scope.topics.items():
            count = random.randint(1, max(1, int(len(records) * SHARE))) if records else 0
            for number in sorted(random.sample(range(len(records)), count)):
                by_ms = int(self.by_ms * random.uniform(self.share_min, 1))
                behind = last_within(records, number, by_ms)
                if behind > number or self.kind == "duplicate":
                    shown = str(records[number])
                    faults.append(InputFault(0, self.kind, topic, 0, shown, number, behind))
        return faults


def last_within(records: Sequence[EncodedRecord], number: int, by_ms: int) -> int:
    """The last record before the first one that is newer by more than `by_ms`."""
    limit_ms = records[number].timestamp_ms + by_ms
    behind = number
    while behind + 1 < len(records) and records[behind + 1].timestamp_ms <= limit_ms:
        behind += 1
    return behind


def reorder(*, within: timedelta) -> FaultKind:
    """Records are reordered with others of their topic that are newer by up to this time."""
    return MovedRecords("reorder", _milliseconds(within, "within"), 0.0)


def duplicate(*, within: timedelta = timedelta(minutes=1)) -> FaultKind:
    """A producer sends a record again, immediately or after records newer by up to this time."""
    return MovedRecords("duplicate", _milliseconds(within, "within"), 0.0)


def late(*, by: timedelta) -> FaultKind:
    """A record arrives late, after records newer by between half of this time and all of it.

    Use the grace period of the pipeline: then no window is closed when its record arrives.
    """
    return MovedRecords("late", _milliseconds(by, "by"), 0.5)


def _milliseconds(time: timedelta, name: str) -> int:
    if time < timedelta(0):
        raise ValueError(f"{name} is {time}: it must not be negative")
    return time // timedelta(milliseconds=1)


def ordered_records(topics: Topics, faults: Sequence[Fault]) -> list[EncodedRecord]:
    """The records of all topics, in the order in which they are sent.

    Topics are merged by the largest timestamp so far of each topic.
    """
    merged: list[tuple[int, int, int, EncodedRecord]] = []
    for position, (topic, records) in enumerate(topics.items()):
        moved = [each for each in faults if isinstance(each, InputFault) and each.target == topic]
        newest_ms = 0
        for order, record in enumerate(_with_moved(records, moved)):
            newest_ms = max(newest_ms, record.timestamp_ms)
            merged.append((newest_ms, position, order, record))
    return [record for *_, record in sorted(merged, key=lambda each: each[:3])]


def _with_moved(
    records: Sequence[EncodedRecord], moved: Sequence[InputFault]
) -> list[EncodedRecord]:
    places = {number: (number, 0, number) for number in range(len(records))}
    again = []
    for fault in moved:
        place = (fault.behind, 1, fault.number)
        if fault.kind == "duplicate":
            again.append((place, records[fault.number]))
        else:
            places[fault.number] = max(places[fault.number], place)
    own = [(places[number], record) for number, record in enumerate(records)]
    return [record for _, record in sorted([*own, *again], key=lambda each: each[0])]
