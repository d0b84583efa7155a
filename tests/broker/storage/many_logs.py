"""A process of its own that writes many logs and stops in order, with few descriptors."""

import threading

from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.model import TopicPartition
from broker.storage.data_directory import DataDirectory
from tests.broker.storage.support import TOPIC_ID, append, batch


def write_and_close(path: str, *, partitions: int, durability: str) -> None:
    """Write to each partition, and stop."""
    config = BrokerConfig(durability=durability)
    topic = config.topic_defaults()
    expected = {TopicPartition("orders", number): (TOPIC_ID, topic) for number in range(partitions)}
    directory = DataDirectory(path, config=config, clock=ManualClock(), lock=threading.RLock())
    directory.open(expected)
    for log in directory.logs():
        with directory._lock:
            append(log, batch())
    directory.close()
