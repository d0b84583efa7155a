"""`millstream registry`: run a schema registry on any cluster, or with an embedded broker."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import click

from broker.client import admin
from broker.client.opening import Target
from broker.registry.registry import Registry
from broker.registry.server import LISTEN, RegistryServer
from broker.serde.schema.compatibility.levels import CompatibilityLevel
from millstream.commands.options import (
    BOOTSTRAP,
    BOOTSTRAP_TIMEOUT_MS,
    allowed_hosts_option,
    json_option,
)
from millstream.commands.serving import RunningService, open_target, serve, target_name
from millstream.output import Output

TOPIC = "_schemas"
CONNECT_LIMIT_MS = 10_000


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """The options of a registry."""

    listen: str = LISTEN
    topic: str = TOPIC
    replication_factor: int = 1
    level: CompatibilityLevel = CompatibilityLevel.BACKWARD
    allowed_hosts: str = ""


@click.command()
@click.option(
    "--bootstrap",
    "-b",
    envvar="MILLSTREAM_BOOTSTRAP",
    metavar="HOST:PORT,...",
    help=f"The cluster that stores the schemas: Millstream or Kafka. Default: {BOOTSTRAP}.",
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
    "--topic", "-t", default=TOPIC, show_default=True, help="The topic that stores the schemas."
)
@click.option(
    "--replication-factor",
    "-r",
    default=1,
    show_default=True,
    help="The replication factor of that topic.",
)
@click.option(
    "--level",
    type=click.Choice([level.value for level in CompatibilityLevel], case_sensitive=False),
    default=CompatibilityLevel.BACKWARD.value,
    show_default=True,
    help="The compatibility level of subjects that do not set one.",
)
@allowed_hosts_option
@json_option
def registry(  # noqa: PLR0913 - one argument per option
    bootstrap: str | None,
    data_dir: str | None,
    listen: str,
    topic: str,
    replication_factor: int,
    level: str,
    allowed_hosts: str,
    output: Output,
) -> None:
    """Run a schema registry until interrupted.

    It works with clients of Confluent's Schema Registry. The schemas are stored in a topic of the
    cluster; a registry that starts later takes over the topic.
    """
    options = RegistryOptions(
        listen, topic, replication_factor, CompatibilityLevel(level.upper()), allowed_hosts
    )
    with open_target(bootstrap, data_dir) as target:
        serve([lambda: registry_service(target, options)], output)


@contextmanager
def registry_service(target: Target, options: RegistryOptions) -> Iterator[RunningService]:
    """Run a registry on a broker, and its server."""
    with admin(target, bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS) as cluster:
        cluster_id = cluster.describe_cluster(timeout_ms=CONNECT_LIMIT_MS).cluster_id
    with (
        Registry(
            target,
            topic=options.topic,
            replication_factor=options.replication_factor,
            default_level=options.level,
        ) as opened,
        RegistryServer(
            opened,
            listen=options.listen,
            cluster_id=cluster_id,
            allowed_hosts=options.allowed_hosts.split(","),
        ) as server,
    ):
        where = target_name(target)
        yield RunningService(
            {"event": "registry", "url": server.url, "topic": options.topic},
            f'registry on {server.url}, schemas in topic "{options.topic}" of {where}',
        )
