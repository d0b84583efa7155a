"""An application whose schemas the registry refuses does not start."""

from dataclasses import dataclass

import pytest

from broker.errors import RegistryError
from broker.serde import avro
from streams import StreamsBuilder, Topology
from streams.app import check_schemas
from tests.support.memory_registry import MemoryRegistry


@dataclass
class Order:
    """A value."""

    product: str


def topology(registry: MemoryRegistry, *, auto_register: bool) -> Topology:
    """Orders by another key, and all of them to another topic."""
    serde = avro(Order, registry, auto_register=auto_register)
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=serde)
    orders.to("copies", value=serde)
    orders.to(lambda *given: "anywhere", value=serde)
    orders.select_key(lambda key, order: order.product).repartition(value=serde).to("again")
    return builder.build()


def test_schemas_of_output_topics_are_registered_before_any_record() -> None:
    registry = MemoryRegistry()
    check_schemas(topology(registry, auto_register=True))
    assert sorted(registry.calls) == ["register again-value", "register copies-value"]


def test_a_schema_that_is_not_there_is_found_before_any_record() -> None:
    with pytest.raises(RegistryError, match='"Order" for subject "copies-value"'):
        check_schemas(topology(MemoryRegistry(), auto_register=False))
