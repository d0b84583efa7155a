"""`millstream sql`: the shell, on an engine in this process or on a server."""

import signal
import sys
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from broker.client import admin
from millstream.commands.options import BOOTSTRAP_TIMEOUT_MS, key_values
from millstream.commands.sql_service_id import SETTING, ServiceId, service_id_of
from millstream.commands.sql_spark import engine_options, engine_settings, run_all, wait_for_queries
from millstream.commands.stopping import SIGNALLED, handle_stop_signals
from millstream.settings import DATA_DIRECTORY

if TYPE_CHECKING:
    from sql.engine.engine import Engine
    from sql.shell.session import ShellSession
    from sql.shell.shell import Shell


class ShellByDefault(click.Group):
    """A command group that opens the shell by default."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the name of the shell before arguments that are not a command."""
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["shell", *args]
        return super().parse_args(ctx, args)


@click.command("shell")
@click.argument("url", required=False)
@click.option("--execute", "-e", metavar="STATEMENTS", help="Run these statements and exit.")
@click.option(
    "--file",
    "-f",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Run the statements of a file and exit; with --engine spark, wait while its queries run.",
)
@click.option("--json", "as_json", is_flag=True, help="Print responses and rows as lines of JSON.")
@click.option("--define", "-d", multiple=True, metavar="NAME=VALUE", help="A variable; repeatable.")
@click.option(
    "--set",
    "-s",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="A property, as with SET; repeatable.",
)
@click.option("--query-row-limit", type=click.IntRange(0), help="End queries after this many rows.")
@click.option(
    "--query-timeout", type=click.IntRange(1), help="End queries after this many milliseconds."
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default=DATA_DIRECTORY,
    show_default=True,
    help="The data directory of the engine.",
)
@click.option(
    "--bootstrap",
    "-b",
    envvar="MILLSTREAM_BOOTSTRAP",
    metavar="HOST:PORT,...",
    help="Run the engine on this cluster: Millstream or Kafka.",
)
@click.option(
    "--service-id",
    metavar="ID",
    help="With --bootstrap: the ksql.service.id of the engine, which continues with "
    "the queries and statements of that service. Default: a separate id for "
    "the file or the user; with -e a new one that is removed when the command "
    "ends.",
)
@click.option(
    "--functions",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help="A Python file with SQL functions for the engine, or a directory of such "
    "files; repeatable.",
)
@click.option("--registry", "-R", metavar="URL", help="With --bootstrap: the schema registry.")
@click.option(
    "--user",
    "-u",
    envvar="MILLSTREAM_SQL_USER",
    metavar="NAME:PASSWORD",
    help="Credentials for a server that requires them; preferably set "
    "$MILLSTREAM_SQL_USER instead.",
)
@engine_options
@click.option(
    "--bounded",
    is_flag=True,
    help="With --engine spark: process all existing records once and exit. The next "
    "run continues from there.",
)
def shell_command(  # noqa: PLR0913 - one argument per option
    url: str | None,
    execute: str | None,
    file: Path | None,
    as_json: bool,
    define: tuple[str, ...],
    properties: tuple[str, ...],
    query_row_limit: int | None,
    query_timeout: int | None,
    data_dir: Path,
    bootstrap: str | None,
    service_id: str | None,
    functions: tuple[Path, ...],
    registry: str | None,
    user: str | None,
    engine: str | None,
    spark_master: str | None,
    bounded: bool,
) -> None:
    """Start a SQL shell, or run statements from a file.

    With a URL, statements are sent to that server. Without a URL, an engine runs in this process,
    on the data directory or on the cluster of --bootstrap, until the shell exits.

    With --engine spark, queries run on Spark. A file of statements is then a job: it runs until
    Ctrl-C or, with --bounded, until all existing records are processed. If you run a file more than
    once, use CREATE ... IF NOT EXISTS.
    """
    from sql.shell.commands import run_command
    from sql.shell.screen import OutputFormat, Screen
    from sql.shell.session import SessionScope
    from sql.shell.shell import QueryLimits, Shell

    if execute is not None and file is not None:
        raise click.UsageError("--execute and --file cannot be combined")
    screen = Screen.of(sys.stdout)
    if as_json:
        screen.look.format = OutputFormat.JSON
    variables = {name.upper(): value for name, value in key_values(define).items()}
    limits = QueryLimits(query_row_limit, query_timeout)
    text = _statements(execute, file)
    given = {**key_values(properties), **engine_settings(engine, spark_master)}
    if bounded:
        given["spark.bounded"] = "true"
    service = service_id_of(
        given.pop(SETTING, None) if service_id is None and url is None else service_id,
        file=file,
        text=text,
        bounded=bounded,
    )
    if service_id is not None and (url is not None or bootstrap is None):
        raise click.UsageError("--service-id requires --bootstrap")
    options = SessionOptions(url, user, bootstrap, registry, data_dir, functions, service)
    of_engine, of_session = _settings(options, given)
    with handle_stop_signals(_exit_on_signal), closing(_opened(options, of_engine)) as session:
        for name, value in of_session.items():
            session.check_property(name, value)
        shell = Shell(session, screen, run_command, limits, SessionScope({**of_session}, variables))
        if bounded:
            shell.before_query = lambda: _wait_for_spark(session, is_job=False)
        try:
            _run(shell, text)
            _wait_for_spark(session, is_job=file is not None)
        finally:
            shell.screen.spool(None)


