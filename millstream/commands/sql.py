"""`millstream sql`: the SQL shell; `millstream sql test` runs test cases."""

import sys
from pathlib import Path

import click

from millstream.commands.options import search_working_directory
from millstream.commands.sql_server import server_command
from millstream.commands.sql_shell import ShellByDefault, shell_command


@click.group(cls=ShellByDefault)
def sql() -> None:
    """Run SQL; without a command, start the shell: `sql [URL]` is `sql shell [URL]`."""


sql.add_command(shell_command)
sql.add_command(server_command)


@sql.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--only", metavar="GLOB", help="Run only cases whose id matches this pattern.")
@click.option(
    "--engine", type=click.Choice(["native", "spark"]), default="native", show_default=True
)
@click.option(
    "--functions", metavar="MODULE", help="A Python module with additional SQL functions."
)
@click.option(
    "--scripts",
    metavar="FOLDER",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="An additional directory for the files of RUN SCRIPT, besides that of the cases.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="The number of processes, or of parallel Spark tasks. Default: one per CPU.",
)
def test(  # noqa: PLR0913 - one argument per option
    paths: tuple[Path, ...],
    as_json: bool,
    only: str | None,
    engine: str,
    functions: str | None,
    scripts: tuple[Path, ...],
    jobs: int | None,
) -> None:
    """Run test cases: JSON files, or directories of them.

    A case has statements, input records and the expected output records.
    """
    from sql.testing.cases import load_cases
    from sql.testing.results import CaseReport
    from sql.testing.running import run_cases
    from sql.testing.spark_cases import run_cases_on_spark

    search_working_directory()
    cases = load_cases(paths, only, scripts=scripts)
    run = run_cases_on_spark if engine == "spark" else run_cases
    running = run(cases, functions=functions, jobs=jobs)
    if sys.stderr.isatty():
        with click.progressbar(running, len(cases), "cases", file=sys.stderr) as shown:
            report = CaseReport(tuple(shown))
    else:
        report = CaseReport(tuple(running))
    if as_json:
        click.echo(report.as_json())
    else:
        for line in report.lines():
            click.echo(line)
    if not report.succeeded:
        sys.exit(1)
