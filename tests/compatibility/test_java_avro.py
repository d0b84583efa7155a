"""Avro in Java with the registry's prefix: read and written through our registry and serde.

Confluent's serializer is not in Maven Central: its test is skipped, with the reason, where it
cannot be had. Avro's own library, which the serializer calls, is always there with Java.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from broker.registry.registry import Registry
from broker.registry.server import RegistryServer
from broker.serde import RegistryAvroSerde
from broker.serde.registry import HttpSchemaRegistry
from tests.support.java_avro import CONFLUENT_AVRO, PLAIN_AVRO, JavaAvro
from tests.support.peer import PeerMissing, skip_without_peer

pytestmark = [pytest.mark.slow, pytest.mark.peer]

# Any: JSON of schemas and values.
SCHEMA: Any = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "price", "type": "double"},
        {"name": "raw", "type": "bytes"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "DONE"]}},
        {"name": "mark", "type": {"type": "fixed", "name": "Mark", "size": 2}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "next", "type": ["null", "Order"], "default": None},
    ],
}
# Pairs of a value for fastavro and the same in Avro's JSON, which names branches of unions.
INNER: Any = {
    "id": -(2**63),
    "note": None,
    "price": 1.5,
    "raw": b"\0\xff",
    "state": "OPEN",
    "mark": b"ab",
    "tags": [],
    "next": None,
}
VALUE: Any = {**INNER, "id": 3, "note": "Zoë", "state": "DONE", "tags": ["a", "b"], "next": INNER}
INNER_JSON: Any = {**INNER, "raw": "\0\xff", "mark": "ab"}
VALUE_JSON: Any = {
    **INNER_JSON,
    "id": 3,
    "note": {"string": "Zoë"},
    "state": "DONE",
    "tags": ["a", "b"],
    "next": {"shop.Order": INNER_JSON},
}


@pytest.fixture(scope="module")
def url(bootstrap: str) -> Iterator[str]:
    with (
        Registry(bootstrap) as registry,
        RegistryServer(registry, listen="127.0.0.1:0") as server,
    ):
        yield server.url


@pytest.mark.parametrize("java", [PLAIN_AVRO, CONFLUENT_AVRO], ids=lambda each: each.program)
def test_java_and_we_read_what_the_other_writes(
    url: str, unique: Callable[[str], str], java: JavaAvro
) -> None:
    topic = unique("orders")
    with HttpSchemaRegistry(url) as registry:
        serde = RegistryAvroSerde(registry, SCHEMA)
        ours = serde.serialize(topic, VALUE)
        assert ours is not None
        write = ["write", json.dumps(SCHEMA), json.dumps(VALUE_JSON)]
        try:
            theirs, read = java.run(url, topic, [write, ["read", ours.hex()]])
        except PeerMissing as missing:
            if java is CONFLUENT_AVRO:
                pytest.skip(f"no {java.library.name}: {missing}")
            skip_without_peer(f"no {java.library.name}: {missing}")
        assert bytes.fromhex(theirs) == ours
        assert serde.deserialize(topic, bytes.fromhex(theirs)) == VALUE
        assert json.loads(read) == VALUE_JSON
