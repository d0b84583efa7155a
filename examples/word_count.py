"""Word count: split lines into words and count each, in a table that is never lost."""

import tempfile
from typing import Any

from broker import Broker, BrokerConfig
from broker.client import consumer, producer
from streams import StreamsApp, StreamsBuilder, Topology

LINES = ("the mill stands by the stream", "the stream turns the mill", "mill and stream")
CONFIG = BrokerConfig(group_initial_rebalance_delay_ms=0)  # the group has one member
READER = {"group_id": "reader", "auto_offset_reset": "earliest"}


def build() -> Topology:
    """Lines in, the count of each word out."""
    builder = StreamsBuilder()
    lines = builder.stream("lines", key=str, value=str)
    words = lines.flat_map_values(lambda line: line.split())
    counts = words.group_by(lambda _, word: word).count(store="word-counts")
    counts.to_stream().to("counts")
    return builder.build()


def main() -> dict[str, int]:
    """Count the words of some lines."""
    counts: dict[str, int] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(CONFIG, data_directory=folder) as broker,
    ):
        with producer(broker) as out:
            for line in LINES:
                out.send("lines", line.encode())
        settings: dict[str, Any] = {"state_dir": folder, "commit_interval_ms": 100}
        with (
            StreamsApp(build(), application_id="word-count", broker=broker, **settings),
            consumer(broker, **READER) as reader,
        ):
            reader.subscribe(["counts"])
            while sum(counts.values()) < sum(len(line.split()) for line in LINES):
                for record in reader.poll(timeout_ms=1000):
                    word, count = record.key or b"", record.value or b""
                    counts[word.decode()] = int.from_bytes(count, "big")
    return counts


if __name__ == "__main__":
    for word, count in sorted(main().items(), key=lambda entry: -entry[1]):
        print(f"{word:8} {count}")
