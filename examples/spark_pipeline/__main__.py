"""`python -m examples.spark_pipeline --engine native|spark|both`: run the pipeline, show results.

Without --bootstrap, each run has its own broker in this process. With it, the topics of the
pipeline are created on that cluster; they must not exist yet.
"""

import argparse
import logging
import sys
import time
from contextlib import nullcontext
from datetime import date

from rich.console import Console
from rich.table import Table

from examples.spark_pipeline.events import EventGenerator, write_events, yesterday
from examples.spark_pipeline.results import Result, differences, read_results
from examples.spark_pipeline.running import own_broker, run_pipeline

ENGINES = ("native", "spark")
SETTINGS = {"ksql.query.retry.backoff.initial.ms": 1_000}


def main(argv: list[str]) -> int:
    """Run the pipeline; returns 1 if the two engines differ."""
    options = arguments(argv)
    # Some views are intentionally late: do not log each of them.
    logging.getLogger("streams.runtime").setLevel(logging.ERROR)
    engines = ENGINES if options.engine == "both" else (options.engine,)
    runs = [run(engine, options) for engine in engines]
    if len(runs) == 1:
        return 0
    found = differences(*runs)
    for name, what in found.items():
        print(f"{name} differs: {what}")
    if not found:
        print("both engines have the same results")
    return 1 if found else 0


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.spark_pipeline", description=__doc__)
    parser.add_argument("--engine", choices=(*ENGINES, "both"), default="native")
    parser.add_argument("--events", type=int, default=100_000, help="orders and views")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--day", type=date.fromisoformat, default=yesterday(), help="yesterday")
    parser.add_argument("--bootstrap", help="a cluster; default: an embedded broker")
    parser.add_argument("--master", default="auto", help="Spark's master or sc://host:port")
    parser.add_argument("--limit", type=float, default=3_600, help="time limit in seconds")
    options = parser.parse_args(argv)
    if options.bootstrap and options.engine == "both":
        parser.error("two engines cannot write to the same topics: omit --bootstrap")
    return options


def run(engine: str, options: argparse.Namespace) -> list[Result]:
    """One engine, from events to results."""
    generator = EventGenerator(options.events, options.seed, options.day)
    where = nullcontext(options.bootstrap) if options.bootstrap else own_broker()
    with where as bootstrap:
        began = time.monotonic()
        write_events(bootstrap, generator)
        written_s = time.monotonic() - began
        settings: dict[str, object] = {**SETTINGS, "engine": engine, "spark.master": options.master}
        took_s = run_pipeline(bootstrap, settings, limit_s=options.limit)
        results = read_results(bootstrap)
    print(f"{options.events:,} events of {generator.day} were written in {written_s:.1f} s,")
    print(f"and all queries had processed them after {took_s:.1f} s")
    show(engine, results)
    return results


def show(engine: str, results: list[Result]) -> None:
    """Print the results."""
    table = Table(title=f"results of the {engine} engine")
    for column in ("result", "is a", "rows", "checksum"):
        table.add_column(column, justify="right" if column == "rows" else "left")
    for each in results:
        kind = "table" if each.is_table else "stream"
        table.add_row(each.name, kind, f"{each.rows:,}", each.checksum)
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
