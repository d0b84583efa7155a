"""ConnectWorkload: the actions of users on connectors, from a seed, and the expected results.

A source reads files into a topic, a sink writes the topic to a ledger (see lines.py), and a spare
source is created and deleted. Acknowledged changes are stored here; a change that was interrupted
by a kill may or may not have been written, and is requested again.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from broker.client.administration.values import ConfigChange, ConfigResource, NewTopic
from broker.client.opening import Target, admin
from broker.errors import ErrorCode
from broker.model import TopicPartition
from connect.errors import NotFound
from connect.herder import Herder
from connect.state.config_store import RestartRequest
from connect.state.status_store import State
from connect.state.task_state import TargetState, TaskId
from millstream.simulation.observations import Violation
from millstream.simulation.workloads.lines import (
    EXTERNAL_SYSTEMS,
    FILES,
    UNREADABLE,
    UNWRITABLE,
    ExternalSystems,
    is_unwritable,
)
from millstream.simulation.workloads.topic_reading import TopicReading

TOPIC, SPARE_TOPIC, LETTERS = "lines", "spare-lines", "dead-lines"
SOURCE, SINK, SPARE = "source", "sink", "spare"
PLUGINS = "millstream.simulation.workloads.lines"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
MESSAGE_BYTES = "1000"  # the first limit of the dead letter topic, if it refuses some
ENOUGH_BYTES = "100000"
# How long users leave a connector paused or stopped, and whether they restart the worker meanwhile.
HOLDS = ((3_000, False), (30_000, False), (30_000, True))
CHANGE_LOST = "no acknowledged configuration is lost"


@dataclass(frozen=True, slots=True)
class ConnectorState:
    """The configuration and target state that a user has requested."""

    config: Mapping[str, str]
    state: TargetState = TargetState.STARTED


@dataclass(frozen=True, slots=True)
class Step:
    """An action of a user, and the connector's state afterwards."""

    name: str
    run: Callable[[Herder], object]
    connector: str = ""
    after: Callable[[], ConnectorState | None] | None = None
    pause_ms: int = 0  # how long the user waits afterwards
    restarts: bool = False  # whether the worker is restarted before that


