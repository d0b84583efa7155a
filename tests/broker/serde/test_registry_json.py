"""RegistryJsonSerde: round trips, validation both ways, references, and errors."""

from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import SchemaError, SerdeError
from broker.serde import RegistryAvroSerde, RegistryJsonSerde, record_name
from broker.serde.schema.schema import Reference, Schema, SchemaKind
from tests.support.memory_registry import MemoryRegistry

ORDER = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "note": {"type": ["string", "null"]}},
    "required": ["id"],
}
ORDER_SCHEMA = Schema(orjson.dumps(ORDER).decode(), SchemaKind.JSON)
VALUE = {"id": 3, "note": "hi"}
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=10,
)


def test_the_bytes_are_prefix_and_compact_json() -> None:
    serde = RegistryJsonSerde(MemoryRegistry(), ORDER)
    data = serde.serialize("orders", VALUE)
    assert data == b'\0\0\0\0\1{"id":3,"note":"hi"}'
    assert serde.deserialize("orders", data) == VALUE
    assert serde.serialize("orders", None) is None
    assert serde.deserialize("orders", None) is None


@given(ANYTHING.filter(lambda value: value is not None))
def test_any_json_comes_back_by_a_schema_that_allows_it(value: object) -> None:
    serde = RegistryJsonSerde(MemoryRegistry(), "true")
    assert serde.deserialize("t", serde.serialize("t", value)) == value


@pytest.mark.slow
@given(st.binary(max_size=30) | ANYTHING.map(orjson.dumps))
def test_any_bytes_are_values_or_serde_errors(data: bytes) -> None:
    registry = MemoryRegistry()
    registry.register("t-value", ORDER_SCHEMA)
    with suppress(SerdeError):
        RegistryJsonSerde(registry).deserialize("t", b"\0\0\0\0\1" + data)


def test_what_the_schema_does_not_allow_is_not_written() -> None:
    serde = RegistryJsonSerde(MemoryRegistry(), ORDER)
    with pytest.raises(SerdeError, match='"x" is not of type "integer" at #/id') as found:
        serde.serialize("orders", {"id": "x"})
    assert found.value.at == 'topic "orders"'


def test_what_the_schema_does_not_allow_is_not_read() -> None:
    registry = MemoryRegistry()
    data = RegistryJsonSerde(registry, ORDER, validate=False).serialize("orders", {"note": 1})
    with pytest.raises(SerdeError, match="does not allow it") as found:
        RegistryJsonSerde(registry).deserialize("orders", data)
    assert "validate=False" in found.value.hint
    careless = RegistryJsonSerde(registry, validate=False)
    assert careless.deserialize("orders", data) == {"note": 1}


def test_a_readers_schema_is_what_is_read_by() -> None:
    registry = MemoryRegistry()
    data = RegistryJsonSerde(registry, ORDER).serialize("orders", VALUE)
    strict = RegistryJsonSerde(registry, reader={"required": ["customer"]})
    with pytest.raises(SerdeError, match='"customer" is a required property'):
        strict.deserialize("orders", data)
    assert RegistryJsonSerde(registry, reader=ORDER).deserialize("orders", data) == VALUE


@pytest.mark.parametrize("value", [{1: 2}, {1}, object(), {"id": 2**70}, "\ud800"])
def test_values_that_are_no_json_are_serde_errors(value: object) -> None:
    serde = RegistryJsonSerde(MemoryRegistry(), "true")
    with pytest.raises(SerdeError, match="cannot encode as JSON"):
        serde.serialize("t", value)


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 3_000, b"nul", b"\xff"])
def test_bytes_that_are_no_json_are_serde_errors(data: bytes) -> None:
    registry = MemoryRegistry()
    registry.register("t-value", Schema("true", SchemaKind.JSON))
    with pytest.raises(SerdeError, match="cannot decode as JSON"):
        RegistryJsonSerde(registry).deserialize("t", b"\0\0\0\0\1" + data)


def test_references_are_followed_and_nothing_else_is_fetched() -> None:
    registry = MemoryRegistry()
    registry.register("order", ORDER_SCHEMA)
    basket = Schema(
        '{"type": "object", "properties": {"order": {"$ref": "order.json"}}}',
        SchemaKind.JSON,
        (Reference("order.json", "order", 1),),
    )
    serde = RegistryJsonSerde(registry, basket)
    assert serde.deserialize("t", serde.serialize("t", {"order": VALUE})) == {"order": VALUE}
    with pytest.raises(SerdeError, match="#/order/id"):
        serde.serialize("t", {"order": {"id": "x"}})
    with pytest.raises(SchemaError, match="not among the references"):
        RegistryJsonSerde(registry, {"$ref": "http://127.0.0.1:1/order.json"})


def test_the_title_is_the_records_name() -> None:
    registry = MemoryRegistry()
    RegistryJsonSerde(registry, ORDER, subject=record_name).serialize("t", VALUE)
    assert registry.version("Order").version == 1
    with pytest.raises(SerdeError, match="no name"):
        RegistryJsonSerde(registry, "true", subject=record_name).serialize("t", VALUE)


def test_values_may_be_converted_both_ways() -> None:
    serde = RegistryJsonSerde(
        MemoryRegistry(), ORDER, to_value=lambda each: {"id": each}, from_value=orjson.dumps
    )
    data = serde.serialize("t", 7)
    assert data == b'\0\0\0\0\1{"id":7}'
    assert serde.deserialize("t", data) == b'{"id":7}'


def test_the_latest_schema_may_be_taken_from_the_registry() -> None:
    registry = MemoryRegistry()
    registry.register("t-value", ORDER_SCHEMA)
    serde = RegistryJsonSerde(registry, use_latest=True)
    assert serde.serialize("t", VALUE) == b'\0\0\0\0\1{"id":3,"note":"hi"}'


@pytest.mark.parametrize("schema", ["{", "[]", {"type": "nothing"}, {"$ref": "elsewhere.json"}])
def test_a_wrong_schema_is_refused_at_once(schema: str | dict[str, object]) -> None:
    with pytest.raises(SchemaError):
        RegistryJsonSerde(MemoryRegistry(), schema)


def test_avro_bytes_name_the_right_serde() -> None:
    registry = MemoryRegistry()
    data = RegistryAvroSerde(registry, '"string"').serialize("t", "a")
    with pytest.raises(SerdeError, match="AVRO, not JSON") as found:
        RegistryJsonSerde(registry).deserialize("t", data)
    assert "RegistryAvroSerde" in found.value.hint
