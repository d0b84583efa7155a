"""What tests of the REST API share: a worker on a broker in this process."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from broker import Broker, BrokerConfig
from connect.config.worker_config import WorkerConfig
from connect.server import ConnectServer
from tests.support.kafka_connect_worker import worker_settings


@dataclass(frozen=True, slots=True)
class Served:
    """A worker that answers requests."""

    server: ConnectServer
    client: httpx.Client
    folder: Path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A distributed worker."""
    folder = tmp_path_factory.mktemp("connect")
    settings = BrokerConfig.from_properties({"group.initial.rebalance.delay.ms": "0"})
    config = WorkerConfig.parse(worker_settings("localhost:9092", 0))
    with (
        Broker(settings, data_directory=str(folder / "broker")) as broker,
        ConnectServer(broker, config) as server,
        httpx.Client(base_url=server.url, timeout=60.0) as client,
    ):
        yield Served(server, client, folder)