def _settings(
    options: "SessionOptions", given: dict[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Split the settings into those of an engine in this process, and those of the session."""
    from sql.engine.settings import NATIVE, is_of_server

    for name in ("spark.bounded", "spark.master"):
        if name not in given:
            continue
        option = {"spark.bounded": "--bounded", "spark.master": "--spark-master"}[name]
        if options.url is not None:
            raise click.UsageError(f"{option} is for an engine in this process, not for a server")
        if given.get("engine", NATIVE) == NATIVE:
            raise click.UsageError(f"{option} requires --engine spark")
    if options.url is not None:
        return {}, given
    own = {name: value for name, value in given.items() if is_of_server(name)}
    own |= {name: value for name, value in given.items() if name == "engine"}
    return own, {name: value for name, value in given.items() if name not in own}


def _wait_for_spark(session: "ShellSession", *, is_job: bool) -> None:
    """Wait for queries on Spark before the engine is closed."""
    from sql.shell.embedded import EmbeddedSession

    if not isinstance(session, EmbeddedSession):
        return
    engine: Engine = session.engine
    if engine.config.flag("spark.bounded"):
        run_all(engine)
    elif is_job:
        wait_for_queries(engine)


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    """Raise, so that the engine is closed and temporary queries are deleted."""
    del frame
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(SIGNALLED + number)


def _statements(execute: str | None, file: Path | None) -> str | None:
    """The statements to run; None for an interactive shell."""
    from sql.shell.commands import script_text

    if file is not None:
        return script_text(file)
    if execute is None and not sys.stdin.isatty():
        return sys.stdin.read()
    return execute


def _run(shell: "Shell", text: str | None) -> None:
    from sql.shell.shell import CommandFailed, ExitShell

    try:
        if text is None:
            _prompt(shell)
        else:
            shell.run(text)
    except ExitShell:
        return
    except CommandFailed:
        sys.exit(1)  # the error has been printed


def _prompt(shell: "Shell") -> None:
    from sql.shell.prompting import Prompt, history_in

    shell.screen.line(f"Millstream SQL {shell.session.version()}: {shell.session.where}", "bold")
    shell.screen.line(
        "Statements end with ;  Type help for a list of commands, exit or Ctrl-D to exit."
    )
    Prompt(shell, history_in(Path(click.get_app_dir("millstream")) / "sql-history")).run()


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Where statements run: the URL of a server, or the settings of an engine."""

    url: str | None
    user: str | None
    bootstrap: str | None
    registry: str | None
    data_directory: Path
    functions: tuple[Path, ...]
    service: ServiceId


def _opened(options: SessionOptions, settings: dict[str, str]) -> "ShellSession":
    if options.url is not None:
        from sql.client import SqlClient
        from sql.shell.remote import RemoteSession

        name, _, password = (options.user or "").partition(":")
        return RemoteSession(SqlClient(options.url, user=name or None, password=password))
    from sql.shell.embedded import EngineOptions, open_embedded, open_on_cluster

    service = options.service
    engine = EngineOptions(options.data_directory, settings, options.functions)
    if options.bootstrap is None:
        own = {SETTING: service.text} if service.is_given else {}
        return open_embedded(replace(engine, settings={**own, **settings}))
    with admin(options.bootstrap, bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS) as cluster:
        cluster.describe_cluster()  # fail early if no broker responds
    return open_on_cluster(
        options.bootstrap,
        options.registry,
        replace(engine, settings={**settings, SETTING: service.text}),
        is_temporary=service.is_temporary,
        is_exclusive=service.is_given,
    )
