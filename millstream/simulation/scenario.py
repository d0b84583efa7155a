"""Scenario: one simulation as data: actors, settings and faults.

A scenario is derived from its seed. Because it is data, a failing one can be reduced: without one
of its faults or actors it is still a scenario.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from random import Random
from typing import Any

MINUTE_MS = 60_000
CALM_BEFORE_MS = 3_000  # topics are created without faults
FAILING_PARTITION = "failing partition"  # one of those with transactions
OVERDUE = "overdue transaction"
NO_RESTART = "no descriptors for a restart"
FAILING_FSYNCS = ("failing fsync", FAILING_PARTITION)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, or an action of an operator, at a time and for a duration."""

    at_ms: int
    kind: str
    target: str = "broker"
    for_ms: int = 0

    @property
    def end_ms(self) -> int:
        """When it ends; after a failed fsync the process is also stopped for the same time."""
        return self.at_ms + self.for_ms * (2 if self.kind in FAILING_FSYNCS else 1)

    def __str__(self) -> str:
        lasting = f" for {self.for_ms} ms" if self.for_ms else ""
        return f"{self.at_ms / 1000:.3f} s: {self.kind} {self.target}{lasting}"


@dataclass(frozen=True, slots=True)
class Scenario:
    """The data of a simulation."""

    seed: int
    work_ms: int  # time with faults; then come recovery and checks
    settings: Mapping[str, str] = field(default_factory=dict)  # of the broker
    actors: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    application: Mapping[str, str] = field(default_factory=dict)  # its settings, if there is one

    @property
    def is_durable(self) -> bool:
        """Whether acknowledged records survive a loss of power."""
        return self.settings.get("durability") == "fsync"

    @property
    def pace(self) -> int:
        """The factor by which actors pause longer in a long scenario."""
        return pace_of(self.work_ms)

    @property
    def faults_end_ms(self) -> int:
        """When the last fault ends."""
        return max((each.end_ms for each in self.faults), default=0)

    def without_fault(self, number: int) -> "Scenario":
        """The same scenario without one fault."""
        return replace(self, faults=self.faults[:number] + self.faults[number + 1 :])

    def without_actor(self, name: str) -> "Scenario":
        """The same scenario without one actor."""
        faults = tuple(each for each in self.faults if each.target != name)
        actors = tuple(each for each in self.actors if each != name)
        return replace(self, actors=actors, faults=faults)

    def to_json(self) -> str:
        """Encode the scenario as a case, see tests/cases/simulation."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Scenario":
        """Decode the scenario of a case."""
        given = json.loads(text)
        faults = tuple(Fault(**each) for each in given.pop("faults"))
        return cls(**{**given, "actors": tuple(given["actors"]), "faults": faults})


# Kinds of faults, with how often they are chosen; some require a durable disk.
KILLS = ("kill", "stop", "end in a write")
DISK_FAULTS = ("full disk", "slow disk", "no descriptors")
NETWORK_FAULTS = ("disconnect", "partition", "slow network")
CLOCK_FAULTS = ("clock back", "clock forward")
RARE_FAULTS = ("scarce descriptors", "bad record", "clock back", "long absence", "power loss")
BURSTS = "bursts"
BALANCES, BALANCES_SHARE = "balances", 0.1  # of the seeds
RARE_ACTORS = ("retention by time", "retention by size", "unknown topics", "audit")
APPLICATION_FAULTS = (
    *(*KILLS, *KILLS, "power loss", "power loss", "failing fsync"),
    *(*DISK_FAULTS, "disconnect", "partition", *CLOCK_FAULTS),
)
FREEZE = "freeze"
# Longer than a session, so that other members get the partitions.
FREEZE_MS = {"classic": 15_000, "consumer": 60_000}
APPLICATION, APPLICATION_SHARE = "application", 0.2  # of the seeds
LATE_STANDBY_SHARE = 0.2  # of the seeds with two instances
LATE_MS = 4_000  # shorter than a session
SHARED_RUNTIME = "__shared_runtime"  # a setting: whether runners share threads
# Servers on the broker, and the share of seeds that have them.
SERVERS = {"sql": 0.1, "registry": 0.1, "connect": 0.1}
# Second servers of the same service or group, and their share of the server's seeds.
RIVAL, RIVAL_SHARE = "rival worker", 0.3
SECOND_SQL, SECOND_SQL_SHARE = "second sql", 0.25
SECOND_SQL_FAULTS = ("kill", "stop", "power loss", "partition", FREEZE)
AFTER_AN_ANSWER = "end after an answer"
AFTER_A_COMMIT, AFTER_A_COMMIT_SHARE = "end after a commit", 0.3  # of a server's scenarios
IN_A_SWAP = "end in a swap"  # of segments, at the end of a compaction
# Power losses at times when written data is not on disk yet.
POWER_IN_A_REMOVAL = "power loss in a removal"
POWER_AFTER_AN_ANSWER = "power loss after an answer"
POWER_IN_A_ROLL = "power loss in a roll"
POWER_AFTER_A_CHECKPOINT = "power loss after a checkpoint"
POWER_AFTER_A_STOP, POWER_AFTER_A_STOP_SHARE = "power loss after a stop", 0.1
SLOW_DISK_FAULTS = ("slow disk", POWER_AFTER_AN_ANSWER, POWER_IN_A_ROLL, POWER_AFTER_A_CHECKPOINT)
# Many segments are removed at once, long after the last checkpoint.
LARGE_REMOVALS = {
    "log.flush.offset.checkpoint.interval.ms": "60000",
    "log.retention.check.interval.ms": "30000",
}
AIMED_SHARE = 0.3  # of the seeds with a durable broker
AIMED_COUNT = 3
IN_A_SWAP_SHARE = 0.2  # of the seeds that compact
ANSWERED = ("producer", "bursts", "transactions", "classic", "consumer", "retention")
AIMED_MS = 20_000  # how long to wait for the right time
SERVER_KILLS = (*KILLS, AFTER_AN_ANSWER, AFTER_AN_ANSWER, "power loss")
SERVER_NETWORK_FAULTS = ("disconnect", "partition", "partition")
SERVER_FAULTS = (*SERVER_KILLS, *SERVER_KILLS, *SERVER_NETWORK_FAULTS, *DISK_FAULTS)
# A Connect worker has no files; frozen for longer than its session it is replaced.
CONNECT_FAULTS = (
    *("kill", "kill", "stop", AFTER_AN_ANSWER, "power loss", FREEZE, FREEZE),
    *(*SERVER_NETWORK_FAULTS, "slow network"),
)
LONG_PARTITION_MS = 70_000  # longer than request timeouts
LONG_MS = 300_000  # actors pause longer in scenarios of at least this length
PACE_MS = 75_000
SERVER_SEGMENT_BYTES = 20_000  # one of their records is larger than the smallest segments


def pace_of(work_ms: int) -> int:
    """The factor by which actors pause longer in a scenario of this length."""
    return 1 if work_ms < LONG_MS else work_ms // PACE_MS


def scenario_of(seed: int, *, minutes: float = 4) -> Scenario:
    """The scenario of a seed. Each omits most features, so that the others interact more often."""
    scenario = core_scenario_of(seed, minutes=minutes)
    found = _with_application(scenario, APPLICATION_SHARE)
    for name, chance in SERVERS.items():
        if found is scenario or scenario.work_ms < LONG_MS:  # a long one has one of them at most
            found = _with_server(found, name, chance)
    return found


def scenario_with(seed: int, part: str, *, minutes: float = 4) -> Scenario:
    """The broker of a seed with an application or a server, and only the actors that it needs."""
    core = core_scenario_of(seed, minutes=minutes)
    alone = replace(core, actors=(), faults=tuple(f for f in core.faults if f.target == "broker"))
    if part == APPLICATION:
        return _with_application(alone, 1.0)
    return _with_server(alone, part, 1.0)


def core_scenario_of(seed: int, *, minutes: float = 4) -> Scenario:
    """The broker and its clients in the scenario of a seed, without applications and servers."""
    random = Random(f"{seed}/scenario")
    work_ms = int(minutes * MINUTE_MS)
    settings = _settings(random, pace_of(work_ms))
    actors = _actors(random)
    durable = settings["durability"] == "fsync"
    faults = _faults(random, actors, work_ms, durable=durable)
    rare = Random(f"{seed}/rare")
    actors += tuple(name for name in RARE_ACTORS if rare.random() < 0.15)
    faults += _rare_faults(rare, actors, work_ms, durable=durable)
    faults += _frozen_readers(Random(f"{seed}/freeze"), actors, work_ms)
    if "transactions 0" in actors:
        faults += _overdue_transaction(Random(f"{seed}/overdue"), work_ms)
    if "transactions 0" in actors and durable:
        faults += _refused_marker(Random(f"{seed}/refused marker"), work_ms)
    if durable:
        faults += _lost_after_a_stop(Random(f"{seed}/stop"), work_ms)
    if Random(f"{seed}/balances").random() < BALANCES_SHARE:
        actors += (BALANCES,)
    if "topics" in actors or BALANCES in actors:
        faults += _ends_in_swaps(Random(f"{seed}/swap"), work_ms)
    scenario = Scenario(
        seed=seed,
        work_ms=work_ms,
        settings=settings,
        actors=actors,
        faults=tuple(sorted(faults, key=lambda fault: fault.at_ms)),
    )
    return _with_aimed_faults(scenario) if durable else scenario


def _with_aimed_faults(scenario: Scenario) -> Scenario:
    """Add power losses at the worst times, for some seeds."""
    random = Random(f"{scenario.seed}/power")
    if any(fault.kind == POWER_IN_A_REMOVAL for fault in scenario.faults):
        return replace(scenario, settings={**scenario.settings, **LARGE_REMOVALS})
    if random.random() >= AIMED_SHARE:
        return scenario
    kind = random.choice((POWER_AFTER_AN_ANSWER, POWER_IN_A_ROLL, POWER_AFTER_A_CHECKPOINT))
    settings, actors = dict(scenario.settings), scenario.actors
    if kind != POWER_AFTER_AN_ANSWER or random.random() < 0.3:
        # Bursts, so that a log has more than one segment that is not flushed.
        settings["log.segment.bytes"] = "2000"
        settings["log.flush.offset.checkpoint.interval.ms"] = "1000"
        actors = (*actors, BURSTS)
    faults = list(scenario.faults)
    for _ in range(AIMED_COUNT):
        at_ms = CALM_BEFORE_MS + random.randrange(scenario.work_ms)
        answered = [name for name in actors if name.startswith(ANSWERED)]
        target = random.choice(answered) if kind == POWER_AFTER_AN_ANSWER and answered else "broker"
        faults.append(Fault(at_ms, kind, target, AIMED_MS))
    return replace(
        scenario,
        settings=settings,
        actors=actors,
        faults=tuple(sorted(faults, key=lambda fault: fault.at_ms)),
    )


def _with_application(scenario: Scenario, chance: float) -> Scenario:
    """Add an application with one or two instances, and its faults, for some seeds."""
    random = Random(f"{scenario.seed}/applications")
    if random.random() >= chance:
        return scenario
    instances = tuple(f"{APPLICATION} {number}" for number in range(random.choice((1, 2))))
    found = list(scenario.faults)
    for _ in range(random.randrange(6)):
        at_ms = CALM_BEFORE_MS + random.randrange(scenario.work_ms)
        kind, target = random.choice(APPLICATION_FAULTS), random.choice(instances)
        found.append(Fault(at_ms, kind, target, random.choice((50, 1_000, 8_000, 20_000))))
    pace = scenario.pace
    often = "500" if pace == 1 else "2000"  # commits are most of its work
    scenario = replace(
        scenario,
        # A producer must write its input.
        actors=tuple(dict.fromkeys((*scenario.actors, "producer 0", *instances))),
        faults=tuple(sorted(found, key=lambda fault: fault.at_ms)),
        application={
            "num_standby_replicas": str(random.choice((0, 1)) if len(instances) > 1 else 0),
            "commit_interval_ms": random.choice((often, "5000", "5000")),
            "acceptable_recovery_lag": random.choice(("0", "10000")),
            "probing_rebalance_interval_ms": "60000",
            "repartition_purge_interval_ms": random.choice(("5000", "30000")),
            "session_timeout_ms": random.choice(("6000", "15000", "45000")),
            "poll_ms": str(1000 * pace),
            "consumer.fetch_max_wait_ms": str(2000 * pace),
            SHARED_RUNTIME: random.choice(("true", "false", "false")),
        },
    )
    return _with_late_standby(_with_frozen_instance(scenario, instances), instances)


def _with_frozen_instance(scenario: Scenario, instances: tuple[str, ...]) -> Scenario:
    """Freeze an instance until another has its tasks, for some seeds.

    Its transaction is still open when it continues: only its generation shows that it is too late.
    """
    random = Random(f"{scenario.seed}/frozen application")
    if len(instances) < 2 or random.random() >= 0.4:
        return scenario
    at_ms = CALM_BEFORE_MS + random.randrange(scenario.work_ms)
    fault = Fault(at_ms, FREEZE, random.choice(instances), random.choice((8_000, 20_000)))
    sessions = {"session_timeout_ms": "6000", "transaction_timeout_ms": "40000"}
    return replace(
        scenario,
        faults=tuple(sorted((*scenario.faults, fault), key=lambda fault: fault.at_ms)),
        application={**scenario.application, **sessions},
    )


def _with_late_standby(scenario: Scenario, instances: tuple[str, ...]) -> Scenario:
    """Stop an instance while the other cannot read changelogs, for some seeds.

    The other one has standbys, which lag behind when they take over.
    """
    random = Random(f"{scenario.seed}/late standby")
    if len(instances) < 2 or random.random() >= LATE_STANDBY_SHARE:
        return scenario
    faults = list(scenario.faults)
    for _ in range(AIMED_COUNT):
        at_ms = CALM_BEFORE_MS + random.randrange(scenario.work_ms)
        late, first = random.sample(instances, 2)
        faults.append(Fault(at_ms, "partition", late, LATE_MS))
        faults.append(Fault(at_ms + LATE_MS - random.randrange(LATE_MS // 2), "stop", first, 8_000))
    return replace(
        scenario,
        faults=tuple(sorted(faults, key=lambda fault: fault.at_ms)),
        application={**scenario.application, "num_standby_replicas": "1"},
    )


def _with_server(scenario: Scenario, name: str, chance: float) -> Scenario:
    """Add a server and its faults, for some seeds."""
    random = Random(f"{scenario.seed}/{name}")
    if random.random() >= chance:
        return scenario
    settings = dict(scenario.settings)
    settings["log.segment.bytes"] = str(
        max(SERVER_SEGMENT_BYTES, int(settings["log.segment.bytes"]))
    )
    faults = []
    for _ in range(random.randrange(4)):
        kind = random.choice(CONNECT_FAULTS if name == "connect" else SERVER_FAULTS)
        for_ms = random.choice((50, 1_000, 5_000, 20_000))
        if kind == AFTER_AN_ANSWER:
            for_ms = 20_000  # until there is an acknowledgement
        elif kind == "partition" and random.random() < 0.5:
            for_ms = LONG_PARTITION_MS
        at_ms = CALM_BEFORE_MS + random.randrange(scenario.work_ms)
        faults.append(Fault(at_ms, kind, name, for_ms))
    actors = (*scenario.actors, name)
    if name == "sql":
        faults += _hard_restarts(Random(f"{scenario.seed}/restarts"), scenario.work_ms)
        second = Random(f"{scenario.seed}/{SECOND_SQL}")
        if second.random() < SECOND_SQL_SHARE and scenario.work_ms < LONG_MS:
            actors = (*actors, SECOND_SQL)
            faults += _faults_of_second(second, scenario.work_ms)
    if name == "connect":
        if Random(f"{scenario.seed}/rival").random() < RIVAL_SHARE:
            actors = (*actors, RIVAL)
        faults += _ends_after_commits(Random(f"{scenario.seed}/commits"), name, scenario.work_ms)
    return replace(
        scenario,
        settings=settings,
        actors=actors,
        faults=tuple(sorted((*scenario.faults, *faults), key=lambda fault: fault.at_ms)),
    )


def _ends_after_commits(random: Random, name: str, work_ms: int) -> list[Fault]:
    """Kill a server between two commits, for some seeds."""
    if random.random() >= AFTER_A_COMMIT_SHARE:
        return []
    times = (CALM_BEFORE_MS + random.randrange(work_ms) for _ in range(AIMED_COUNT))
    return [Fault(at_ms, AFTER_A_COMMIT, name, AIMED_MS) for at_ms in times]


def _faults_of_second(random: Random, work_ms: int) -> list[Fault]:
    """Faults of the second SQL server of a service."""
    found = []
    for _ in range(random.randrange(3)):
        at_ms = CALM_BEFORE_MS + random.randrange(work_ms)
        kind = random.choice(SECOND_SQL_FAULTS)
        found.append(Fault(at_ms, kind, SECOND_SQL, random.choice((1_000, 20_000))))
    return found


def _hard_restarts(random: Random, work_ms: int) -> list[Fault]:
    """Make a query fail that cannot be restarted immediately, for some seeds."""
    if random.random() >= 0.3:
        return []
    at_ms = CALM_BEFORE_MS + random.randrange(work_ms // 8, work_ms // 2)  # rows are inserted
    return [Fault(at_ms, NO_RESTART, "sql", 40_000)]


def _settings(random: Random, pace: int) -> dict[str, str]:
    return {
        "durability": random.choice(("fsync", "fsync", "kafka")),
        "log.segment.bytes": str(random.choice((2_000, 10_000, 1_000_000))),
        "log.index.interval.bytes": str(random.choice((1, 100, 4096))),
        "log.retention.check.interval.ms": str(random.choice((5_000, 30_000))),
        "log.flush.offset.checkpoint.interval.ms": str(random.choice((1_000, 10_000, 60_000))),
        "log.cleaner.backoff.ms": str(2000 * pace),
        "log.message.timestamp.after.max.ms": str(2**62),  # clocks jump
        "log.segment.delete.delay.ms": str(random.choice((0, 5_000, 60_000))),
        "offsets.topic.num.partitions": str(random.choice((1, 3))),
        "transaction.state.log.num.partitions": str(random.choice((1, 3))),
        "offsets.topic.segment.bytes": str(random.choice((10_000, 100_000))),
        "group.initial.rebalance.delay.ms": str(random.choice((0, 1_000))),
        "group.consumer.min.heartbeat.interval.ms": "1000",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(2000 * pace),
    }


def _actors(random: Random) -> tuple[str, ...]:
    found = [f"producer {number}" for number in range(random.choice((0, 1, 1, 2)))]
    found += [f"transactions {number}" for number in range(random.choice((0, 0, 1, 2)))]
    if random.random() < 0.5:
        kind = random.choice(("classic", "consumer"))
        found += [f"{kind} reader {number}" for number in range(random.choice((1, 2, 3)))]
    if random.random() < 0.4:
        found.append("topics")
    return tuple(found) or ("producer 0",)


def _faults(
    random: Random, actors: tuple[str, ...], work_ms: int, *, durable: bool
) -> tuple[Fault, ...]:
    kinds = [kind for kind in (*KILLS, *KILLS) if random.random() < 0.7]
    for group in (DISK_FAULTS, NETWORK_FAULTS, CLOCK_FAULTS):
        kinds += [kind for kind in group if random.random() < 0.3]
    if durable:  # otherwise acknowledged data may be lost
        kinds += [
            kind for kind in ("power loss", "power loss", "failing fsync") if random.random() < 0.6
        ]
    found = []
    for _ in range(random.randrange(1, 12) if kinds else 0):
        kind = random.choice(kinds)
        others = kind in {"kill", "stop", "disconnect", "partition"} and random.random() < 0.4
        target = random.choice(actors) if others else "broker"
        at_ms = CALM_BEFORE_MS + random.randrange(work_ms)
        found.append(Fault(at_ms, kind, target, random.choice((50, 1_000, 5_000, 20_000))))
    return tuple(sorted(found, key=lambda fault: fault.at_ms))


def _rare_faults(
    random: Random, actors: tuple[str, ...], work_ms: int, *, durable: bool
) -> tuple[Fault, ...]:
    found = []
    for kind in RARE_FAULTS:
        if random.random() < 0.8 or (kind == "power loss" and not durable):
            continue
        target = random.choice(actors) if kind == "long absence" else "broker"
        for_ms = random.choice((30_000, 90_000)) if kind == "long absence" else 15_000
        found.append(Fault(CALM_BEFORE_MS + random.randrange(work_ms), kind, target, for_ms))
    if "transactions 0" in actors and random.random() < 0.2:  # its transaction stays open
        at_ms = CALM_BEFORE_MS + random.randrange(work_ms)
        found.append(Fault(at_ms, "long absence", "transactions 0", 90_000))
        found.append(Fault(at_ms + 1_000, "clock back"))
    readers = [name for name in actors if "reader" in name]
    if readers and random.random() < 0.2:  # it does not notice that it has lost its partitions
        at_ms = CALM_BEFORE_MS + random.randrange(work_ms)
        found.append(Fault(at_ms, "partition", random.choice(readers), 15_000))
    if durable and random.random() < 0.2:  # much written data is not on disk yet
        at_ms = CALM_BEFORE_MS + random.randrange(work_ms)
        found.append(Fault(at_ms, "slow disk", for_ms=15_000))
        found.append(Fault(at_ms + random.randrange(15_000), "power loss", for_ms=1_000))
    if "topics" in actors and random.random() < 0.3:  # when a topic has the name of a deleted one
        at_ms = CALM_BEFORE_MS + random.randrange(work_ms)
        found.append(Fault(at_ms, AFTER_AN_ANSWER, for_ms=60_000))
    if durable and any("retention" in name for name in actors) and random.random() < 0.5:
        at_ms = CALM_BEFORE_MS + random.randrange(work_ms)
        found.append(Fault(at_ms, POWER_IN_A_REMOVAL, for_ms=60_000))
    return tuple(found)


def _frozen_readers(random: Random, actors: tuple[str, ...], work_ms: int) -> tuple[Fault, ...]:
    """Freeze a reader until others have its partitions, for some seeds."""
    readers = [name for name in actors if "reader" in name]
    if len(readers) < 2 or random.random() >= 0.4:
        return ()
    target = random.choice(readers)
    at_ms = CALM_BEFORE_MS + random.randrange(work_ms)
    return (Fault(at_ms, FREEZE, target, FREEZE_MS[target.split()[0]]),)


def _overdue_transaction(random: Random, work_ms: int) -> tuple[Fault, ...]:
    """Leave a transaction open that the broker cannot abort in time, for some seeds."""
    if random.random() >= 0.15:
        return ()
    at_ms = CALM_BEFORE_MS + random.randrange(work_ms // 2, work_ms)
    return (Fault(at_ms, OVERDUE, "transactions 0", 80_000),)


def _refused_marker(random: Random, work_ms: int) -> tuple[Fault, ...]:
    """Make one partition refuse markers for a while, for some seeds."""
    if random.random() >= 0.2:
        return ()
    at_ms = CALM_BEFORE_MS + random.randrange(work_ms)
    return (Fault(at_ms, FAILING_PARTITION, for_ms=15_000),)


def _lost_after_a_stop(random: Random, work_ms: int) -> tuple[Fault, ...]:
    """Cut the power right after a clean stop of the broker, for some seeds."""
    if random.random() >= POWER_AFTER_A_STOP_SHARE:
        return ()
    times = (CALM_BEFORE_MS + random.randrange(work_ms) for _ in range(AIMED_COUNT))
    return tuple(Fault(at_ms, POWER_AFTER_A_STOP, for_ms=AIMED_MS) for at_ms in times)


def _ends_in_swaps(random: Random, work_ms: int) -> tuple[Fault, ...]:
    """Kill the broker while compacted segments replace others, for some seeds."""
    if random.random() >= IN_A_SWAP_SHARE:
        return ()
    times = (CALM_BEFORE_MS + random.randrange(work_ms) for _ in range(AIMED_COUNT))
    return tuple(Fault(at_ms, IN_A_SWAP, for_ms=AIMED_MS) for at_ms in times)


def to_json(scenario: Scenario) -> dict[str, Any]:
    """The scenario as a JSON document."""
    return asdict(scenario)


def from_json(document: Mapping[str, Any]) -> Scenario:
    """The scenario of a document."""
    faults = tuple(Fault(**fault) for fault in document["faults"])
    return Scenario(**{**document, "actors": tuple(document["actors"]), "faults": faults})
