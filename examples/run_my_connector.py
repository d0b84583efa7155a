"""A Connect worker in a program: runs the connector of my_connector.py twice."""

import json
import tempfile
from collections.abc import Iterator

from broker import Broker, TopicPartition
from broker.client import consumer
from connect import ConnectClient, ConnectServer, WorkerConfig

STATIONS = {
    "connector.class": "examples.my_connector:StationsConnector",
    "tasks.max": "2",
    "stations": "Bern,Chur",
    "topic": "measurements",
    "topic.creation.default.partitions": "1",
    "topic.creation.default.replication.factor": "1",
}


def hours(broker: Broker) -> Iterator[tuple[str, int]]:
    """Stations and hours, as they arrive."""
    with consumer(broker, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition("measurements", 0)])
        while True:
            for record in reader.poll(timeout_ms=1000):
                yield (record.key or b"").decode(), json.loads(record.value or b"")["hour"]


def main() -> list[int]:
    """The hours measured in Bern, before and after a restart of the worker."""
    with tempfile.TemporaryDirectory() as folder, Broker(data_directory=folder) as broker:
        config = WorkerConfig.parse(
            {
                "bootstrap.servers": "embedded",
                "listeners": "http://127.0.0.1:0",
                "key.converter": "org.apache.kafka.connect.storage.StringConverter",
                "value.converter": "org.apache.kafka.connect.json.JsonConverter",
                "value.converter.schemas.enable": "false",
                "offset.storage.file.filename": f"{folder}/offsets",
                "plugin.modules": "examples",
            }
        )
        found: list[int] = []
        arriving = hours(broker)
        for count in (5, 10):
            with ConnectServer(broker, config) as server:
                ConnectClient(server.url).put_config("stations", STATIONS)
                while len(found) < count:
                    station, hour = next(arriving)
                    found += [hour] if station == "Bern" else []
    return found


if __name__ == "__main__":
    print(main())
