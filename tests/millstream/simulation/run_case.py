"""`PYTHONHASHSEED=0 python -m tests.millstream.simulation.run_case FILE`: simulate a case."""

import sys
from pathlib import Path

from millstream.commands.simulate import run_seed
from millstream.simulation.scenario import Scenario


def main(file: str) -> None:
    """Print what is broken, with the end of the history, and exit with 1; or nothing."""
    result = run_seed(Scenario.from_json(Path(file).read_text()))
    if not result.passed:
        lines = (*result.lines[-60:], f"{result.invariant}: {result.details}")
        sys.exit("\n".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
