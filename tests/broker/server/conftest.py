"""A broker that listens on a free port."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from broker.broker import Broker
from broker.config import BrokerConfig
from broker.server import Server

StartServer = Callable[..., Server]


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Starts a broker with settings given by field names, and serves it."""
    with ExitStack() as stack:

        def start(**settings: object) -> Server:
            chosen = {
                "listeners": ("PLAINTEXT://127.0.0.1:0",),
                "offsets_topic_num_partitions": 2,
                "transaction_state_log_num_partitions": 2,
                **settings,
            }
            config = BrokerConfig(**chosen)  # type: ignore[arg-type]
            broker = stack.enter_context(Broker(config, data_directory=str(tmp_path)))
            return stack.enter_context(Server(broker))

        yield start


@pytest.fixture
def server(start_server: StartServer) -> Server:
    """A server with default settings."""
    return start_server()
