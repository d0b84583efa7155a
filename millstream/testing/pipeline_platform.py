"""PipelinePlatform: one run of a pipeline on the simulated platform.

start    broker, topics and application are started, without faults
work     input is sent over some seconds, with faults; their times count from here
settle   no more faults; the application processes the remaining input, and output is read
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from millstream.simulation.observations import Violation
from millstream.simulation.scenario import Fault, Scenario
from millstream.simulation.simulated_platform import SimulatedPlatform
from millstream.simulation.simulation import Simulation
from millstream.testing.actors import (
    Application,
    PipelineActor,
    Reader,
    Sender,
    SqlApplication,
    StreamsApplication,
    TopicCreator,
)
from millstream.testing.faults import InputFault, ordered_records
from millstream.testing.outputs import Output, Result, Stored
from millstream.testing.pipelines import Pipeline, StreamsPipeline
from millstream.testing.records import EncodedRecord

WORK_MS = 8_000
START_MS_MAX = 60_000
SETTLING_MS_MAX = 300_000
STEP_MS = 1_000
FAILURES_MAX = 10  # after the faults; then it will not recover
BROKER_SETTINGS = {
    "durability": "fsync",
    "log.retention.ms": "-1",  # the times of records are the test's
    "log.message.timestamp.after.max.ms": str(2**62),
    "log.message.timestamp.before.max.ms": str(2**62),
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


@dataclass(frozen=True, slots=True)
class Experiment:
    """The parts that are the same in all runs of a test."""

    pipeline: Pipeline
    inputs: Mapping[str, Sequence[EncodedRecord]]
    outputs: Mapping[str, Output]
    topics: Mapping[str, int]  # and their partition counts
    instances: int = 1
    settle_ms: int = 3_000

    @property
    def application_names(self) -> list[str]:
        """The names of the application's processes."""
        if self.instances == 1:
            return ["application"]
        return [f"application {number}" for number in range(1, self.instances + 1)]

    def scenario(self, seed: int, faults: Sequence[Fault] = ()) -> Scenario:
        """The scenario of a run with some faults."""
        return Scenario(seed, WORK_MS, BROKER_SETTINGS, faults=tuple(faults))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one run."""

    results: Mapping[str, Result]
    problem: str  # why there are no results; empty if there are
    digest: str
    lines: Sequence[str] = field(repr=False)
    virtual_ms: int


class PipelinePlatform(SimulatedPlatform):
    """The processes of one run."""

    def __init__(self, simulation: Simulation, scenario: Scenario, experiment: Experiment) -> None:
        super().__init__(simulation, scenario)
        self.pipeline = experiment.pipeline
        self.outputs = experiment.outputs
        self.topics = experiment.topics
        self.settle_ms = experiment.settle_ms
        self.records = ordered_records(experiment.inputs, scenario.faults)
        self.stored: dict[str, Stored] = {}
        is_streams = isinstance(self.pipeline, StreamsPipeline)
        kind = StreamsApplication if is_streams else SqlApplication
        self.applications: list[Application] = [
            kind(name, self) for name in experiment.application_names
        ]
        self.actors |= {each.name: each for each in self.applications}
        self._faults_left = 0
        self._failures_before = 0  # while there were faults

    def run(self) -> None:
        """Run to the end, or to the first violation."""
        self.actors["broker"].start()
        self.simulation.start(self._world, "director", self._run_phases)
        while self.violation is None and not self._is_over:
            self.simulation.run(for_ms=STEP_MS)
            self._check_always()
            self._check_errors()

    def _check_errors(self) -> None:
        """Check that the application does not fail in a run without faults."""
        if not self.scenario.faults:
            for error in self._errors():
                self.report(Violation("the application does not fail without faults", error))

    def _errors(self) -> list[str]:
        return [
            f"{each.name} has failed: {each.last_error}"
            for each in self.applications
            if each.last_error
        ]

    def _run_phases(self) -> None:
        self._finish(TopicCreator("creator", self), START_MS_MAX)
        for each in self.applications:
            each.start()
        self._wait_for_start()
        faults = [each for each in self.scenario.faults if not isinstance(each, InputFault)]
        self._faults_left = len(faults)
        for number, fault in enumerate(faults):
            self.simulation.start(self._world, f"fault {number}", partial(self._at, fault))
        self._finish(Sender("sender", self), SETTLING_MS_MAX)
        while self._faults_left:
            self._sleep(100)
        self._finish(Reader("reader", self), SETTLING_MS_MAX)
        self._is_over = True

    def _at(self, fault: Fault) -> None:
        super()._at(fault)
        self._faults_left -= 1
        self._failures_before += self._failures()

    def _wait_for_start(self) -> None:
        """Wait until the application runs or fails."""
        for _ in range(START_MS_MAX // 100):
            if all(each.is_running() or each.last_error for each in self.applications):
                return
            self._sleep(100)

    def _finish(self, actor: PipelineActor, longest_ms: int) -> None:
        """Start a process, and wait until it is done."""
        actor.start()
        for _ in range(longest_ms // 100):
            if actor.is_done:
                return
            self._restart_broker()
            self._sleep(100)
            if not self._faults_left and self._failures() >= FAILURES_MAX:
                break
        what = "\n".join(self._errors()) or f"the {actor.name} waits without end"
        self.report(Violation("the application processes all its input", what))

    def _failures(self) -> int:
        """The number of failures since the last fault."""
        return sum(each.failures for each in self.applications) - self._failures_before

    def _sleep(self, milliseconds: int) -> None:
        self.simulation.scheduler.sleep(milliseconds * 1_000)


def run_once(experiment: Experiment, scenario: Scenario) -> Outcome:
    """Simulate one run."""
    with Simulation(scenario.seed) as simulation:
        platform = PipelinePlatform(simulation, scenario, experiment)
        platform.run()
        history = simulation.history
        results = {}
        if platform.violation is None:
            results = {
                topic: output.result(topic, platform.stored[topic])
                for topic, output in experiment.outputs.items()
            }
        problem = "" if platform.violation is None else str(platform.violation)
        virtual_ms = simulation.scheduler.now_us // 1_000
        return Outcome(results, problem, history.digest(), history.last(), virtual_ms)
