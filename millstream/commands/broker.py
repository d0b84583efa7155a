"""`millstream broker`: run a broker with a server.properties file or options."""

import click

from broker.__main__ import DEFAULT_HOST, DEFAULT_PORT, serve
from broker.config import BrokerConfig
from broker.properties_file import read_properties
from millstream.commands.options import key_values


@click.command()
@click.argument("properties_file", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--data-dir", "-d", help="The data directory; Kafka's log.dirs.")
@click.option("--host", help=f"Address to listen on. Default: {DEFAULT_HOST}.")
@click.option("--port", "-p", type=int, help="Port to listen on; 0: any free port.")
@click.option("--metrics-port", type=int, help="Serve Prometheus metrics on this port.")
@click.option(
    "--config",
    "-c",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A broker setting, by Kafka's name; repeatable, overrides the file.",
)
def broker(
    properties_file: str | None,
    data_dir: str | None,
    host: str | None,
    port: int | None,
    metrics_port: int | None,
    settings: tuple[str, ...],
) -> None:
    """Run a broker until interrupted.

    PROPERTIES_FILE is a server.properties file, as for Kafka. Without it the settings have Kafka's
    defaults, and the data directory is ./millstream-data.
    """
    properties: dict[str, str] = {}
    if properties_file is not None:
        with open(properties_file) as file:
            properties = read_properties(file.read(), name=properties_file)
    if data_dir is not None:
        properties["log.dirs"] = data_dir
    if host is not None or port is not None:
        listen_port = DEFAULT_PORT if port is None else port
        properties["listeners"] = f"PLAINTEXT://{host or DEFAULT_HOST}:{listen_port}"
    if metrics_port is not None:
        properties["metrics.port"] = str(metrics_port)
    serve(BrokerConfig.from_properties({**properties, **key_values(settings)}))
