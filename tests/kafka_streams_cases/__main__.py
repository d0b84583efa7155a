"""`python -m tests.kafka_streams_cases PATH… [--json] [--filter REGEX] [--quirks]`.

The exit code is 1 when a case that is no quirk fails.
"""

import logging
import sys
from pathlib import Path

import click

from tests.kafka_streams_cases.cases import read_cases
from tests.kafka_streams_cases.on_driver import open_driver
from tests.kafka_streams_cases.report import as_json, as_text
from tests.kafka_streams_cases.run import run_case


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--json", "json_output", is_flag=True, help="Print one JSON object.")
@click.option("--filter", "pattern", default="", help="Only cases whose id has this pattern.")
@click.option("--quirks", is_flag=True, help="Also run cases that show a quirk of Kafka.")
def main(paths: tuple[Path, ...], json_output: bool, pattern: str, quirks: bool) -> None:
    """Run case files, or folders of them, on the TopologyTestDriver."""
    # Cases that must fail log why; the report says it better.
    logging.disable(logging.CRITICAL)
    outcomes = [
        run_case(case, open_driver)
        for case in read_cases(list(paths), pattern=pattern, quirks=quirks)
    ]
    click.echo(as_json(outcomes) if json_output else as_text(outcomes))
    sys.exit(1 if any(not outcome.passed and not outcome.quirk for outcome in outcomes) else 0)


if __name__ == "__main__":
    main()
