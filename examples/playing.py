"""Runs records through a topology on an embedded broker; shared by the streams examples.

`word_count.py` shows the same steps written out.
"""

import tempfile
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import orjson

from broker import Broker, BrokerConfig, TopicPartition
from broker.client import NewTopic, admin, consumer, producer
from streams import StreamsApp, Topology

Row = dict[str, Any]
Results = list[tuple[str, Row]]  # keys and values, in order of arrival


class Input(NamedTuple):
    """A record to send, with a JSON value."""

    topic: str
    key: str
    value: Row
    timestamp_ms: int = 0


def play(
    topology: Topology,
    records: Iterable[Input],
    outputs: list[str],
    *,
    until: Callable[[Results], bool],
) -> Results:
    """Send records, and run the application until its results are complete."""
    found: Results = []
    sent = list(records)
    topics = {*outputs, *(record.topic for record in sent)}
    config = BrokerConfig(group_initial_rebalance_delay_ms=0)  # the group has one member
    with tempfile.TemporaryDirectory() as folder, Broker(config, data_directory=folder) as broker:
        with admin(broker) as administration, producer(broker) as out:
            administration.create_topics(NewTopic(name, partitions=1) for name in topics).all()
            for topic, key, value, time_ms in sent:
                out.send(topic, orjson.dumps(value), key=key.encode(), timestamp_ms=time_ms)
        settings: dict[str, Any] = {"state_dir": folder, "commit_interval_ms": 100}
        with (
            StreamsApp(topology, application_id="example", broker=broker, **settings),
            consumer(broker, auto_offset_reset="earliest") as reader,
        ):
            reader.assign([TopicPartition(name, 0) for name in outputs])
            while not until(found):
                for record in reader.poll(timeout_ms=1000):
                    found.append(((record.key or b"").decode(), orjson.loads(record.value or b"")))
    return found
