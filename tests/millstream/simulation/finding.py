"""In which seed each mutation is found.

    python -m tests.millstream.simulation.finding [NAME [SEEDS]]    look for them
    python -m tests.millstream.simulation.finding --known 1/4 [30]  a quarter of the known ones,
                                                                    each in so many seeds at most

Only seeds count that have the actors and faults without which the mutation cannot show.
"""

import json
import os
import sys
from collections.abc import Iterator
from functools import partial
from itertools import chain, count, islice

from millstream.commands.simulate import run_seed
from millstream.simulation.campaign import Result, run_all
from millstream.simulation.scenario import Scenario
from tests.millstream.simulation.mutation import Mutation, all_mutations

SEEDS_MAX = 100
MINUTES = 4.0


def scenarios(mutation: Mutation) -> Iterator[Scenario]:
    """Scenarios in which a mutation can show."""
    for seed in count(1):
        scenario = mutation.scenario(seed, MINUTES)
        if mutation.can_show_in(scenario):
            yield scenario


def run_with(mutation: Mutation, scenario: Scenario) -> Result:
    """Simulate with the mutation on."""
    with mutation.applied():
        return run_seed(scenario)


def find(mutation: Mutation, seeds_max: int = SEEDS_MAX) -> tuple[int, Result] | None:
    """How many seeds it took, and what was found; None when it was not."""
    tried = islice(scenarios(mutation), seeds_max)
    results = run_all(tried, partial(run_with, mutation), jobs=1)
    for number, result in enumerate(results, start=1):
        if not result.passed:
            return number, result
    return None


def known_scenario(mutation: Mutation) -> Scenario:
    """The one that finds a mutation."""
    assert mutation.found_in is not None
    return mutation.scenario(mutation.found_in, MINUTES)


def part_of_known(part: int, parts: int) -> Iterator[Mutation]:
    """Some of the mutations that are known to be found; those of one scenario are together."""
    known = [each for each in all_mutations() if each.found_in is not None]
    places: dict[str, int] = {}
    for mutation in known:
        place = places.setdefault(known_scenario(mutation).to_json(), len(places))
        if place % parts == part - 1:
            yield mutation


def run_known(part: int, parts: int, seeds_max: int) -> None:
    """Look for some of the mutations that are known to be found, in their known seeds first.

    Every change of the product moves its histories a little, so that another seed may find it.
    """
    passes: dict[str, bool] = {}
    for mutation in part_of_known(part, parts):
        found = None
        others = (each for each in scenarios(mutation) if each.seed != mutation.found_in)
        for scenario in islice(chain([known_scenario(mutation)], others), seeds_max):
            key = scenario.to_json()
            if key not in passes:
                (result,) = run_all([scenario], run_seed, jobs=1)
                passes[key] = result.passed
            (result,) = run_all([scenario], partial(run_with, mutation), jobs=1)
            if passes[key] and not result.passed:
                found = result
                break
        seed = None if found is None else found.seed
        invariant = None if found is None else found.invariant
        _print(name=mutation.name, seed=seed, invariant=invariant, known=mutation.found_in)


def _print(**found: object) -> None:
    sys.stdout.write(json.dumps(found) + "\n")


def main(wanted: str = "", seeds_max: str = str(SEEDS_MAX), known_max: str = "30") -> None:
    """Look for all of them, or those whose name has some words."""
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets must not depend on chance
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
    if wanted == "--known":
        part, _, parts = seeds_max.partition("/")
        run_known(int(part), int(parts), int(known_max))
        return
    for mutation in all_mutations():
        if wanted in mutation.name:
            found = find(mutation, int(seeds_max))
            if found is None:
                shown = f"not found in {seeds_max} seeds"
            else:
                number, result = found
                shown = f"{number} seeds (seed {result.seed}): {result.invariant}: {result.details}"
            sys.stdout.write(f"{mutation.name}: {shown}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
