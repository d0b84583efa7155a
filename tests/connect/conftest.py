"""What the tests of connect share: a broker in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker import Broker
from broker.config import BrokerConfig

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A broker with an empty folder."""
    folder = tmp_path / "broker"
    with Broker(BrokerConfig.from_properties(SETTINGS), data_directory=str(folder)) as running:
        yield running
