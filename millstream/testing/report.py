"""Reports: explain why a test has failed."""

from collections.abc import Iterable, Sequence
from textwrap import indent

from millstream.simulation.scenario import Fault, Scenario
from millstream.testing.faults import InputFault

DIFFERENCES_SHOWN = 10
FAULTS_SHOWN = 20
EVENTS_SHOWN = 25
EVENT_LENGTH_MAX = 160
WITHOUT_FAULTS = (
    "none: the result differs without any fault. It may depend on state outside of stores, on the "
    "real time or random numbers, or on the order of records of different partitions"
)

KINDS = {
    "kill": "{target} is killed, and restarted after {for_ms} ms",
    "stop": "{target} is stopped, and restarted after {for_ms} ms",
    "end in a write": "{target} dies while it writes to its disk, and is restarted",
    "power loss": "{target} loses power, and is restarted after {for_ms} ms",
    "disconnect": "connections of {target} break for {for_ms} ms",
    "partition": "{target} is cut off from the network for {for_ms} ms",
    "slow network": "the network is slow for {for_ms} ms",
}
SENDS = " sends "


class FailedRun(AssertionError):
    """The pipeline fails in the run without faults."""


class DifferentResult(AssertionError):
    """With faults, the pipeline has a different result than without."""


def report(
    scenario: Scenario,
    smallest: Scenario,
    differences: Sequence[str],
    events: Sequence[str],
    rerun: str,
) -> str:
    """Format the differences, the faults of the seed, the necessary ones, and the last events."""
    faults = [described(fault) for fault in scenario.faults]
    necessary = [described(fault) for fault in smallest.faults]
    parts = [
        f"seed {scenario.seed}: the result is not that of the run without faults",
        *_indented(differences, DIFFERENCES_SHOWN),
        "",
        "faults of this seed (times count from the first input record):",
        *_indented(faults, FAULTS_SHOWN),
        "faults that are enough for a difference:",
        *_indented(necessary or [WITHOUT_FAULTS], FAULTS_SHOWN),
        "",
        f"to run this seed again: {rerun.format(seed=scenario.seed)}",
        "",
        "what happened with these faults, the last events (virtual seconds, process, event):",
        *_indented(_important(events)[-EVENTS_SHOWN:]),
    ]
    return "\n".join(parts)


def described(fault: Fault) -> str:
    """Describe a fault."""
    if isinstance(fault, InputFault):
        return str(fault)
    words = KINDS[fault.kind].format(target=fault.target, for_ms=fault.for_ms)
    return f"{fault.at_ms / 1000:.3f} s: {words}"


def _important(events: Iterable[str]) -> list[str]:
    """Omit INFO logs, and combine consecutive lines about sent records."""
    lines: list[str] = []
    for event in events:
        line = event.partition("\n")[0][:EVENT_LENGTH_MAX]
        if " logs INFO: " in line:
            continue
        if lines and SENDS in line and SENDS in lines[-1]:
            first, _, _ = lines[-1].partition(" ... ")
            lines[-1] = f"{first} ... {line.split()[-1]}"
        else:
            lines.append(line)
    return lines


def _indented(lines: Iterable[str], count_max: int | None = None) -> list[str]:
    indented = [indent(line, "  ") for line in lines]
    if count_max is not None and len(indented) > count_max:
        indented[count_max:] = [f"  ... and {len(indented) - count_max} more"]
    return indented
