"""A broker for registries, and registries on topics of their own."""

import uuid
from collections.abc import Iterator

import pytest

from broker.broker import Broker
from broker.config import BrokerConfig
from broker.registry.registry import Registry

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker in this process for all tests of the registry."""
    folder = tmp_path_factory.mktemp("registry")
    with Broker(BrokerConfig.from_properties(SETTINGS), data_directory=str(folder)) as started:
        yield started


@pytest.fixture
def topic() -> str:
    """A topic that nobody else uses."""
    return f"_schemas-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def registry(broker: Broker, topic: str) -> Iterator[Registry]:
    """An empty registry."""
    with Registry(broker, topic=topic) as started:
        yield started
