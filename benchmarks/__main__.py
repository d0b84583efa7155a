"""`python -m benchmarks broker|connect|formats|spark|sql|streams|trees`: run benchmarks."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import broker, clients, scale
from benchmarks.connect import files as connect_files
from benchmarks.connect import jdbc as connect_jdbc
from benchmarks.formats import comparison as formats_comparison
from benchmarks.formats import registry_restart, rows
from benchmarks.report import Report
from benchmarks.spark import comparison as spark_comparison
from benchmarks.sql import comparison as sql_comparison
from benchmarks.sql import many, starting
from benchmarks.streams import comparison, rebalance, state
from benchmarks.trees import comparison as trees_comparison

RESULTS = Path(__file__).parent / "results"
QUERIES_MAX = 200
SUITES: dict[str, dict[str, Callable[[Report, argparse.Namespace], None]]] = {
    "broker": {
        "librdkafka": broker.measure,
        "clients": clients.measure,
        "memory": scale.measure_memory,
        "partitions": scale.measure_partitions,
    },
    "connect": {
        "jdbc": connect_jdbc.measure_jdbc,
        "lines": connect_files.measure_lines,
        "files": connect_files.measure_rows,
    },
    "formats": {
        "confluent": formats_comparison.measure,
        "rows": rows.measure,
        "registry": registry_restart.measure,
    },
    "spark": {"queries": spark_comparison.measure},
    "sql": {
        "filter": sql_comparison.measure_filter,
        "tumbling": sql_comparison.measure_tumbling,
        "start": starting.measure_start,
        "many": many.measure_many,
    },
    "streams": {
        "filter": comparison.measure_filter,
        "tumbling": comparison.measure_tumbling,
        "join": comparison.measure_join,
        "memory": state.measure_memory,
        "restore": state.measure_restore,
        "rebalance": rebalance.measure_rebalance,
    },
    "trees": {
        "broker": trees_comparison.measure_broker,
        "streams-filter": trees_comparison.measure_streams_filter,
        "streams-tumbling": trees_comparison.measure_streams_tumbling,
        "sql-filter": trees_comparison.measure_sql_filter,
        "sql-tumbling": trees_comparison.measure_sql_tumbling,
        "calls": trees_comparison.measure_calls,
    },
}


def arguments(argv: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suite", choices=list(SUITES), help="what to measure")
    parser.add_argument("--only", action="append", help="one part of the suite; can be repeated")
    parser.add_argument(
        "--rounds", type=int, default=3, help="rounds per side; the median is reported"
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="broker: factor for the number of records"
    )
    parser.add_argument(
        "--records",
        type=int,
        default=1_000_000,
        help="streams, sql, spark: number of records; connect uses a part of it",
    )
    parser.add_argument(
        "--queries", type=int, default=20, help="sql: number of concurrent queries, up to 200"
    )
    parser.add_argument("--tree", type=Path, help="trees: another built checkout to compare with")
    parser.add_argument(
        "--json", type=Path, help="file for the results; default: benchmarks/results/SUITE.json"
    )
    options = parser.parse_args(argv)
    if not 1 <= options.queries <= QUERIES_MAX:
        parser.error(f"--queries is between 1 and {QUERIES_MAX}, not {options.queries}")
    if options.suite == "trees" and not options.tree:
        parser.error("trees needs --tree: another checkout, built, to compare with")
    parts = SUITES[options.suite]
    for name in options.only or ():
        if name not in parts:
            parser.error(
                f'"{name}" is not a part of "{options.suite}"; parts are {", ".join(parts)}'
            )
    return options


def main(argv: list[str]) -> int:
    """Run the chosen benchmarks."""
    options = arguments(argv)
    report = Report(title=f"Millstream {options.suite}")
    parts = SUITES[options.suite]
    for name in options.only or parts:
        report.say(f"== {name}")
        parts[name](report, options)
    report.show()
    report.write(options.json or RESULTS / f"{options.suite}.json")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