class ConnectWorkload:
    """The script, and acknowledged changes; it survives the killed process."""

    def __init__(self, random: Random, work_ms: int, now_us: Callable[[], int]) -> None:
        self._random = random
        self.exactly_once = random.random() < 0.5
        self._refuses_letters = random.random() < 0.3
        self._settings = _Settings(random, exactly_once=self.exactly_once)
        count = min(120, max(30, work_ms // 1_500))
        self.external = EXTERNAL_SYSTEMS["lines"] = ExternalSystems(
            count, self._refuses_letters, now_us
        )
        self.known: dict[str, ConnectorState | None] = {}  # acknowledged
        self.pending: dict[str, ConnectorState | None] = {}  # requested, and possibly written
        self.inactive_ms: dict[str, int] = {}  # since when connectors must do nothing
        self.steps = list(self._chosen_steps())
        self.next = 0

    @property
    def worker_settings(self) -> dict[str, str]:
        """The settings of the worker, the same at each start."""
        return self._settings.worker

    @property
    def is_over(self) -> bool:
        """Whether all steps were done."""
        return self.next == len(self.steps)

    # --- the script -----------------------------------------------------------------------------

    def _chosen_steps(self) -> Iterator[Step]:
        random, settings = self._random, self._settings
        first = [self._create(SOURCE, settings.source()), self._create(SINK, settings.sink())]
        random.shuffle(first)
        yield from first
        changes: list[Callable[[str], Iterator[Step]]] = [
            self._reconfigure,
            self._reconfigure,
            self._hold,
            self._hold,
            self._restart,
            self._create_again,
        ]
        for _ in range(random.choice((3, 5))):
            yield from random.choice(changes)(random.choice((SOURCE, SINK)))
            if random.random() < 0.3:
                yield from self._spare()

    def _create(self, name: str, config: Mapping[str, str], *, held: bool = False) -> Step:
        state = TargetState.PAUSED if held else TargetState.STARTED
        wanted = ConnectorState(config, state)
        initial = state if held else None

        def run(herder: Herder) -> None:
            if name in herder.connectors():  # created by an attempt without a response
                herder.put_config(name, config)
                if held:
                    herder.pause(name)
            else:
                herder.create(name, config, initial)

        return Step(f"create {name}", run, name, lambda: wanted)

    def _delete(self, name: str) -> Step:
        def run(herder: Herder) -> None:
            if name in herder.connectors():
                herder.delete(name)

        return Step(f"delete {name}", run, name, lambda: None, self._random.choice((500, 30_000)))

    def _reconfigure(self, name: str) -> Iterator[Step]:
        config = self._settings.changed(name)

        def after() -> ConnectorState:
            return ConnectorState(config, self._known(name).state)

        yield Step(
            f"change {name} to {config['tag']}",
            lambda herder: herder.put_config(name, config),
            name,
            after,
        )

    def _hold(self, name: str) -> Iterator[Step]:
        stops = self._random.random() < 0.4
        state = TargetState.STOPPED if stops else TargetState.PAUSED
        pause_ms, restarts = self._random.choice(HOLDS)

        def hold(herder: Herder) -> None:
            (herder.stop_connector if stops else herder.pause)(name)

        def held() -> ConnectorState:
            return ConnectorState(self._known(name).config, state)

        def resumed() -> ConnectorState:
            return ConnectorState(self._known(name).config)

        what = f"{'stop' if stops else 'pause'} {name}"
        yield Step(what, hold, name, held, pause_ms, restarts)
        yield Step(f"resume {name}", lambda herder: herder.resume(name), name, resumed)

    def _restart(self, name: str) -> Iterator[Step]:
        kind = self._random.randrange(3)

        def run(herder: Herder) -> None:
            if kind == 0:
                herder.restart_connector(name)
            elif kind == 1:
                herder.restart(name, RestartRequest(include_tasks=True))
            else:
                herder.restart_task(TaskId(name, 0))

        yield Step(f"restart {name}, {kind}", run)

    def _create_again(self, name: str) -> Iterator[Step]:
        """Delete and recreate a connector, which continues from its offsets."""
        yield self._delete(name)
        yield self._create(name, self._settings.changed(name))

    def _spare(self) -> Iterator[Step]:
        """Create a connector and delete it, possibly before it has done anything."""
        yield self._create(SPARE, self._settings.spare(), held=self._random.random() < 0.3)
        yield self._delete(SPARE)

    def _known(self, name: str) -> ConnectorState:
        known = self.known[name]
        assert known is not None, f"{name} is deleted"
        return known

    def run_next(self, herder: Herder, note: Callable[..., None]) -> Step:
        """Do the next step; after an error of the herder, its outcome is unknown."""
        step = self.steps[self.next]
        note("begins", step.name)
        if step.after is None:
            step.run(herder)
        else:
            after = step.after()
            self.pending[step.connector] = after
            if after is not None and after.state is TargetState.STARTED:
                self.inactive_ms.pop(step.connector, None)
            step.run(herder)
            del self.pending[step.connector]
            self.known[step.connector] = after
            self._check_one(herder, step.connector)
            if after is None or after.state is not TargetState.STARTED:
                self.inactive_ms.setdefault(step.connector, self.external.now_us() // 1_000)
        note("has done", step.name)
        self.next += 1
        return step

    # --- acknowledged changes -------------------------------------------------------------------

    def check_known(self, herder: Herder) -> None:
        """Check that connectors are as acknowledged."""
        for name in dict.fromkeys((*self.known, *self.pending, *herder.connectors())):
            self._check_one(herder, name)

    def _check_one(self, herder: Herder, name: str) -> None:
        found = _found(herder, name)
        if name in self.pending and found == self.pending[name]:
            return
        if found != self.known.get(name):
            invariant = CHANGE_LOST if found is not None else "a connector is not lost"
            if self.known.get(name) is None:
                invariant = "a deleted connector stays deleted"
            raise Violation(
                invariant, f"{name} was {_shown(self.known.get(name))}, and is {_shown(found)}"
            )

    # --- failures -------------------------------------------------------------------------------

    def repair(
        self, herder: Herder, target: Target, note: Callable[..., None], *, explained: bool
    ) -> None:
        """Restart failed connectors and tasks, after removing the cause."""
        for name in herder.connectors():
            for trace in _failures(herder, name):
                is_letter = self._refuses_letters and "dead letter" in trace
                if not is_letter and not explained:
                    raise Violation(
                        "a connector fails only because of a fault", f"{name}: {trace[-600:]}"
                    )
                note("finds failed", name, trace.strip().splitlines()[-1][:200])
                if is_letter:
                    allow_letters(target)
            if _failures(herder, name):
                herder.restart(name, RestartRequest(include_tasks=True, only_failed=True))

    def prepare(self, target: Target) -> None:
        """Create the topics, so that they are not created with one partition."""
        letters = {"max.message.bytes": MESSAGE_BYTES} if self._refuses_letters else {}
        new = [NewTopic(TOPIC, FILES), NewTopic(LETTERS, 1, configs=letters)]
        with admin(target, default_api_timeout_ms=20_000) as cluster:
            for error in cluster.create_topics(new).errors.values():
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise error

    # --- results --------------------------------------------------------------------------------

    def missing(self, herder: Herder, reading: TopicReading) -> str:
        """Describe the parts of the final state that are missing; empty if there are none."""
        found = self.not_running(herder)
        delivered = Counter(self.external.delivered[SINK])
        letters = Counter(text(value) for _, _, value, _ in reading.records(LETTERS))
        # Read after its results, because more lines arrive.
        written = [(partition, text(value)) for partition, _, value, _ in reading.records(TOPIC)]
        found += self._missing_lines(written)
        lines = {line for _, line in written}
        if strange := delivered.keys() - lines:
            raise Violation("only committed records are read", f"{SINK} has {min(strange)}")
        unreadable = {line for line in lines if UNREADABLE in line}
        found += _lack("the ledger", lines - unreadable, delivered)
        found += _lack("the dead letter topic", unreadable, letters)
        if strange := letters.keys() - unreadable:
            raise Violation("dead letters are records that failed", f"there is {min(strange)}")
        return "; ".join(found)

    def not_running(self, herder: Herder) -> list[str]:
        """Connectors that should run and do not."""
        return [f"{name} {each}" for name in self.known for each in self._not_running(herder, name)]

    def _not_running(self, herder: Herder, name: str) -> Iterator[str]:
        wanted = self.known[name]
        if wanted is None:
            return
        try:
            status = herder.status(name)
        except NotFound:
            yield "has no status"
            return
        count = min(FILES, int(wanted.config["tasks.max"]))
        states = [status.connector.state, *(each.state for each in status.tasks.values())]
        if states != [State.RUNNING] * (1 + count):
            yield f"is {[state.value for state in states]} with {count} tasks"

    def _missing_lines(self, written: Sequence[tuple[int, str]]) -> Iterator[str]:
        for file in range(FILES):
            lines = [line.split() for partition, line in written if partition == file]
            if any(each[0] != str(file) or UNWRITABLE in each for each in lines):
                raise Violation("a source writes its lines", f"partition {file}: {lines}"[:300])
            numbers = [int(each[1]) for each in lines]
            expected = [each for each in range(self.external.count) if not is_unwritable(each)]
            first = list(dict.fromkeys(numbers))
            if self.exactly_once and numbers != expected[: len(numbers)]:
                raise Violation(
                    "lines are in order, without duplicates", _order(file, numbers, expected)
                )
            if first != expected[: len(first)]:
                raise Violation("no line is lost", _order(file, first, expected))
            if len(first) < len(expected):
                yield f"file {file} has {len(first)} of {len(expected)} lines in the topic"


class _Settings:
    """Configurations of connectors; each change has another tag."""

    def __init__(self, random: Random, *, exactly_once: bool) -> None:
        self._random = random
        self._tag = 0
        self._is_short = random.random() < 0.5  # the converters omit what they refuse
        self._filters = (
            random.random() < 0.4
        )  # a transform of the sink refuses, instead of a converter
        self._is_lazy = random.random() < 0.5
        self._boundary = random.choice(("poll", "poll", "interval"))
        self.worker = {
            "group.id": "workers",
            "config.storage.topic": "connect-configs",
            "offset.storage.topic": "connect-offsets",
            "offset.storage.partitions": "2",
            "status.storage.topic": "connect-status",
            "status.storage.partitions": "1",
            "listeners": "",
            "key.converter": STRINGS,
            "value.converter": STRINGS,
            "plugin.modules": PLUGINS,
            "offset.flush.interval.ms": random.choice(("500", "5000", "15000")),
            "task.shutdown.graceful.timeout.ms": "5000",
            "exactly.once.source.support": "enabled" if exactly_once else "disabled",
            "consumer.isolation.level": "read_committed",
            "consumer.auto.offset.reset": "earliest",
            "consumer.fetch.max.wait.ms": "2000",
        }

    def _new(self, kind: str, name: str) -> dict[str, str]:
        self._tag += 1
        return {
            "name": name,
            "connector.class": f"{PLUGINS}:{kind}",
            "outside": "lines",
            "tag": f"tag-{self._tag}",
            "tasks.max": self._random.choice(("1", "2")),
            "value.converter": f"{PLUGINS}:LineConverter",
            "value.converter.short": str(self._is_short).lower(),
            "errors.tolerance": "all",
        }

    def changed(self, name: str) -> dict[str, str]:
        """A new configuration of a connector."""
        return self.sink() if name == SINK else self.source()

    def source(self) -> dict[str, str]:
        """A configuration of the source."""
        return {
            **self._new("LineSource", SOURCE),
            "topic": TOPIC,
            "batch": self._random.choice(("1", "3")),
            "poll.ms": self._random.choice(("400", "1000", "2500")),
            "value.converter.refused": UNWRITABLE,
            "transaction.boundary": self._boundary,
            "transaction.boundary.interval.ms": "3000",
            "topic.creation.default.partitions": str(FILES),
            "topic.creation.default.replication.factor": "1",
        }

    def spare(self) -> dict[str, str]:
        """A configuration of the spare source."""
        return {**self.source(), "name": SPARE, "topic": SPARE_TOPIC}

    def sink(self) -> dict[str, str]:
        """A configuration of the sink."""
        config = {
            **self._new("LedgerSink", SINK),
            "topics": TOPIC,
            "lazy": str(self._is_lazy).lower(),
            "errors.deadletterqueue.topic.name": LETTERS,
            "errors.deadletterqueue.topic.replication.factor": "1",
        }
        if not self._filters:
            return {**config, "value.converter.refused": UNREADABLE}
        return {**config, "transforms": "lines", "transforms.lines.type": f"{PLUGINS}:LineFilter"}


def allow_letters(target: Target) -> None:
    """Allow large records in the dead letter topic."""
    with admin(target, default_api_timeout_ms=20_000) as cluster:
        change = ConfigChange("max.message.bytes", ENOUGH_BYTES)
        cluster.alter_configs({ConfigResource("topic", LETTERS): [change]}).all()


def text(value: bytes | None) -> str:
    """A line of a topic."""
    return (value or b"").decode()


def _found(herder: Herder, name: str) -> ConnectorState | None:
    found = herder._configs.connector(name)  # noqa: SLF001 - the only way to read the target state
    return None if found is None else ConnectorState(found.config, found.target_state)


def _failures(herder: Herder, name: str) -> list[str]:
    try:
        status = herder.status(name)
    except NotFound:
        return []
    return [
        each.trace or ""
        for each in (status.connector, *status.tasks.values())
        if each.state is State.FAILED
    ]


def _shown(wanted: ConnectorState | None) -> str:
    return "deleted" if wanted is None else f"{wanted.state.value} with {wanted.config['tag']}"


def _order(file: int, numbers: Sequence[int], expected: Sequence[int]) -> str:
    pairs = zip(numbers, expected, strict=False)
    at = next(n for n, pair in enumerate(pairs) if pair[0] != pair[1])
    nearby = slice(max(0, at - 3), at + 3)
    return f"file {file}: {numbers[nearby]} instead of {expected[nearby]}"


def _lack(where: str, lines: set[str], existing: Mapping[str, int]) -> Iterator[str]:
    missing = sorted(line for line in lines if line not in existing)
    if missing:
        yield f"{where} lacks {len(missing)} of {len(lines)} lines, such as {missing[0][:60]}"


def partitions() -> list[TopicPartition]:
    """The partitions that the sink reads."""
    return [TopicPartition(TOPIC, file) for file in range(FILES)]
