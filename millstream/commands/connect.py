"""`millstream connect`: run a Connect worker on any cluster, or with an embedded broker."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from broker.client.opening import Target, admin
from connect.config.connector_file import ConnectorFile, read_connector
from connect.config.worker_config import STANDALONE_FILE, WorkerConfig, read_settings
from connect.errors import ConfigError
from connect.server import ConnectServer
from millstream.commands.options import (
    BOOTSTRAP,
    BOOTSTRAP_TIMEOUT_MS,
    allowed_hosts_option,
    json_option,
    key_values,
)
from millstream.commands.serving import RunningService, open_target, serve, target_name
from millstream.output import Output

HOST, PORT = "127.0.0.1", 8083
OFFSETS_FILE = "connect.offsets"
# The settings of a worker without a file: keys as strings, values as JSON, as in most examples.
CONVERTERS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
IN_TOPICS = {
    "group.id": "connect-cluster",
    "config.storage.topic": "connect-configs",
    "config.storage.replication.factor": "1",
    "offset.storage.topic": "connect-offsets",
    "offset.storage.replication.factor": "1",
    "status.storage.topic": "connect-status",
    "status.storage.replication.factor": "1",
    "offset.flush.interval.ms": "10000",
}


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--bootstrap",
    "--broker",
    "-b",
    envvar="MILLSTREAM_BOOTSTRAP",
    metavar="HOST:PORT,...",
    help=f"The cluster: Millstream or Kafka. Default: the one in the file, or {BOOTSTRAP}.",
)
@click.option("--data-dir", "-d", help="Run an embedded broker with this data directory.")
@click.option("--host", help=f"Address of the REST API. Default: {HOST}.")
@click.option(
    "--port", "-p", type=int, help=f"Port of the REST API; 0: any free port. Default: {PORT}."
)
@click.option(
    "--config",
    "-c",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="A worker setting, by Kafka's name; repeatable, overrides the file.",
)
@allowed_hosts_option
@json_option
def connect(  # noqa: PLR0913 - one argument per option
    files: tuple[Path, ...],
    bootstrap: str | None,
    data_dir: str | None,
    host: str | None,
    port: int | None,
    overrides: tuple[str, ...],
    allowed_hosts: str,
    output: Output,
) -> None:
    """Run a Connect worker until interrupted.

    FILES are [WORKER] [CONNECTOR]...: a worker.properties file, as for Kafka Connect, and the
    connectors of a standalone worker, as properties or JSON. Without connectors the worker is
    distributed: it accepts connectors over REST, keeps its state in topics, and continues with
    them at the next start.
    """
    file_settings, connectors = _read(files)
    settings = file_settings or _default_settings(bool(connectors), Path(data_dir or "."))
    if host is not None or port is not None or not file_settings:
        settings["listeners"] = f"http://{host or HOST}:{PORT if port is None else port}"
    if bootstrap is None and data_dir is None:
        bootstrap = settings.get("bootstrap.servers")
    if allowed_hosts:
        settings["rest.allowed.hosts"] = allowed_hosts
    settings |= key_values(overrides)
    with open_target(bootstrap, data_dir) as target:
        serve([lambda: connect_service(target, settings, connectors)], output)


@contextmanager
def connect_service(
    target: Target, settings: Mapping[str, str], connectors: Sequence[ConnectorFile] = ()
) -> Iterator[RunningService]:
    """A worker on a broker, and its REST API."""
    if isinstance(target, str):
        settings = {**settings, "bootstrap.servers": target}
    config = WorkerConfig.parse(settings)
    if connectors and config.distributed:
        raise ConfigError(
            "a distributed worker does not accept connector files",
            hint="create the connectors with `millstream connectors create`, or set "
            f'"{STANDALONE_FILE}"',
        )
    if isinstance(target, str):  # fail early if no broker responds
        own = config.own_client_settings(over_network=True)
        with admin(target, bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS, **own) as cluster:
            cluster.describe_cluster()
    with ConnectServer(target, config) as server:
        server.create(connectors)
        kind = "distributed" if config.distributed else "standalone"
        yield RunningService(
            {"event": "connect", "url": server.url, "kind": kind},
            f"connect ({kind}) on {server.url}, using {target_name(target)}",
            lambda: server.failure,
        )


def _read(files: Sequence[Path]) -> tuple[dict[str, str], list[ConnectorFile]]:
    """The worker's settings, if the first file has them, and the connectors."""
    if not files or _is_connector(files[0]):
        return {}, [read_connector(each) for each in files]
    return read_settings(files[0]), [read_connector(each) for each in files[1:]]


def _is_connector(file: Path) -> bool:
    return "connector.class" in file.read_text(errors="replace")


def _default_settings(standalone: bool, directory: Path) -> dict[str, str]:
    storage = {STANDALONE_FILE: str(directory / OFFSETS_FILE)} if standalone else IN_TOPICS
    return {**CONVERTERS, **storage, "connector.allowed.paths": f"{directory},."}
