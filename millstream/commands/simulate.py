"""`millstream simulate`: run the platform with faults, on virtual time, from seeds."""

import os
import sys
from collections.abc import Iterator

import click

from millstream.commands.options import json_option
from millstream.output import Output
from millstream.simulation.campaign import Result, run_all, warm_up
from millstream.simulation.scenario import Scenario, scenario_of
from millstream.simulation.shrinking import shrink
from millstream.simulation.simulated_platform import run_scenario

LINES_SHOWN = 80
HASH_SEED = "PYTHONHASHSEED"


@click.command()
@click.option("--seed", type=int, help="Simulate this seed and show its history.")
@click.option("--campaign", type=int, help="Simulate this many seeds, starting with --first.")
@click.option(
    "--first", type=int, default=1, show_default=True, help="The first seed of the campaign."
)
@click.option("--hours", type=float, help="The number of virtual hours with faults per seed.")
@click.option(
    "--jobs", type=int, default=os.cpu_count, help="The number of processes of a campaign."
)
@click.option(
    "--lines",
    type=int,
    default=LINES_SHOWN,
    show_default=True,
    help="The number of lines of the history to show.",
)
@json_option
def simulate(  # noqa: PLR0913 - the options of the command
    seed: int | None,
    campaign: int | None,
    first: int,
    hours: float | None,
    jobs: int,
    lines: int,
    output: Output,
) -> None:
    """Run the platform on virtual time, with faults that are determined by a seed.

    The simulation has a broker, clients, streams applications, SQL servers and a schema registry.

    The same seed produces the same history on any machine. When an invariant is violated, the
    command looks for the smallest scenario that still violates it and prints its history; exit code
    1.
    """
    _fix_hashes()
    minutes = 4.0 if hours is None else hours * 60
    if campaign is None:
        failed = _simulate_seed(
            scenario_of(1 if seed is None else seed, minutes=minutes), lines, output
        )
    else:
        seeds = range(first, first + campaign)
        failed = _simulate_campaign(
            (scenario_of(each, minutes=minutes) for each in seeds), campaign, jobs, output
        )
    if failed:
        sys.exit(1)


def _fix_hashes() -> None:
    """Restart Python with fixed hashes, because the order of sets must not be random."""
    if os.environ.get(HASH_SEED) != "0":
        environment = {**os.environ, HASH_SEED: "0"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


def run_seed(scenario: Scenario) -> Result:
    """Simulate a scenario in this process."""
    outcome = run_scenario(scenario)
    violation = outcome.violation
    return Result(
        scenario.seed,
        None if violation is None else violation.invariant,
        "" if violation is None else violation.details,
        outcome.digest,
        outcome.virtual_ms,
        outcome.steps,
        lines=tuple(outcome.lines),
    )


def _run_isolated(scenario: Scenario) -> Result:
    (result,) = run_all([scenario], run_seed, jobs=1)
    return result


def _simulate_seed(scenario: Scenario, lines: int, output: Output) -> bool:
    with output.progress(f"simulating seed {scenario.seed}"):
        result = _run_isolated(scenario)
    if result.invariant is not None:
        with output.progress("looking for a smaller scenario that violates the same invariant"):
            scenario = shrink(scenario, result.invariant, _run_isolated)
            result = _run_isolated(scenario)
    summary = {
        "seed": result.seed,
        "invariant": result.invariant,
        "details": result.details,
        "actors": list(scenario.actors),
        "settings": dict(scenario.settings),
        "faults": [str(fault) for fault in scenario.faults],
        "virtual_seconds": result.virtual_ms / 1000,
        "steps": result.steps,
        "real_seconds": round(result.seconds, 3),
        "digest": result.digest,
    }
    if output.as_json:
        output.record({**summary, "history": list(result.lines[-lines:])})
    else:
        for line in result.lines[-lines:]:
            output.line({}, line)
        output.record(summary, title="passed" if result.passed else "FAILED")
    return not result.passed


def _simulate_campaign(
    scenarios: Iterator[Scenario], count: int, jobs: int, output: Output
) -> bool:
    failed: list[Result] = []
    virtual_ms = done = 0
    seconds = 0.0
    with output.counting(f"simulating {count} seeds", count) as advance:
        warm_up(run_seed)
        for result in run_all(scenarios, run_seed, jobs=jobs):
            done += 1
            virtual_ms += result.virtual_ms
            seconds += result.seconds
            advance(f"{len(failed)} failed, {virtual_ms / 3_600_000:.1f} virtual hours")
            if not result.passed:
                failed.append(result)
                failure = {"seed": result.seed, "invariant": result.invariant}
                text = f"seed {result.seed}: {result.invariant}: {result.details}"
                output.line({**failure, "details": result.details}, text)
    output.record(
        {
            "seeds": done,
            "failed": len(failed),
            "virtual_hours": round(virtual_ms / 3_600_000, 1),
            "seconds_a_seed": round(seconds / max(1, done), 3),
        }
    )
    return bool(failed)
