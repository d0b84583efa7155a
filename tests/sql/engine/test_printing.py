"""PRINT: formats guessed from bytes."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.api import ConsumerRecord
from broker.serde import RegistryAvroSerde
from sql.engine.printing import UNDECIDED, FormatGuess, TopicPrinter, decoders
from tests.support.memory_registry import MemoryRegistry

TIME_MS = 1_716_233_877_005


def guess(*data: bytes | None, is_key: bool = False) -> tuple[str, list[str]]:
    found = FormatGuess(decoders("t", None, is_key=is_key))
    shown = [found.shown(each) for each in data]
    return found.description, shown


@pytest.mark.parametrize(
    ("data", "description", "shown"),
    [
        (b"plain", "KAFKA_STRING", "plain"),
        (b'{"ab": 1}', "JSON or KAFKA_STRING", '{"ab": 1}'),
        (b"\x00\x00\x00\x07", "KAFKA_INT", "7"),
        (struct.pack(">d", 1.5), "KAFKA_BIGINT or KAFKA_DOUBLE", "4609434218613702656"),
        (b"\xff\xfe\x00", "UNRECOGNIZED_BYTES", "\\xFF\\xFE\\x00"),
        (None, UNDECIDED, "<null>"),
    ],
)
def test_the_format_of_values_is_guessed(data: bytes | None, description: str, shown: str) -> None:
    assert guess(data) == (description, [shown])


def test_a_format_stays_possible_only_while_it_reads_everything() -> None:
    assert guess(b"12", b"x")[0] == "KAFKA_STRING"
    assert guess(None, b"12")[0] == "JSON or KAFKA_STRING"


def test_keys_may_have_windows() -> None:
    key = b"a" + TIME_MS.to_bytes(8, "big")
    description, shown = guess(key, is_key=True)
    assert description == "TUMBLING(KAFKA_STRING)"
    assert shown == [f"[a@{TIME_MS}/-]"]


def test_a_record_is_printed_after_its_formats_once() -> None:
    printer = TopicPrinter("t", None)
    record = ConsumerRecord("t", 3, 0, TIME_MS, b"a", b'{"x":1}')
    assert list(printer.lines(record)) == [
        "Key format: KAFKA_STRING",
        "Value format: JSON or KAFKA_STRING",
        'rowtime: 2024/05/20 19:37:57.005 Z, key: a, value: {"x":1}, partition: 3',
    ]
    assert len(list(printer.lines(record))) == 1


def test_avro_is_found_by_its_registered_schema() -> None:
    registry = MemoryRegistry()
    schema = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}]}
    data = RegistryAvroSerde(registry, json.dumps(schema)).serialize("t", {"x": 5})
    printer = TopicPrinter("t", registry)
    lines = list(printer.lines(ConsumerRecord("t", 0, 0, TIME_MS, None, data)))
    assert lines[1] == "Value format: AVRO"
    assert 'value: {"x": 5}' in lines[2]


@given(st.lists(st.binary(max_size=40), max_size=5), st.booleans())
def test_bytes_of_any_kind_are_printed(data: list[bytes], is_key: bool) -> None:
    found = FormatGuess(decoders("t", None, is_key=is_key))
    for each in data:
        assert isinstance(found.shown(each), str)
