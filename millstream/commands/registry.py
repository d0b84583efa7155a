"""`millstream registry`: serve a schema registry over any cluster, or over a broker of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import click

from broker.client import admin
from broker.client.opening import Target
from broker.registry.registry import Registry
from broker.registry.server import LISTEN, RegistryServer
from broker.schema.compatibility.levels import CompatibilityLevel
from millstream.commands.options import (
    BOOTSTRAP,
    BOOTSTRAP_TIMEOUT_MS,
    allowed_hosts_option,
    json_option,
)
from millstream.commands.serving import Started, opened_target, serve, shown_target
from millstream.output import Output

TOPIC = "_schemas"
CONNECT_LIMIT_MS = 10_000


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """How a registry is served."""

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
    help=f"The cluster that keeps the schemas: Millstream or any Kafka. Default: {BOOTSTRAP}.",
)
@click.option("--data-dir", "-d", help="Keep the schemas here, in a broker of its own.")
@click.option("--listen", "-l", default=LISTEN, show_default=True, help="HOST:PORT; 0: any port.")
@click.option("--topic", "-t", default=TOPIC, show_default=True, help="Where schemas are kept.")
@click.option("--replication-factor", "-r", default=1, show_default=True, help="Of that topic.")
@click.option(
    "--level",
    type=click.Choice([level.value for level in CompatibilityLevel], case_sensitive=False),
    default=CompatibilityLevel.BACKWARD.value,
    show_default=True,
    help="The compatibility of subjects that have no level of their own.",
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
    """Serve a schema registry until interrupted.

    Clients of Confluent's Schema Registry can use it. The schemas are in a topic of the cluster; a
    registry that starts later takes the topic over.
    """
    options = RegistryOptions(
        listen, topic, replication_factor, CompatibilityLevel(level.upper()), allowed_hosts
    )
    with opened_target(bootstrap, data_dir) as target:
        serve([lambda: registry_service(target, options)], output)


@contextmanager
def registry_service(target: Target, options: RegistryOptions) -> Iterator[Started]:
    """A registry on a broker, and its server."""
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
        where = shown_target(target)
        yield Started(
            {"event": "registry", "url": server.url, "topic": options.topic},
            f'registry on {server.url}, schemas in topic "{options.topic}" of {where}',
        )
