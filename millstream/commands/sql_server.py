"""`millstream sql server`: SQL over HTTP, on any cluster or with an embedded broker."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click

from broker.client import admin
from broker.client.opening import Target
from broker.rest.http_server import parse_listen
from broker.serde.registry.http_registry import HttpSchemaRegistry
from millstream.commands.options import (
    BOOTSTRAP,
    BOOTSTRAP_TIMEOUT_MS,
    allowed_hosts_option,
    json_option,
)
from millstream.commands.serving import RunningService, open_target, serve, target_name
from millstream.commands.sql_spark import engine_options, engine_settings
from millstream.output import Output

LISTEN = "127.0.0.1:8088"
CONNECT_LIMIT_MS = 10_000
STATE_DIRECTORY = "millstream-sql"


functions_option = click.option(
    "--functions",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help="A Python file with SQL functions, or a directory of such files; repeatable.",
)


@dataclass(frozen=True, slots=True)
class SqlOptions:
    """The options of a SQL server."""

    state_directory: Path
    listen: str = LISTEN
    registry: str | None = None
    queries_file: Path | None = None
    settings: dict[str, str] = field(default_factory=dict)
    functions: tuple[Path, ...] = ()

    @property
    def server_settings(self) -> dict[str, object]:
        """The server's settings that differ from their defaults."""
        settings: dict[str, object] = {**self.settings, "listeners": f"http://{self.listen}"}
        if self.registry is not None:
            settings.setdefault("ksql.schema.registry.url", self.registry)
        if self.queries_file is not None:
            settings["ksql.queries.file"] = str(self.queries_file)
        return settings


@click.command("server")
@click.option(
    "--bootstrap",
    "-b",
    envvar="MILLSTREAM_BOOTSTRAP",
    metavar="HOST:PORT,...",
    help=f"The cluster: Millstream or Kafka. Default: {BOOTSTRAP}.",
)
@click.option("--data-dir", "-d", help="Run an embedded broker with this data directory.")
@click.option(
    "--listen",
    "-l",
    default=LISTEN,
    show_default=True,
    help="The address to listen on, HOST:PORT; port 0: any free port.",
)
@click.option(
    "--registry", "-r", metavar="URL", help="The schema registry, for AVRO and other formats."
)
@click.option(
    "--queries-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Run the statements of this file, and accept no others over HTTP.",
)
@click.option(
    "--setting",
    "-s",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A ksqlDB setting; repeatable.",
)
@functions_option
@engine_options
@allowed_hosts_option
@json_option
def server_command(  # noqa: PLR0913 - one argument per option
    bootstrap: str | None,
    data_dir: str | None,
    listen: str,
    registry: str | None,
    queries_file: Path | None,
    settings: tuple[str, ...],
    functions: tuple[Path, ...],
    engine: str | None,
    spark_master: str | None,
    allowed_hosts: str,
    output: Output,
) -> None:
    """Run a SQL server until interrupted.

    It works with clients of ksqlDB. Statements are stored in a topic of the cluster: the next start
    continues with them.
    """
    parse_listen(listen)  # refused before anything is started
    state_directory = Path(data_dir or ".") / STATE_DIRECTORY
    names = {"ksql.allowed.hosts": allowed_hosts}
    given = {**names, **_settings(settings), **engine_settings(engine, spark_master)}
    if given.get("spark.bounded", "false").lower() != "false":
        raise click.UsageError(
            "a server runs until it is stopped: for spark.bounded use `millstream sql "
            "--bounded -f FILE`"
        )
    if "listeners" in given:
        raise click.UsageError('use --listen instead of the setting "listeners"')
    options = SqlOptions(state_directory, listen, registry, queries_file, given, functions)
    with open_target(bootstrap, data_dir) as target:
        serve([lambda: sql_service(target, options)], output)


def _settings(given: tuple[str, ...]) -> dict[str, str]:
    parsed = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise click.UsageError(f'"{each}" is not NAME=VALUE')
        parsed[name.strip()] = value.strip()
    return parsed


@contextmanager
def sql_service(target: Target, options: SqlOptions) -> Iterator[RunningService]:
    """Run an engine on a broker, and its server; a headless one accepts no requests."""
    # Here, so that other commands start without them.
    from sql.engine.engine import Engine
    from sql.engine.extensions import functions_of
    from sql.engine.settings import SqlConfig
    from sql.server.peers import HttpPeers
    from sql.server.server import SqlServer

    config = SqlConfig(options.server_settings)
    with admin(target, bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS) as cluster:
        cluster_id = cluster.describe_cluster(timeout_ms=CONNECT_LIMIT_MS).cluster_id
    headless = options.queries_file is not None
    with ExitStack() as opened:
        registry = None
        if options.registry is not None:
            registry = opened.enter_context(HttpSchemaRegistry(options.registry))
        peers = opened.enter_context(closing(HttpPeers()))
        engine = opened.enter_context(
            Engine(
                target,
                data_directory=options.state_directory,
                registry=registry,
                config=config,
                functions=functions_of(config, options.functions),
                headless=headless,
                follow=not headless,
                peers=peers,
            )
        )
        where = target_name(target)
        if headless:
            yield RunningService(
                {"event": "sql", "queries_file": str(options.queries_file)},
                f"the queries of {options.queries_file} run on {where}",
            )
            return
        server = opened.enter_context(
            SqlServer(engine, listen=options.listen, cluster_id=cluster_id)
        )
        yield RunningService(
            {"event": "sql", "url": server.url}, f"SQL on {server.url}, using {where}"
        )
