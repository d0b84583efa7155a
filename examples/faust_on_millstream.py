"""A faust application, unchanged, with a Millstream broker as its Kafka cluster."""

import os
import subprocess
import sys
import tempfile

import faust

from broker import Broker, BrokerConfig, Server, TopicPartition
from broker.client import consumer, producer

WORDS = ("mill", "stream", "mill", "water", "mill")
CONFIG = BrokerConfig(group_initial_rebalance_delay_ms=0, listeners=("PLAINTEXT://127.0.0.1:0",))
FAUST = (sys.executable, "-m", "faust", "--quiet", "-A", "examples.faust_on_millstream")
ADDRESS = f"kafka://{os.environ.get('BOOTSTRAP', 'localhost:9092')}"
FOLDER = os.environ.get("FOLDER", "faust-data")

app = faust.App("counter", broker=ADDRESS, datadir=FOLDER, topic_partitions=1)
words = app.topic("words", value_type=bytes, value_serializer="raw")
counted = app.topic("counted", value_type=bytes, value_serializer="raw")
counts = app.Table("counts", default=int, partitions=1)


@app.agent(words)  # type: ignore[untyped-decorator]
async def count(stream: faust.Stream[bytes]) -> None:
    async for word in stream:
        counts[word.decode()] += 1
        await counted.send(key=word, value=str(counts[word.decode()]).encode())


def main() -> dict[str, int]:
    """Send some words to the broker, run a faust worker until it has counted them."""
    found: dict[str, int] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(CONFIG, data_directory=folder) as broker,
        Server(broker) as server,
        consumer(broker, auto_offset_reset="earliest") as reader,
    ):
        with producer(broker) as out:
            out.partitions_for("counted")  # creates the topic
            for word in WORDS:
                out.send("words", word.encode())
        names = {"BOOTSTRAP": server.bootstrap, "FOLDER": f"{folder}/faust"}
        worker = subprocess.Popen([*FAUST, "worker", "--without-web"], env={**os.environ, **names})
        reader.assign([TopicPartition("counted", 0)])
        while sum(found.values()) < len(WORDS) and worker.poll() is None:
            for record in reader.poll(timeout_ms=1000):
                found[(record.key or b"").decode()] = int(record.value or b"")
        worker.terminate()
        worker.wait()
    return found


if __name__ == "__main__":
    print("\n".join(f"{word:8} {times}" for word, times in main().items()))
