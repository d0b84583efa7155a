"""Each rule keeps results: with it and without it, cases have the same records and names."""

from collections.abc import Sequence
from functools import cache

import pytest

from broker.errors import MillstreamError
from sql.backends.native.steps import StepContext
from sql.backends.native.topology import add_query
from sql.functions.builtin import builtin_functions
from sql.plan import Sink
from sql.rewrite import RULES, Rule
from sql.testing.cases import Case, CaseKind, load_cases
from sql.testing.engine import TestEngine
from sql.testing.query_cases import executed, process
from sql.testing.query_runs import TopicRecord
from sql.testing.running import quiet
from streams.dsl.builder import StreamsBuilder
from tests.sql.test_cases import OWN

SETS: dict[str, tuple[Rule, ...]] = {each.name: (each,) for each in RULES} | {"all": RULES}


@cache
def cases() -> list[Case]:
    """The cases with queries."""
    return [each for each in load_cases([OWN]) if each.kind is CaseKind.QUERY]


def plans(engine: TestEngine) -> list[Sink]:
    return [each.plan for each in engine.queries.values()]


def results(engine: TestEngine, case: Case) -> dict[str, list[TopicRecord]] | str:
    """The records of all topics, byte by byte; the error if one of them fails."""
    try:
        with quiet():
            process(engine, case.data)
    except MillstreamError as error:
        return str(error)
    return {name: topic.records for name, topic in engine.topics.items()}


def names(engine: TestEngine) -> list[tuple[list[str], list[str]]]:
    """The repartition topics and the stores of each query."""
    found = []
    for each in engine.queries.values():
        builder = StreamsBuilder()
        add_query(each.plan, StepContext(builder, engine.registry, settings=dict(each.settings)))
        topology = builder.build()
        found.append((sorted(topology.repartition_topics), sorted(topology.stores)))
    return found


def after(case: Case, rules: Sequence[Rule]) -> TestEngine | None:
    return executed(case, builtin_functions(), rules)


@pytest.mark.slow
@pytest.mark.spread
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SETS)
def test_cases_have_the_same_results_with_a_rule_and_without_it(name: str) -> None:
    changed = 0
    for case in cases():
        plain, rewritten = after(case, ()), after(case, SETS[name])
        if plain is None or rewritten is None:
            assert plain is rewritten, case.id
        elif plans(plain) != plans(rewritten):
            changed += 1
            assert names(rewritten) == names(plain), case.id
            assert results(rewritten, case) == results(plain, case), case.id
    assert changed >= LEAST[name], "the rule is tested"


LEAST = {"push_filters": 4, "prune_columns": 75, "all": 75}
