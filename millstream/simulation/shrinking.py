"""Shrinking: finds a small scenario that still violates the same invariant."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from millstream.simulation.campaign import Result
from millstream.simulation.scenario import Scenario


def smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Smaller scenarios, the smallest first."""
    faults = scenario.faults
    for half in (faults[len(faults) // 2 :], faults[: len(faults) // 2]):
        if 0 < len(half) < len(faults) - 1:
            yield replace(scenario, faults=half)
    for name in scenario.actors:
        yield scenario.without_actor(name)
    for number in range(len(faults)):
        yield scenario.without_fault(number)
    last_ms = max((fault.at_ms + fault.for_ms for fault in faults), default=0)
    for work_ms in (scenario.work_ms // 4, scenario.work_ms // 2, last_ms):
        if work_ms < scenario.work_ms and work_ms >= last_ms:
            yield replace(scenario, work_ms=work_ms)


def shrink(
    scenario: Scenario,
    invariant: str,
    run: Callable[[Scenario], Result],
    *,
    runs_max: int = 200,
    progress: Callable[[Scenario], None] = lambda _: None,
) -> Scenario:
    """Find the smallest scenario, in at most `runs_max` runs."""
    runs = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in smaller(scenario):
            if runs >= runs_max:
                return scenario
            runs += 1
            if run(candidate).invariant == invariant:
                scenario, is_smaller = candidate, True
                progress(scenario)
                break
    return scenario
