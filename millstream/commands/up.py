"""`millstream up`: broker and schema registry in one process, on one data directory."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from broker import Broker, BrokerConfig
from broker.__main__ import SWITCH_SECONDS
from broker.server import Server
from millstream.commands.options import json_option
from millstream.commands.registry import RegistryOptions, registry_service
from millstream.commands.serving import Service, Started, serve
from millstream.output import Output

DATA_DIRECTORY = "millstream-data"
KAFKA_PORT = 9092
REGISTRY_PORT = 8081


@click.command()
@click.option("--data-dir", "-d", default=DATA_DIRECTORY, show_default=True, help="Keeps all.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--kafka-port", default=KAFKA_PORT, show_default=True, help="Of the broker; 0: any.")
@click.option(
    "--registry-port", default=REGISTRY_PORT, show_default=True, help="Of the registry; 0: any."
)
@json_option
def up(data_dir: str, host: str, kafka_port: int, registry_port: int, output: Output) -> None:
    """Run a broker and a schema registry until interrupted; the next start goes on from there."""
    sys.setswitchinterval(SWITCH_SECONDS)
    config = BrokerConfig(
        listeners=(f"PLAINTEXT://{host}:{kafka_port}",), group_initial_rebalance_delay_ms=0
    )
    broker = Broker(config, data_directory=data_dir)
    options = RegistryOptions(listen=f"{host}:{registry_port}")
    # Each one may use those before it, and ends before they do.
    services: list[Service] = [
        lambda: _broker_service(broker, data_dir),
        lambda: registry_service(broker, options),
    ]
    serve(services, output)


@contextmanager
def _broker_service(broker: Broker, data_dir: str) -> Iterator[Started]:
    with broker, Server(broker) as server:
        address = server.bootstrap
        yield Started(
            {"event": "broker", "bootstrap": address, "data_dir": data_dir},
            f"broker on {address}, data in {data_dir}",
        )
