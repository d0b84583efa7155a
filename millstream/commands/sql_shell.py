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
from millstream.commands.sql_spark import engine_options, engine_settings, run_all, stay
from millstream.commands.stopping import SIGNALLED, handled_by
from millstream.settings import DATA_DIRECTORY

if TYPE_CHECKING:
    from sql.engine.engine import Engine
    from sql.shell.session import Session
    from sql.shell.shell import Shell


class ShellByDefault(click.Group):
    """A group that opens the shell when no command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the shell's name before what is no command's."""
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["shell", *args]
        return super().parse_args(ctx, args)


@click.command("shell")
@click.argument("url", required=False)
@click.option("--execute", "-e", metavar="STATEMENTS", help="Carry these out, and leave.")
@click.option(
    "--file",
    "-f",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Carry out the statements of a file, and leave; with --engine spark stay while its "
    "queries run.",
)
@click.option("--json", "as_json", is_flag=True, help="Answers and rows as lines of JSON.")
@click.option("--define", "-d", multiple=True, metavar="NAME=VALUE", help="A variable; repeatable.")
@click.option(
    "--set", "-s", "properties", multiple=True, metavar="NAME=VALUE", help="As SET; repeatable."
)
@click.option("--query-row-limit", type=click.IntRange(0), help="End queries after so many rows.")
@click.option("--query-timeout", type=click.IntRange(1), help="End queries after milliseconds.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default=DATA_DIRECTORY,
    show_default=True,
    help="Keeps all that the engine knows.",
)
@click.option(
    "--bootstrap",
    "-b",
    envvar="MILLSTREAM_BOOTSTRAP",
    metavar="HOST:PORT,...",
    help="Run the engine on this cluster: Millstream or any Kafka.",
)
@click.option(
    "--service-id",
    metavar="ID",
    help="With --bootstrap: the ksql.service.id of the engine; it goes on with the queries and "
    "statements of that service. Default: one of its own, by the file or the user; with -e a new "
    "one that ends with the command.",
)
@click.option(
    "--functions",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help="A Python file with SQL functions for the engine, or a folder of them; repeatable.",
)
@click.option("--registry", "-R", metavar="URL", help="The schema registry, with --bootstrap.")
@click.option(
    "--user",
    "-u",
    envvar="MILLSTREAM_SQL_USER",
    metavar="NAME:PASSWORD",
    help="For a server that asks for it; better given by $MILLSTREAM_SQL_USER.",
)
@engine_options
@click.option(
    "--bounded",
    is_flag=True,
    help="With --engine spark: process all that the topics have, once, and leave. The next run "
    "goes on from there.",
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
    """Type SQL, or run it from a file.

    With a URL statements go to the server there. Without, an engine runs in this process, on the
    data directory or on the cluster of --bootstrap, until the shell is left.

    With --engine spark queries run on Spark. A file of statements is then a job: it runs until
    Ctrl-C, or with --bounded until all is processed. A file that is run again should say CREATE ...
    IF NOT EXISTS.
    """
    from sql.shell.commands import run_command
    from sql.shell.screen import OutputFormat, Screen
    from sql.shell.session import Scope
    from sql.shell.shell import QueryLimits, Shell

    if execute is not None and file is not None:
        raise click.UsageError("give --execute or --file, not both")
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
        raise click.UsageError("--service-id needs --bootstrap")
    where = Where(url, user, bootstrap, registry, data_dir, functions, service)
    of_engine, of_session = _settings(where, given)
    with handled_by(_leave), closing(_opened(where, of_engine)) as session:
        for name, value in of_session.items():
            session.check_property(name, value)
        shell = Shell(session, screen, run_command, limits, Scope({**of_session}, variables))
        if bounded:
            shell.before_query = lambda: _wait_for_spark(session, is_job=False)
        try:
            _run(shell, text)
            _wait_for_spark(session, is_job=file is not None)
        finally:
            shell.screen.spool(None)


def _settings(where: "Where", given: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The settings that an engine in this process is started with, and those of the session."""
    from sql.engine.settings import NATIVE, is_of_server

    for name in ("spark.bounded", "spark.master"):
        if name not in given:
            continue
        option = {"spark.bounded": "--bounded", "spark.master": "--spark-master"}[name]
        if where.url is not None:
            raise click.UsageError(f"{option} is for an engine in this process, not for a server")
        if given.get("engine", NATIVE) == NATIVE:
            raise click.UsageError(f"{option} needs --engine spark")
    if where.url is not None:
        return {}, given
    own = {name: value for name, value in given.items() if is_of_server(name)}
    own |= {name: value for name, value in given.items() if name == "engine"}
    return own, {name: value for name, value in given.items() if name not in own}


def _wait_for_spark(session: "Session", *, is_job: bool) -> None:
    """Let queries on Spark do their work before the engine is closed."""
    from sql.shell.embedded import EmbeddedSession

    if not isinstance(session, EmbeddedSession):
        return
    engine: Engine = session.engine
    if engine.config.flag("spark.bounded"):
        run_all(engine)
    elif is_job:
        stay(engine)


def _leave(number: int, frame: FrameType | None) -> None:
    """A signal: what is open is closed, and what is temporary is deleted."""
    del frame
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(SIGNALLED + number)


def _statements(execute: str | None, file: Path | None) -> str | None:
    """What is carried out; None if it is typed."""
    from sql.shell.commands import script_text

    if file is not None:
        return script_text(file)
    if execute is None and not sys.stdin.isatty():
        return sys.stdin.read()
    return execute


def _run(shell: "Shell", text: str | None) -> None:
    from sql.shell.shell import CommandFailed, Leave

    try:
        if text is None:
            _prompt(shell)
        else:
            shell.run(text)
    except Leave:
        return
    except CommandFailed:
        sys.exit(1)  # what failed was shown


def _prompt(shell: "Shell") -> None:
    from sql.shell.prompting import Prompt, history_in

    shell.screen.line(f"Millstream SQL {shell.session.version()}: {shell.session.where}", "bold")
    shell.screen.line("Statements end with ;  help shows what there is, exit or Ctrl-D leaves.")
    Prompt(shell, history_in(Path(click.get_app_dir("millstream")) / "sql-history")).run()


@dataclass(frozen=True, slots=True)
class Where:
    """Where statements are carried out: a server's URL, or what an engine stands on."""

    url: str | None
    user: str | None
    bootstrap: str | None
    registry: str | None
    data_directory: Path
    functions: tuple[Path, ...]
    service: ServiceId


def _opened(where: Where, settings: dict[str, str]) -> "Session":
    if where.url is not None:
        from sql.client import SqlClient
        from sql.shell.remote import RemoteSession

        name, _, password = (where.user or "").partition(":")
        return RemoteSession(SqlClient(where.url, user=name or None, password=password))
    from sql.shell.embedded import EngineOptions, open_embedded, open_on_cluster

    service = where.service
    options = EngineOptions(where.data_directory, settings, where.functions)
    if where.bootstrap is None:
        own = {SETTING: service.text} if service.is_given else {}
        return open_embedded(replace(options, settings={**own, **settings}))
    with admin(where.bootstrap, bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS) as cluster:
        cluster.describe_cluster()  # an error soon, if it is not there
    return open_on_cluster(
        where.bootstrap,
        where.registry,
        replace(options, settings={**settings, SETTING: service.text}),
        is_temporary=service.is_temporary,
        is_exclusive=service.is_given,
    )
