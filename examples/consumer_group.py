"""Two members share a topic; one leaves, the other takes over its partitions."""

import tempfile

from broker import Broker, BrokerConfig
from broker.client import Consumer, NewTopic, admin, consumer, producer

PARTITIONS = 4


def wait_for_share(members: list[Consumer], size: int) -> list[list[int]]:
    """Poll all members until each has this many partitions; return the partitions of each."""
    while any(len(member.assignment()) != size for member in members):
        for member in members:
            member.poll(timeout_ms=20)
    return [sorted(tp.partition for tp in member.assignment()) for member in members]


def main() -> tuple[list[list[int]], list[list[int]]]:
    """The partitions of two members, and then of one."""
    config = BrokerConfig(group_initial_rebalance_delay_ms=0)
    settings = {
        "group_id": "readers",
        "heartbeat_interval_ms": 100,
        "partition_assignment_strategy": ("cooperative-sticky",),
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(config, data_directory=folder) as broker,
    ):
        with admin(broker) as administration:
            administration.create_topics([NewTopic("lines", partitions=PARTITIONS)]).all()
        with producer(broker) as out:
            for number in range(100):
                out.send("lines", f"line {number}".encode())
        with consumer(broker, **settings) as staying:
            staying.subscribe(["lines"])
            with consumer(broker, **settings) as leaving:
                leaving.subscribe(["lines"])
                together = wait_for_share([staying, leaving], PARTITIONS // 2)
            alone = wait_for_share([staying], PARTITIONS)
    return together, alone


if __name__ == "__main__":
    print("two members: {}\none member:  {}".format(*main()))
