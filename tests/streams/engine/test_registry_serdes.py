"""Serdes with a schema registry in a task: where a record failed, why, and what to do."""

import logging

import pytest

from broker.errors import RegistryError, SerdeError
from broker.serde import RegistryAvroSerde, RegistryJsonSerde
from broker.serde.schema.schema import Schema
from streams.errors import DeserializationFailed, ProductionFailed
from streams.handlers import log_and_continue
from streams.topology import Topology
from tests.streams.engine.harness import LoneTask
from tests.streams.engine.topologies import sink, source, topology
from tests.support.memory_registry import MemoryRegistry

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


class AwayRegistry(MemoryRegistry):
    """A registry that does not answer."""

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        raise RegistryError(503, "no answer", hint="check that it is running")

    def schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        raise RegistryError(503, "no answer", hint="check that it is running")


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "streams")


def orders(registry: MemoryRegistry) -> Topology:
    """Avro orders to a topic of JSON."""
    return topology(
        [
            source("in", value_serde=RegistryAvroSerde(registry)),
            sink("out", "out", "in", value_serde=RegistryJsonSerde(registry, {"type": "object"})),
        ]
    )


def written(registry: MemoryRegistry, number: int) -> bytes:
    data = RegistryAvroSerde(registry, ORDER).serialize("in", {"id": number})
    assert data is not None
    return data


def test_records_go_from_one_format_to_another() -> None:
    registry = MemoryRegistry()
    lone = LoneTask(orders(registry))
    lone.add("in", [("k", written(registry, 7), 0)])
    lone.run()
    assert [record.value for record in lone.outbox.sent] == [b'\0\0\0\0\2{"id":7}']


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (b'{"id": 1}', "magic byte 0x7b", "JsonSerde()"),
        (b"\0\0\0\0\x63a", "the schema with id 99 is not in the registry", "pass the registry"),
        (b"\0\0\0\0\1", "cannot decode as Avro", "serde it was written with"),
    ],
)
def test_a_record_that_cannot_be_read_is_named_with_its_place_and_a_way_out(
    data: bytes, message: str, hint: str
) -> None:
    registry = MemoryRegistry()
    lone = LoneTask(orders(registry))
    lone.add("in", [("k", written(registry, 7), 0), ("k", data, 1)])
    with pytest.raises(DeserializationFailed, match=message) as caught:
        lone.run()
    assert caught.value.at.startswith('topic "in" partition 0 offset 1, node "in"')
    assert hint in caught.value.hint
    assert "or set deserialization_exception_handler" in caught.value.hint
    assert isinstance(caught.value.__cause__, SerdeError)


def test_bad_records_may_be_skipped() -> None:
    registry = MemoryRegistry()
    lone = LoneTask(orders(registry), deserialization_exception_handler=log_and_continue)
    lone.add("in", [("k", b"{", 0), ("k", written(registry, 7), 1)])
    lone.run()
    assert [record.value for record in lone.outbox.sent] == [b'\0\0\0\0\2{"id":7}']


def test_a_registry_that_is_away_costs_no_records() -> None:
    lone = LoneTask(orders(AwayRegistry()), deserialization_exception_handler=log_and_continue)
    lone.add("in", [("k", b"\0\0\0\0\1\2", 0)])
    with pytest.raises(DeserializationFailed, match="no answer") as caught:
        lone.run()
    assert "check that it is running" in caught.value.hint
    tree = topology(
        [source("in"), sink("out", "out", "in", value_serde=RegistryJsonSerde(AwayRegistry(), {}))]
    )
    writing = LoneTask(tree, production_exception_handler=log_and_continue)
    writing.add("in", [("k", b"{}", 0)])
    with pytest.raises(ProductionFailed, match="no answer"):
        writing.run()
