"""Kinds of faults that a test asks for; the seed chooses when they happen and to which records.

    crash()                            the application or the broker ends and is restarted
    network()                          connections break or become slow
    reorder(within=timedelta(...))     records that are close in time change places
    duplicate(within=timedelta(...))   a record is sent twice
    late(by=timedelta(...))            a record arrives when others are newer by up to this time

Crashes and networks must never change the result of an exactly-once pipeline. The others change the
input: only a pipeline that is meant to cope with them has the same result.
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
CHUNKS = 20  # in how many parts the input is sent
BUSY_MS = 300
DOWN_MS = (50, 1_000, 4_000)
SHARE = 0.3  # of the records of a topic that are moved or doubled, at most

Topics = Mapping[str, Sequence[EncodedRecord]]


@dataclass(frozen=True, slots=True)
class Field:
    """Where faults can happen: processes, a time, and input records."""

    applications: Sequence[str]
    work_ms: int
    topics: Topics


class FaultKind(Protocol):
    """What `crash`, `network`, `reorder`, `duplicate` and `late` return."""

    def choose(self, random: Random, field: Field) -> list[Fault]:
        """The faults of this kind in one run."""
        ...


@dataclass(frozen=True, slots=True)
class InputFault(Fault):
    """A change of the input: one record is sent again, or later, behind another one."""

    record: str = ""
    number: int = 0
    behind: int = 0  # the number of the record that it comes after

    def __str__(self) -> str:
        """As reports name it."""
        how = "is sent again" if self.kind == "duplicate" else "arrives late"
        where = "" if self.behind == self.number else f" after {self.target}[{self.behind}]"
        return f"{self.kind}: {self.record} {how}{where}"


@dataclass(frozen=True, slots=True)
class Crash:
    """See `crash`."""

    times_max: int
    of: tuple[str, ...]

    def choose(self, random: Random, field: Field) -> list[Fault]:
        """Some ends of processes."""
        targets = [
            *(name for name in field.applications if APPLICATION in self.of for _ in range(3)),
            *([BROKER] if BROKER in self.of else []),
        ]
        return [
            Fault(
                _moment(random, field.work_ms),
                random.choice(CRASHES),
                random.choice(targets),
                random.choice(DOWN_MS),
            )
            for _ in range(random.randint(1, self.times_max))
        ]


def _moment(random: Random, work_ms: int) -> int:
    """Any time, or soon after records were sent, when the application is at work."""
    if random.random() < 0.5:
        return random.randrange(work_ms)
    return random.randrange(CHUNKS) * work_ms // CHUNKS + random.randrange(BUSY_MS)


def crash(*, times: int = 3, of: Sequence[str] = (APPLICATION, BROKER)) -> FaultKind:
    """The application or the broker is killed, loses its power or is stopped, and is restarted.

    This happens at least once and at most so many `times` in a run.
    """
    unknown = [name for name in of if name not in (APPLICATION, BROKER)]
    if unknown or not of:
        raise ValueError(f'crash(of={of!r}): give "{APPLICATION}", "{BROKER}" or both')
    return Crash(times, tuple(of))


@dataclass(frozen=True, slots=True)
class Network:
    """See `network`."""

    times_max: int

    def choose(self, random: Random, field: Field) -> list[Fault]:
        """Some disturbances of connections."""
        return [
            Fault(
                random.randrange(field.work_ms),
                random.choice(NETWORK_FAULTS),
                random.choice([*field.applications, BROKER]),
                random.choice((500, 2_000, 5_000)),
            )
            for _ in range(random.randint(1, self.times_max))
        ]


def network(*, times: int = 2) -> FaultKind:
    """Connections break, or nothing arrives for some seconds, or messages become slow."""
    return Network(times)


@dataclass(frozen=True, slots=True)
class Moved:
    """See `reorder`, `duplicate` and `late`."""

    kind: str
    by_ms: int
    least: float  # of `by_ms`

    def choose(self, random: Random, field: Field) -> list[Fault]:
        """Some records of each topic, each with a place further back."""
        found: list[Fault] = []
        for topic, records in field.topics.items():
            count = random.randint(1, max(1, int(len(records) * SHARE))) if records else 0
            for number in sorted(random.sample(range(len(records)), count)):
                by_ms = int(self.by_ms * random.uniform(self.least, 1))
                behind = last_within(records, number, by_ms)
                if behind > number or self.kind == "duplicate":
                    shown = str(records[number])
                    found.append(InputFault(0, self.kind, topic, 0, shown, number, behind))
        return found


def last_within(records: Sequence[EncodedRecord], number: int, by_ms: int) -> int:
    """The last record up to which none is newer than the given one by more than a time."""
    limit_ms = records[number].timestamp_ms + by_ms
    behind = number
    while behind + 1 < len(records) and records[behind + 1].timestamp_ms <= limit_ms:
        behind += 1
    return behind


def reorder(*, within: timedelta) -> FaultKind:
    """Records change places with others of their topic that are newer by up to this time."""
    return Moved("reorder", _milliseconds(within, "within"), 0.0)


def duplicate(*, within: timedelta = timedelta(minutes=1)) -> FaultKind:
    """A producer sends a record again, at once or behind records newer by up to this time."""
    return Moved("duplicate", _milliseconds(within, "within"), 0.0)


def late(*, by: timedelta) -> FaultKind:
    """A record arrives late: records newer by up to this time, and at least half of it, come first.

    Give the grace period of the pipeline: then no window is closed when its record arrives.
    """
    return Moved("late", _milliseconds(by, "by"), 0.5)


def _milliseconds(time: timedelta, name: str) -> int:
    if time < timedelta(0):
        raise ValueError(f"{name} is {time}: it must not be negative")
    return time // timedelta(milliseconds=1)


def arranged(topics: Topics, faults: Sequence[Fault]) -> list[EncodedRecord]:
    """The records of all topics in the order in which they are sent.

    Topics are merged by time: a record is sent when the newest of its topic before it was.
    """
    merged: list[tuple[int, int, int, EncodedRecord]] = []
    for place, (topic, records) in enumerate(topics.items()):
        moved = [each for each in faults if isinstance(each, InputFault) and each.target == topic]
        newest_ms = 0
        for order, record in enumerate(_with_moved(records, moved)):
            newest_ms = max(newest_ms, record.timestamp_ms)
            merged.append((newest_ms, place, order, record))
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
