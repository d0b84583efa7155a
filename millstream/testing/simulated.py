"""Simulated: runs a pipeline with faults, and compares it with a run without faults."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from millstream.simulation import campaign
from millstream.simulation.scenario import Fault, Scenario
from millstream.simulation.shrinking import shrink
from millstream.testing.faults import FaultKind, FaultScope, crash
from millstream.testing.outputs import Output, Result
from millstream.testing.pipeline_platform import WORK_MS, Experiment, Outcome, run_once
from millstream.testing.pipelines import Pipeline, StreamsPipeline, sql_pipeline
from millstream.testing.records import Inputs, encode_records
from millstream.testing.report import DifferentResult, FailedRun, report
from streams.topology import Topology

SEEDS = 10
SHRINKING_RUNS_MAX = 60
SAME_RESULT = "the result is the same as without faults"
ONLY_ONCE = (
    "only in the first run: the same seed gave the expected result in the next one. The pipeline "
    "may depend on state outside of stores, on the real time or on random numbers"
)


@dataclass(slots=True)
class Simulated:
    """The value of the fixture `simulated`."""

    only_seed: int | None = None  # --simulation-seed
    seed_count: int | None = None  # --simulation-seeds: replaces the count of tests
    rerun: str = "pass only_seed={seed}"  # how to run a seed again

    def run(  # noqa: PLR0913 - one argument per option
        self,
        build: Callable[[], Topology] | None = None,
        *,
        sql: str | Path | None = None,
        inputs: Inputs,
        outputs: Mapping[str, Output],
        faults: Iterable[FaultKind] = (crash(),),
        seeds: int = SEEDS,
        settings: Mapping[str, object] | None = None,
        partitions: int = 1,
        instances: int = 1,
    ) -> dict[str, Result]:
        """Run a pipeline with the faults of some seeds; returns the result without faults.

        `build` creates the topology; or `sql` is a file, or statements. Raises DifferentResult for
        the first seed whose outputs differ from those of the run without faults. `settings` are
        those of StreamsApp, or of the SQL server; `partitions` is the partition count of topics.
        """
        __tracebackhide__ = True
        pipeline = _pipeline(build, sql, settings or {})
        experiment = _experiment(pipeline, inputs, outputs, partitions, instances)
        expected = run_once(experiment, experiment.scenario(0))
        if expected.problem:
            raise FailedRun(f"the run without faults failed: {expected.problem}")
        for seed in self._seeds(seeds):
            scenario = scenario_of(seed, experiment, tuple(faults))
            actual = run_once(experiment, scenario)
            if lines := differences(experiment, expected, actual):
                raise DifferentResult(_explained(experiment, scenario, expected, lines, self.rerun))
        return dict(expected.results)

    def _seeds(self, seeds: int) -> Sequence[int]:
        if self.only_seed is not None:
            return [self.only_seed]
        return range(1, (self.seed_count or seeds) + 1)


def _pipeline(
    build: Callable[[], Topology] | None, sql: str | Path | None, settings: Mapping[str, object]
) -> Pipeline:
    if (build is None) == (sql is None):
        raise TypeError("pass a function that builds a topology, or sql=")
    if build is not None:
        return StreamsPipeline(build, settings)
    assert sql is not None
    return sql_pipeline(sql, settings)


def _experiment(
    pipeline: Pipeline,
    inputs: Inputs,
    outputs: Mapping[str, Output],
    partitions: int,
    instances: int,
) -> Experiment:
    topics = dict.fromkeys(inputs, partitions)
    if isinstance(pipeline, StreamsPipeline):
        sources = pipeline.sources()
        records = encode_records(inputs, lambda topic: pipeline.serdes(sources, topic))
        topics |= dict.fromkeys([*sources, *outputs], partitions)
        unknown = [topic for topic in inputs if topic not in sources]
    else:
        records = encode_records(inputs, lambda topic: (None, None))
        topics |= pipeline.partitions()
        unknown = []
    if unknown:
        raise ValueError(f'the topology does not read "{unknown[0]}"; it reads {sorted(sources)}')
    return Experiment(pipeline, records, outputs, topics, instances)


def scenario_of(seed: int, experiment: Experiment, kinds: Sequence[FaultKind]) -> Scenario:
    """The scenario of a seed. Each seed omits some kinds, so that each is also tested alone."""
    random = Random(f"{seed}/pipeline faults")
    scope = FaultScope(experiment.application_names, WORK_MS, experiment.inputs)
    included = random.sample(kinds, random.randint(1, len(kinds))) if kinds else []
    faults: list[Fault] = []
    for number, kind in enumerate(kinds):
        if kind in included:
            faults += kind.choose(Random(f"{seed}/pipeline faults/{number}"), scope)
    faults.sort(key=lambda fault: fault.at_ms)
    return experiment.scenario(seed, faults)


def differences(experiment: Experiment, expected: Outcome, actual: Outcome) -> list[str]:
    """The differences between two runs, one per line."""
    if actual.problem:
        return [actual.problem]
    return [
        line
        for topic, output in experiment.outputs.items()
        for line in output.differences(topic, expected.results[topic], actual.results[topic])
    ]


def _explained(
    experiment: Experiment,
    scenario: Scenario,
    expected: Outcome,
    lines: list[str],
    rerun: str,
) -> str:
    """The report of a seed, with the fewest faults that are necessary."""

    def run(tried: Scenario) -> campaign.Result:
        if tried.work_ms != scenario.work_ms:
            return campaign.Result(tried.seed)  # only faults are removed
        differs = differences(experiment, expected, run_once(experiment, tried))
        return campaign.Result(tried.seed, SAME_RESULT if differs else None)

    smallest = replace(scenario, faults=())
    if run(smallest).passed:
        smallest = shrink(scenario, SAME_RESULT, run, runs_max=SHRINKING_RUNS_MAX)
    outcome = run_once(experiment, smallest)
    remaining = differences(experiment, expected, outcome) or [*lines, ONLY_ONCE]
    return report(scenario, smallest, remaining, outcome.lines, rerun)
