"""Topologies of the cases with random inputs: what must not change a result, does not.

A restart at any moment, an optimised topology, and results held back until commits are compared
with the plain run of the same inputs.
"""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.kafka_streams_cases.build import build_case
from tests.kafka_streams_cases.cases import read_cases
from tests.kafka_streams_cases.compare import Row
from tests.kafka_streams_cases.harness import raw_input, row
from tests.kafka_streams_cases.on_driver import DriverHarness

Case = dict[str, Any]
Outputs = dict[str, list[Row]]

RECORDS = 40
COMMITS_AT_THE_END = 4  # so that what is held back behind repartition topics comes out, too
# What depends on when a task was opened, or stops at values that were not meant for it.
LEFT_OUT = ("punctuate", "fail", "mul", "timestamp_extractor")


def topologies(of: str = "") -> list[Case]:
    """One case for each topology; those that fail on purpose or need a clock are left out."""
    found: dict[str, Case] = {}
    for case in read_cases([Path(__file__).parents[1] / "cases" / "streams"], pattern=of):
        text = json.dumps(case["topology"])
        if "error" not in case and not any(word in text for word in LEFT_OUT):
            found.setdefault(text, case)
    return list(found.values())


def random_inputs(
    case: Case, random: Random, *, count: int = RECORDS, deletions: float = 0.2
) -> list[dict[str, Any]]:
    """Records made of the keys and values of the case's own, in and out of order."""
    own = [action for action in case["script"] if "in" in action and "value" in action]
    if not own:
        return []
    span = max(10, *(action["ts"] for action in own))
    now = 0
    inputs = []
    for _ in range(count):
        like = random.choice(own)
        values = [action["value"] for action in own if action["in"] == like["in"]]
        now += random.choice((0, 0, 1, span // 10, span))
        inputs.append(
            {
                "in": like["in"],
                "key": random.choice(own)["key"] if random.random() < 0.9 else None,
                "value": None if random.random() < deletions else random.choice(values),
                "ts": max(0, now - random.choice((0, 0, 0, 1, span // 3))),
            }
        )
    return inputs


def play(
    case: Case,
    inputs: list[dict[str, Any]],
    before_record: Callable[[DriverHarness, int], None] = lambda harness, number: None,
    **config: Any,
) -> Outputs:
    """All that a topology writes for some inputs."""
    case = {**case, "config": {**case.get("config", {}), "commit": "each", **config}}
    built = build_case(case)
    harness = DriverHarness(built, case["config"])
    try:
        for number, action in enumerate(inputs):
            before_record(harness, number)
            harness.pipe([raw_input(action, built.sources[action["in"]])])
        for _ in range(COMMITS_AT_THE_END):
            harness.commit()
        return {
            topic: [row(record, flow) for record in harness.read(topic)]
            for topic, flow in built.sinks.items()
        }
    finally:
        harness.close()


def last_values(outputs: Outputs) -> dict[tuple[str, str], object]:
    """The last value of each key of each topic; a key that is gone need never have been told."""
    last = {
        (topic, repr(record["key"])): record["value"]
        for topic, records in outputs.items()
        for record in records
    }
    return {name: value for name, value in last.items() if value is not None}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_restart_at_any_moment_changes_no_result(seed: int) -> None:
    """State, stream times and positions are those of the last commit."""
    random = Random(seed)
    for case in topologies():
        inputs = random_inputs(case, random)
        moments = {random.randrange(RECORDS) for _ in range(5)}

        def restart(harness: DriverHarness, number: int, at: set[int] = moments) -> None:
            if number in at:
                harness.restart()

        assert play(case, inputs, restart) == play(case, inputs), case["id"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_an_optimised_topology_gives_the_same_results(seed: int) -> None:
    """Fewer stores and topics, the same records."""
    random = Random(seed)
    for case in topologies():
        inputs = random_inputs(case, random)
        plain = play(case, inputs, optimize=False)
        assert play(case, inputs, optimize=True) == plain, case["id"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_joins_of_tables_end_the_same_when_results_are_held_back(seed: int) -> None:
    """However many changes come between two commits."""
    random = Random(seed)
    for case in topologies("(table_table|foreign_key)_joins/(left_|outer_)?join"):
        # Few records and many deletions, so that rows are often deleted on both sides at the end.
        inputs = random_inputs(case, random, count=10, deletions=0.4)
        moments = {random.randrange(len(inputs)) for _ in range(2)}

        def commit(harness: DriverHarness, number: int, at: set[int] = moments) -> None:
            if number in at:
                harness.commit()

        held_back = play(case, inputs, commit, cache_bytes=1_000_000, commit="manual")
        plain = play(case, inputs, cache_bytes=0)
        assert last_values(held_back) == last_values(plain), case["id"]
