"""JSON_SR: rows as JSON behind the id of their schema."""

import contextlib
import json
from decimal import Decimal

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import SchemaError, SerdeError
from broker.serde.schema.schema import Schema, SchemaKind
from broker.serde.wire_format import frame
from sql.datatypes import BIGINT, INT, STRING, Column, DataType, DecimalType
from sql.rows.json_sr_rows import JSON_SR
from sql.rows.row_format import Row, RowOptions
from tests.support.columns import columns_and_rows, data_types, values_of
from tests.support.memory_registry import MemoryRegistry

OPTIONS = RowOptions()
KEY = RowOptions(is_key=True)
Given = tuple[tuple[Column, ...], Row]


@pytest.mark.slow
@given(columns_and_rows())
def test_rows_are_read_as_they_were_written(given: Given) -> None:
    columns, row = given
    serde = JSON_SR.serde(columns, OPTIONS, MemoryRegistry())
    assert serde.deserialize("t", serde.serialize("t", row)) == row


@pytest.mark.slow
@given(columns_and_rows())
def test_what_is_written_is_valid_by_the_registered_schema(given: Given) -> None:
    columns, row = given
    registry = MemoryRegistry()
    data = JSON_SR.serde(columns, OPTIONS, registry).serialize("t", row) or b""
    text = registry.version("t-value").schema.text
    jsonschema_rs.validate(json.loads(text), json.loads(data[5:]))


@pytest.mark.slow
@given(data_types().flatmap(lambda each: st.tuples(st.just(each), values_of(each))))
def test_a_single_column_is_written_alone(given: tuple[DataType, object]) -> None:
    data_type, value = given
    serde = JSON_SR.serde([Column("K", data_type)], KEY, MemoryRegistry())
    data = serde.serialize("t", (value,))
    assert (data is None) == (value is None)
    assert serde.deserialize("t", data) == (None if value is None else (value,))


def test_decimals_are_numbers_with_all_their_digits() -> None:
    serde = JSON_SR.serde([Column("A", DecimalType(6, 3))], OPTIONS, MemoryRegistry())
    assert serde.serialize("t", (Decimal("1.500"),)) == frame(1) + b'{"A":1.500}'


def test_bytes_are_read_whatever_their_schema_is() -> None:
    registry = MemoryRegistry()
    serde = JSON_SR.serde([Column("A", BIGINT), Column("B", STRING)], OPTIONS, registry)
    assert serde.deserialize("t", frame(77) + b'{"a": "5", "b": 1, "c": []}') == (5, "1")
    assert registry.calls == []


def test_ever_new_ids_do_not_fill_the_memory() -> None:
    serde = JSON_SR.serde([Column("A", BIGINT)], OPTIONS, MemoryRegistry())
    for schema_id in range(2_500):
        assert serde.deserialize("t", frame(schema_id) + b'{"A":1}') == (1,)


def given_schema(**schema: object) -> tuple[MemoryRegistry, RowOptions]:
    """A registry with a schema, and the options that name it."""
    registry = MemoryRegistry()
    text = json.dumps({"type": "object", **schema})
    schema_id = registry.register("x", Schema(text, SchemaKind.JSON))
    return registry, RowOptions(schema_id=schema_id)


def test_a_given_schema_fills_in_its_defaults() -> None:
    registry, options = given_schema(
        properties={
            "z": {"type": "integer", "default": 3},
            "a": {"type": "integer"},
            "n": {"oneOf": [{"type": "null"}, {"type": "string"}]},
            "left": {"type": "string"},
        },
        required=["a", "z"],
    )
    serde = JSON_SR.serde([Column("a", INT)], options, registry)
    assert serde.serialize("t", (1,)) == frame(1) + b'{"a":1,"z":3,"n":null}'
    assert registry.calls == ["register x", "schema 1"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": {"a": {}, "b": {"type": "string"}}, "required": ["b"]}, 'property "b"'),
        ({"properties": {"b": {}}, "additionalProperties": False}, 'lacks property "a"'),
    ],
)
def test_a_given_schema_that_does_not_suit_is_refused_at_once(
    schema: dict[str, object], message: str
) -> None:
    registry, options = given_schema(**schema)
    with pytest.raises(SchemaError, match=message):
        JSON_SR.serde([Column("a", INT)], options, registry)


def test_a_schema_of_another_kind_is_refused() -> None:
    registry = MemoryRegistry()
    options = RowOptions(schema_id=registry.register("x", Schema('"int"')))
    with pytest.raises(SchemaError, match="kind AVRO"):
        JSON_SR.serde([Column("a", INT)], options, registry)


@pytest.mark.slow
@given(columns_and_rows(), st.data())
def test_broken_bytes_raise_serde_errors_and_nothing_else(
    given: Given, data: st.DataObject
) -> None:
    columns, row = given
    serde = JSON_SR.serde(columns, OPTIONS, MemoryRegistry())
    written = bytearray(serde.serialize("t", row) or b"")
    for position in data.draw(st.lists(st.integers(0, len(written) - 1), max_size=3)):
        written[position] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(written)))
    for each in (bytes(written), bytes(written[:cut])):
        with contextlib.suppress(SerdeError):
            serde.deserialize("t", each)


@pytest.mark.parametrize("data", [b"", b"\0\0\0\0", b'{"A":1}', frame(1), frame(1) + b"[1]"])
def test_bytes_that_are_no_rows_are_refused(data: bytes) -> None:
    serde = JSON_SR.serde([Column("A", BIGINT)], OPTIONS, MemoryRegistry())
    with pytest.raises(SerdeError) as caught:
        serde.deserialize("t", data)
    assert caught.value.at == 'topic "t"'


def test_values_of_wrong_types_are_refused() -> None:
    serde = JSON_SR.serde([Column("A", BIGINT)], OPTIONS, MemoryRegistry())
    with pytest.raises(SerdeError, match="JSON_SR"):
        serde.serialize("t", ("a",))
