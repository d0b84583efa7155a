"""An embedded broker on a manual clock."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.broker import Broker
from broker.clock import ManualClock
from broker.config import BrokerConfig
from tests.broker.handlers.embedded import EmbeddedClient

# Few partitions of internal topics: their number is Kafka's business, not that of these tests.
CONFIG = BrokerConfig(offsets_topic_num_partitions=2, transaction_state_log_num_partitions=2)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[EmbeddedClient]:
    """A client of a fresh broker."""
    clock = ManualClock()
    with Broker(CONFIG, clock=clock, data_directory=str(tmp_path)) as broker:
        yield EmbeddedClient(broker, clock)
