"""`python -m benchmarks broker`: run the measurements, print a table, write JSON."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import broker, clients, scale
from benchmarks.report import Report

RESULTS = Path(__file__).parent / "results"
PARTS: dict[str, Callable[[Report, argparse.Namespace], None]] = {
    "librdkafka": broker.measure,
    "clients": clients.measure,
    "memory": scale.measure_memory,
    "partitions": scale.measure_partitions,
}


def arguments(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suite", choices=["broker"], help="what to measure")
    parser.add_argument(
        "--only", choices=list(PARTS), action="append", help="one part of the suite; repeatable"
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each side; medians count")
    parser.add_argument("--scale", type=float, default=1.0, help="records and bytes, relative")
    parser.add_argument("--json", type=Path, default=RESULTS / "broker.json", help="where to write")
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    """Measure what was asked for."""
    options = arguments(argv)
    report = Report()
    for name in options.only or PARTS:
        report.say(f"== {name}")
        PARTS[name](report, options)
    report.show()
    report.write(options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
