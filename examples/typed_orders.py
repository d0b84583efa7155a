"""Typed orders: dataclasses as Avro; schemas derived from hints, registered and checked."""

import tempfile
from dataclasses import dataclass
from typing import Any

from broker import Broker, BrokerConfig, TopicPartition
from broker.client import consumer, producer
from broker.registry import Registry
from broker.serde import avro
from streams import StreamsApp, StreamsBuilder, Topology


@dataclass(frozen=True)
class Order:
    product: str
    sacks: int


@dataclass(frozen=True)
class Bill:
    text: str
    cents: int


def build(registry: Registry) -> Topology:
    """Orders in, bills out; a type checker knows both."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=avro(Order, registry))
    bills = orders.map_values(lambda order: Bill(order.product, 250 * order.sacks))
    bills.to("bills", key=str, value=avro(Bill, registry))
    return builder.build()


def main() -> tuple[Bill | None, str]:
    """A bill, and the schema that the registry has for bills."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(BrokerConfig(group_initial_rebalance_delay_ms=0), data_directory=folder) as broker,
        Registry(broker) as registry,
        producer(broker) as out,
        consumer(broker, auto_offset_reset="earliest") as reader,
    ):
        order = avro(Order, registry).serialize("orders", Order("flour", 3))
        out.send("orders", order, key=b"ann").result()
        settings: dict[str, Any] = {"state_dir": folder, "commit_interval_ms": 100}
        with StreamsApp(build(registry), application_id="bills", broker=broker, **settings):
            reader.assign([TopicPartition("bills", 0)])
            while not (found := reader.poll(timeout_ms=1000)):
                pass
        bills = avro(Bill, registry)
        # An incompatible change of the class would be refused here, and when the app starts.
        schema_id = bills.check("bills")
        return bills.deserialize("bills", found[0].value), registry.schema(schema_id).text


if __name__ == "__main__":
    print(*main(), sep="\n")
