"""Cases on Spark: many at a time; each query of each case is one of several jobs.

    a group of cases -> the first query of each -> one streaming query -> results of all
                     -> the second query of each, where there is one   -> ...

In one round each case gets its next records, and the next round begins when all are processed. A
case whose task fails is identified by its name in Spark's error; the others run again without it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest

from sql.backends.spark.job import Job
from sql.plan import (
    ForeignKeyJoin,
    PlanNode,
    Scan,
    Sink,
    StreamJoin,
    StreamTableJoin,
    TableJoin,
    topics_read,
)
from sql.planner import plan_to_json
from sql.testing.cases import Case, CaseKind
from sql.testing.engine import BuiltQuery, TestEngine
from sql.testing.failures import CaseFailed
from sql.testing.query_cases import (
    PROCESSING,
    check_failure,
    check_results,
    encoded_inputs,
    executed,
    phase_of_failure,
    records_for,
)
from sql.testing.query_runs import TopicRecord
from sql.testing.results import CaseResult, Status
from sql.testing.running import TestFunctions, functions_with, outcome, quiet
from sql.testing.served_registry import topic_prefix
from sql.testing.spark_environment import SparkEnvironment, spark_environment

GROUP = 150  # a batch takes seconds, a case in it milliseconds
ATTEMPTS = 3  # Spark fails a query if a process starts too slowly on a busy machine
UNSUPPORTED = {
    CaseKind.SCRIPT: "scripts interleave all of their queries: only the native engine runs them",
    CaseKind.REST: "requests need a server: only the native engine runs them",
}
FAILED_TASK = re.compile(r'task \d+_\d+ of "([^"/]+)" failed: (.*)')

Fed = tuple[str, TopicRecord]  # a topic, and a record for it


class GroupFailed(Exception):
    """Spark failed a group of cases; `name` is the case that caused it, if known."""

    def __init__(self, message: str, name: str | None = None) -> None:
        super().__init__(message)
        self.name = name


@dataclass(slots=True)
class CaseRun:
    """A case whose statements were executed, and whose queries run on Spark one by one."""

    case: Case
    engine: TestEngine
    queries: list[BuiltQuery]
    given: list[Fed]
    internal: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of its jobs

    def result(self) -> CaseResult:
        """Its result, after all queries have run."""
        return outcome(self.case, lambda: check_results(self.engine, self.case.data, self.internal))

    def failed(self, message: str) -> CaseResult:
        """Its result if a task fails."""
        return outcome(self.case, lambda: check_failure(self.case.data, CaseFailed(message)))


@dataclass(frozen=True, slots=True)
class StageQuery:
    """One query of a case, on separate topics."""

    run: CaseRun
    name: str
    job: Job
    sink: str  # without the prefix
    rounds: list[list[Fed]]  # with it
    read: frozenset[str]  # the topics that it reads, with the prefix, including internal ones


def run_cases_on_spark(
    cases: Sequence[Case], *, functions: str | None = None, jobs: int | None = None
) -> Iterator[CaseResult]:
    """The results of cases, in their order; see run_cases."""
    known = functions_with(functions)
    places = () if functions is None else (functions,)
    with quiet(), spark_environment(jobs) as environment:
        running = SparkCases(environment, known, places)
        for start in range(0, len(cases), GROUP):
            yield from running.results(cases[start : start + GROUP])


class SparkCases:
    """Runs groups of cases."""

    def __init__(
        self, environment: SparkEnvironment, functions: TestFunctions, places: tuple[str, ...]
    ) -> None:
        """`places` are the modules of functions that are not built in, for workers."""
        self._environment = environment
        self._functions = functions
        self._places = places

    def results(self, cases: Sequence[Case]) -> list[CaseResult]:
        """The results of a group of cases, in their order."""
        begun = [self._begun(case) for case in cases]
        runs = [each for each in begun if isinstance(each, CaseRun)]
        together = [each for each in runs if phase_of_failure(each.case.data) != PROCESSING]
        ended = {id(run): result for run, result in self._ended(together)}
        for run in runs:
            if id(run) not in ended:  # a failure must not affect other cases
                ended[id(run)] = next(self._ended([run]))[1]
        return [ended[id(each)] if isinstance(each, CaseRun) else each for each in begun]

    def _begun(self, case: Case) -> CaseRun | CaseResult:
        """A case after its statements; or its result, if there are no queries."""
        if case.kind is not CaseKind.QUERY:
            return CaseResult(case.id, Status.UNSUPPORTED, UNSUPPORTED[case.kind])
        runs: list[CaseRun] = []

        def begin() -> None:
            self._functions.before_case()
            engine = executed(case, self._functions.registry)
            if engine is not None:
                given = encoded_inputs(engine, case.data)
                for topic, record in given:
                    engine.append(topic, record)
                runs.append(CaseRun(case, engine, list(engine.queries.values()), given))

        result = outcome(case, begin)
        return runs[0] if runs else result

    def _ended(
        self, runs: Sequence[CaseRun], attempts: int = ATTEMPTS
    ) -> Iterator[tuple[CaseRun, CaseResult]]:
        """Runs with their results; if Spark fails, all but the failed case run again."""
        try:
            self._stages(runs)
        except GroupFailed as failure:
            blamed = next((run for run in runs if failure.name in run.names), None)
            if blamed is None and attempts > 1:
                yield from self._again(runs, attempts - 1)
            elif blamed is None and len(runs) > 1:
                half = len(runs) // 2
                yield from self._again(runs[:half])
                yield from self._again(runs[half:])
            else:
                blamed = blamed or runs[0]
                yield blamed, blamed.failed(str(failure))
                yield from self._again([run for run in runs if run is not blamed])
            return
        for run in runs:
            yield run, run.result()

    def _again(
        self, runs: Sequence[CaseRun], attempts: int = ATTEMPTS
    ) -> Iterator[tuple[CaseRun, CaseResult]]:
        """The same cases from the beginning, with new topics."""
        for run in runs:
            begun = self._begun(run.case)
            assert isinstance(begun, CaseRun), "statements succeed the second time, too"
            run.engine, run.queries, run.given = begun.engine, begun.queries, begun.given
            run.internal, run.names = [], []
        if runs:
            yield from self._ended(runs, attempts)

    # --- stages -----------------------------------------------------------------------------

    def _stages(self, runs: Sequence[CaseRun]) -> None:
        """Run the first query of all cases, then the second, and so on."""
        for place in range(max((len(run.queries) for run in runs), default=0)):
            stage = [self._query(run, place) for run in runs if place < len(run.queries)]
            names = [each.name for each in stage]
            try:
                # A query without input has no output.
                self._run([each for each in stage if each.rounds])
            finally:
                for name in names:
                    self._environment.forget(name)

    def _query(self, run: CaseRun, place: int) -> StageQuery:
        from sql.backends.spark.task_work import work_of

        query = run.queries[place]
        name = self._environment.new_name("c")
        run.names.append(name)
        prefix = topic_prefix(name)
        sources = topics_read(query.plan)
        job = Job(
            name,
            plan_to_json(_prefixed(query.plan, prefix)),
            {f"{prefix}{topic}": 1 for topic in (*sources, query.plan.topic)},
            dict(query.settings),
            self._environment.serve(name, run.engine.registry),
            self._places,
        )
        try:
            work = work_of(job.to_text())
        except Exception as error:  # a plan that cannot be lowered only fails its own case
            raise GroupFailed(f"{type(error).__name__}: {error}", name) from error
        run.internal.extend(work.topology.repartition_topics)
        fed = {topic for topic, _ in run.given}
        records = list(records_for(run.engine, sources, fed, run.given))
        rounds = [
            [(f"{prefix}{topic}", record) for topic, record in each]
            for each in _rounds(query.plan, records)
        ]
        return StageQuery(run, name, job, query.plan.topic, rounds, work.layout.subscription())

    def _run(self, stage: Sequence[StageQuery]) -> None:
        """Feed all queries of a stage, round by round, and collect their output."""
        if not stage:
            return
        environment = self._environment
        environment.create({topic for each in stage for topic in each.job.partition_counts})
        read = {topic for each in stage for topic in each.read}
        query = environment.query([each.job for each in stage])
        try:
            for number, records in enumerate(zip_longest(*(each.rounds for each in stage))):
                environment.produce(record for part in records if part for record in part)
                if not number:
                    query.start()
                environment.process_all(query, read)
        except Exception as error:  # any error of Spark
            raise _group_failed(error) from error
        finally:
            query.stop()
            query.discard_state()
        written = environment.records({f"{topic_prefix(each.name)}{each.sink}" for each in stage})
        for each in stage:
            for record in written[f"{topic_prefix(each.name)}{each.sink}"]:
                each.run.engine.append(each.sink, record)
        environment.delete_all(tuple(topic_prefix(each.name) for each in stage))


def _group_failed(error: Exception) -> GroupFailed:
    found = FAILED_TASK.search(str(error))
    return GroupFailed(str(error)) if found is None else GroupFailed(found[2], found[1])


def _rounds(plan: Sink, records: Sequence[Fed]) -> Iterator[list[Fed]]:
    """Groups of records that may be processed in one batch: consecutive ones of one topic.

    If a query reads its own output, each record is a separate group.
    """
    if _meets_itself(plan):
        yield from ([each] for each in records)
    else:
        for _, part in groupby(records, key=lambda each: each[0]):
            yield list(part)


def _meets_itself(step: PlanNode) -> bool:
    match step:
        case ForeignKeyJoin():
            return True
        case StreamJoin() | StreamTableJoin() | TableJoin():
            both = set(topics_read(step.left)) & set(topics_read(step.right))
            return bool(both) or _meets_itself(step.left) or _meets_itself(step.right)
        case Scan():
            return False
        case _:
            return _meets_itself(step.input)


def _prefixed(step: PlanNode, prefix: str) -> PlanNode:
    """The same plan with a prefix for topics."""
    match step:
        case Scan():
            return replace(step, topic=f"{prefix}{step.topic}")
        case Sink():
            return replace(step, topic=f"{prefix}{step.topic}", input=_prefixed(step.input, prefix))
        case StreamJoin() | StreamTableJoin() | TableJoin() | ForeignKeyJoin():
            left, right = _prefixed(step.left, prefix), _prefixed(step.right, prefix)
            return replace(step, left=left, right=right)
        case _:
            return replace(step, input=_prefixed(step.input, prefix))
