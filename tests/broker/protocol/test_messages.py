"""Every message in every version: round trips, kio as an independent oracle, malformed bytes."""

import io
import random
import tracemalloc
from contextlib import suppress
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_entity_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from broker.errors import MalformedMessage
from broker.protocol.message import from_bytes, to_bytes
from broker.protocol.messages import (
    REQUESTS,
    RESPONSES,
    consumer_protocol,
    group_records,
    headers,
    transaction_records,
)
from broker.protocol.wire import SPECS
from tests.broker.protocol.strategies import message, versions

Kind = type[object]

RECORD_MODULES = (consumer_protocol, group_records, headers, transaction_records)
RECORDS = [cls for cls in SPECS if cls.__module__ in {module.__name__ for module in RECORD_MODULES}]
MESSAGES = [*REQUESTS.values(), *RESPONSES.values(), *RECORDS]
# Each example holds one message of every version of a class, so a few go a long way.
EXAMPLES = settings(max_examples=max(settings().max_examples // 12, 5))
SUBSCRIPTION = consumer_protocol.ConsumerProtocolSubscription
ASSIGNMENT = consumer_protocol.ConsumerProtocolAssignment
DATA_NAMES = {
    SUBSCRIPTION: "consumer_protocol_subscription",
    ASSIGNMENT: "consumer_protocol_assignment",
}


def by_name(cls: Kind) -> str:
    return cls.__name__


def kio_class(cls: Kind, version: int) -> object | None:
    """The same message in kio, or None when kio does not know this version."""
    spec = SPECS[cls]
    if spec.api_key is None:
        name, kind = DATA_NAMES[cls], EntityType.data
    else:
        name = api_key_map[int(spec.api_key)]
        kind = EntityType.request if spec.is_request else EntityType.response
    if version not in schema_name_map[name]:
        return None
    return cast(object, load_entity_schema(name, version, kind))


def through_kio(entity: object, data: bytes) -> bytes:
    decoded, size = entity_reader(entity)(data, 0)
    assert size == len(data)
    out = io.BytesIO()
    entity_writer(entity)(out, decoded)
    return out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("cls", MESSAGES, ids=by_name)
@EXAMPLES
@given(data=st.data())
def test_a_message_comes_back_as_it_went_out(cls: Kind, data: st.DataObject) -> None:
    for version in versions(cls):
        sent = data.draw(message(cls, version, modest=False))
        assert from_bytes(cls, to_bytes(sent, version), version) == sent


@pytest.mark.slow
@pytest.mark.parametrize("cls", [*REQUESTS.values(), *RESPONSES.values(), *DATA_NAMES], ids=by_name)
@EXAMPLES
@given(data=st.data())
def test_kio_reads_and_writes_the_same_bytes(cls: Kind, data: st.DataObject) -> None:
    for version in versions(cls):
        entity = kio_class(cls, version)
        if entity is not None:
            encoded = to_bytes(data.draw(message(cls, version, modest=True)), version)
            assert through_kio(entity, encoded) == encoded


def test_kio_knows_most_of_what_we_speak() -> None:
    pairs = [(cls, v) for cls in (*REQUESTS.values(), *RESPONSES.values()) for v in versions(cls)]
    known = [pair for pair in pairs if kio_class(*pair) is not None]
    assert len(known) > 0.8 * len(pairs)
    assert {cls for cls, _ in known} == {cls for cls, _ in pairs}


@pytest.mark.slow
@pytest.mark.parametrize("cls", MESSAGES, ids=by_name)
@settings(max_examples=5)
@given(data=st.data(), seed=st.integers())
def test_damaged_bytes_are_malformed_and_nothing_else(
    cls: Kind, data: st.DataObject, seed: int
) -> None:
    chance = random.Random(seed)
    for version in versions(cls):
        encoded = to_bytes(data.draw(message(cls, version, modest=False)), version)
        for damaged in damages(encoded, chance):
            with suppress(MalformedMessage):
                from_bytes(cls, damaged, version)


def damages(data: bytes, chance: random.Random) -> list[bytes]:
    """Cuts at a few places, changed bytes, and runs of bits that make lengths huge or negative."""
    found = [data[: chance.randrange(len(data) + 1)] for _ in range(4)]
    for size in (1, 2, 4, 5):
        for filling in (b"\xff", b"\x80", b"\x7f", chance.randbytes(1)):
            position = chance.randrange(len(data) + 1)
            found.append(data[:position] + filling * size + data[position + size :])
    return found


@pytest.mark.parametrize("cls", MESSAGES, ids=by_name)
def test_every_cut_of_a_message_is_malformed(cls: Kind) -> None:
    for version in versions(cls):
        encoded = to_bytes(cls(), version)
        for cut in range(len(encoded)):
            with pytest.raises(MalformedMessage):
                from_bytes(cls, encoded[:cut], version)
        with pytest.raises(MalformedMessage):
            from_bytes(cls, encoded + b"\0", version)


@pytest.mark.slow
def test_lengths_that_lie_allocate_nothing() -> None:
    tracemalloc.start()
    try:
        for cls in MESSAGES:
            for version in versions(cls):
                for filling in (b"\x7f", b"\xff\xff\xff\xff\x07", b"\xfe", b"\0"):
                    with suppress(MalformedMessage):
                        from_bytes(cls, filling * (2000 // len(filling)), version)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
