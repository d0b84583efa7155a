"""The broker that engines run on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.broker import Broker
from broker.config import BrokerConfig

# Only what makes waiting shorter; everything else stays at the defaults that users get.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "listeners": "PLAINTEXT://127.0.0.1:0",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """Our broker in this process."""
    config = BrokerConfig.from_properties(SETTINGS)
    with Broker(config, data_directory=str(tmp_path / "broker")) as broker:
        yield broker
