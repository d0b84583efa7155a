"""Shrinking: what does not matter for a failure is left out of its scenario."""

import json

from millstream.simulation.campaign import Result
from millstream.simulation.scenario import Fault, Scenario, from_json, scenario_of, to_json
from millstream.simulation.shrinking import shrink


def test_a_scenario_follows_from_its_seed() -> None:
    assert scenario_of(7) == scenario_of(7)
    assert len({str(scenario_of(seed)) for seed in range(100)}) == 100


def test_a_scenario_can_be_kept_as_a_document() -> None:
    for seed in range(20):
        scenario = scenario_of(seed)
        assert from_json(json.loads(json.dumps(to_json(scenario)))) == scenario


def test_what_does_not_matter_is_left_out() -> None:
    faults = tuple(Fault(at, kind) for at, kind in enumerate(["kill", "stop", "kill", "partition"]))
    scenario = Scenario(1, 100_000, actors=("producer 0", "topics", "producer 1"), faults=faults)

    def run(tried: Scenario) -> Result:
        breaks = "topics" in tried.actors and any(each.at_ms == 2 for each in tried.faults)
        return Result(tried.seed, "the invariant" if breaks else None)

    found = shrink(scenario, "the invariant", run)
    assert found.actors == ("topics",)
    assert found.faults == (Fault(2, "kill"),)
    assert found.work_ms < 100_000
