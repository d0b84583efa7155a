"""RegistryAvroSerde: round trips, evolution, subjects, and errors that say what to do."""

import json
import threading
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.errors import RegistryError, SchemaError, SerdeError
from broker.serde import RegistryAvroSerde, RegistryJsonSerde
from broker.serde.registry import CachedRegistry
from broker.serde.schema.schema import Reference, Schema, SchemaKind
from broker.serde.subjects import SubjectStrategy, record_name, topic_name, topic_record_name
from tests.broker.serde.avro_values import Json, schemas_with_values
from tests.support.memory_registry import MemoryRegistry

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
}
LATER_ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "double"},
        {"name": "customer", "type": "string", "default": "nobody"},
    ],
}
VALUE = {"id": 3, "note": "hi"}
BASKET = {
    "type": "record",
    "name": "Basket",
    "namespace": "shop",
    "fields": [{"name": "orders", "type": {"type": "array", "items": "Order"}}],
}
NODE: dict[str, Json] = {
    "type": "record",
    "name": "Node",
    "fields": [{"name": "next", "type": ["null", "Node"]}],
}


def test_the_bytes_are_prefix_and_avro() -> None:
    serde = RegistryAvroSerde(MemoryRegistry(), ORDER)
    assert serde.serialize("orders", VALUE) == bytes.fromhex("0000000001 06 02 04 6869")
    assert serde.deserialize("orders", bytes.fromhex("0000000001 06 02 04 6869")) == VALUE


def test_null_is_null_both_ways_and_asks_nobody() -> None:
    registry = MemoryRegistry()
    serde = RegistryAvroSerde(registry, ORDER)
    assert serde.serialize("orders", None) is None
    assert serde.deserialize("orders", None) is None
    assert registry.calls == []


@pytest.mark.slow
@given(schemas_with_values())
def test_values_of_any_schema_come_back(typed: tuple[Json, object]) -> None:
    schema, value = typed
    registry = MemoryRegistry()
    data = RegistryAvroSerde(registry, schema).serialize("t", value)
    assert RegistryAvroSerde(registry).deserialize("t", data) == value
    assert RegistryAvroSerde(registry, reader=schema).deserialize("t", data) == value


@pytest.mark.slow
@given(schemas_with_values(), st.data())
def test_damaged_bytes_are_values_or_serde_errors(
    typed: tuple[Json, object], drawn: st.DataObject
) -> None:
    schema, value = typed
    serde = RegistryAvroSerde(MemoryRegistry(), schema)
    good = serde.serialize("t", value)
    assert good is not None
    cut = drawn.draw(st.integers(0, len(good)))
    noise = drawn.draw(st.binary(max_size=30))
    for data in (good[:cut], good[:cut] + noise, good[:5] + noise, noise):
        with suppress(SerdeError):
            serde.deserialize("t", data)


@pytest.mark.slow
@given(schemas_with_values(), st.dictionaries(st.text(max_size=3), st.integers()) | st.text())
def test_other_values_are_refused_with_serde_errors_only(
    typed: tuple[Json, object], value: object
) -> None:
    serde = RegistryAvroSerde(MemoryRegistry(), typed[0])
    with suppress(SerdeError):
        serde.serialize("t", value)


def test_logical_types_are_pythons_own() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
            },
        ],
    }
    value = {
        "day": date(2024, 2, 29),
        "at": datetime(2024, 2, 29, 1, 2, 3, 4000, tzinfo=UTC),
        "price": Decimal("12.50"),
    }
    serde = RegistryAvroSerde(MemoryRegistry(), schema)
    assert serde.deserialize("t", serde.serialize("t", value)) == value


def test_a_branch_of_a_union_may_be_named() -> None:
    fields = [{"name": "x", "type": "int", "default": 0}]
    schema = [{"type": "record", "name": name, "fields": fields} for name in ("A", "B")]
    serde = RegistryAvroSerde(MemoryRegistry(), schema)
    assert serde.serialize("t", ("B", {"x": 1})) == b"\0\0\0\0\1\2\2"
    assert serde.deserialize("t", b"\0\0\0\0\1\2\2") == {"x": 1}


def test_a_reader_sees_old_and_new_records_as_its_own() -> None:
    registry = MemoryRegistry()
    old = RegistryAvroSerde(registry, ORDER).serialize("orders", VALUE)
    new = RegistryAvroSerde(registry, LATER_ORDER).serialize("orders", {"id": 4, "customer": "z"})
    reader = RegistryAvroSerde(registry, reader=LATER_ORDER)
    assert reader.deserialize("orders", old) == {"id": 3.0, "customer": "nobody"}
    assert reader.deserialize("orders", new) == {"id": 4.0, "customer": "z"}


def test_a_reader_that_does_not_fit_is_a_serde_error() -> None:
    registry = MemoryRegistry()
    data = RegistryAvroSerde(registry, ORDER).serialize("orders", VALUE)
    reader = {"type": "record", "name": "shop.Order", "fields": [{"name": "x", "type": "int"}]}
    with pytest.raises(SerdeError, match="cannot decode as Avro"):
        RegistryAvroSerde(registry, reader=reader).deserialize("orders", data)


@pytest.mark.parametrize(
    ("strategy", "is_key", "subject"),
    [
        (topic_name, False, "orders-value"),
        (topic_name, True, "orders-key"),
        (record_name, False, "shop.Order"),
        (topic_record_name, True, "orders-shop.Order"),
        (lambda topic, is_key, name: f"{topic}|{is_key}|{name}", False, "orders|False|shop.Order"),
    ],
)
def test_the_subject_is_what_the_strategy_says(
    strategy: SubjectStrategy, is_key: bool, subject: str
) -> None:
    registry = MemoryRegistry()
    serde = RegistryAvroSerde(registry, ORDER, subject=strategy, is_key=is_key)
    data = serde.serialize("orders", VALUE)
    assert registry.version(subject).schema_id == 1
    assert serde.deserialize("orders", data) == VALUE


def test_a_subject_by_name_needs_a_name() -> None:
    serde = RegistryAvroSerde(MemoryRegistry(), '"string"', subject=record_name)
    with pytest.raises(SerdeError, match="no name"):
        serde.serialize("t", "a")


def test_the_registry_is_asked_once_per_topic_and_id() -> None:
    registry = MemoryRegistry()
    writer, reader = RegistryAvroSerde(registry, ORDER), RegistryAvroSerde(registry)
    for _ in range(3):
        for topic in ("a", "b"):
            reader.deserialize(topic, writer.serialize(topic, VALUE))
    assert registry.calls == ["register a-value", "schema 1", "register b-value"]


def test_without_registering_the_schema_must_be_there() -> None:
    registry = MemoryRegistry()
    with pytest.raises(SerdeError, match='subject "orders-value"') as found:
        RegistryAvroSerde(registry, ORDER, auto_register=False).serialize("orders", VALUE)
    assert "auto_register=True" in found.value.hint
    RegistryAvroSerde(registry, ORDER).serialize("orders", VALUE)
    serde = RegistryAvroSerde(registry, ORDER, auto_register=False)
    assert serde.serialize("orders", VALUE) == bytes.fromhex("0000000001 06 02 04 6869")


def test_the_latest_schema_is_followed_as_it_changes() -> None:
    registry, clock = MemoryRegistry(), ManualClock()
    cached = CachedRegistry(registry, latest_ms=1_000, clock=clock)
    serde = RegistryAvroSerde(cached, use_latest=True)
    with pytest.raises(SerdeError, match="orders-value"):
        serde.serialize("orders", VALUE)
    RegistryAvroSerde(registry, ORDER).serialize("orders", VALUE)
    clock.advance(1_000)
    assert serde.serialize("orders", VALUE) == bytes.fromhex("0000000001 06 02 04 6869")
    RegistryAvroSerde(registry, LATER_ORDER).serialize("orders", {"id": 1})
    clock.advance(1_000)
    data = serde.serialize("orders", {"id": 1, "customer": "z"})
    assert serde.deserialize("orders", data) == {"id": 1.0, "customer": "z"}


def test_without_a_schema_there_is_only_reading() -> None:
    with pytest.raises(SerdeError, match="no schema to write with"):
        RegistryAvroSerde(MemoryRegistry()).serialize("t", VALUE)


def test_values_may_be_converted_both_ways() -> None:
    serde = RegistryAvroSerde(
        MemoryRegistry(),
        '"string"',
        to_value=lambda value: str(value)[::-1],
        from_value=lambda value: ("read", value),
    )
    data = serde.serialize("t", 123)
    assert data == b"\0\0\0\0\1\x06321"
    assert serde.deserialize("t", data) == ("read", "321")


def test_references_are_resolved() -> None:
    registry = MemoryRegistry()
    registry.register("shop.Order", Schema(json.dumps(ORDER)))
    basket = Schema(json.dumps(BASKET), references=(Reference("shop.Order", "shop.Order", 1),))
    serde = RegistryAvroSerde(registry, basket, subject=record_name)
    data = serde.serialize("t", {"orders": [VALUE]})
    assert RegistryAvroSerde(registry).deserialize("t", data) == {"orders": [VALUE]}
    union = Schema('["null", "shop.Order"]', references=basket.references)
    either = RegistryAvroSerde(registry, union)
    assert either.deserialize("t", either.serialize("t", VALUE)) == VALUE


@pytest.mark.parametrize(
    "schema", ["{", '"nothing"', {"type": "record", "name": "a"}, {"type": {1}}]
)
def test_a_wrong_schema_is_refused_at_once(schema: Json) -> None:
    with pytest.raises(SchemaError):
        RegistryAvroSerde(MemoryRegistry(), schema)


def test_bytes_of_another_kind_name_the_right_serde() -> None:
    registry = MemoryRegistry()
    data = RegistryJsonSerde(registry, {"type": "object"}).serialize("t", {})
    with pytest.raises(SerdeError, match="JSON, not AVRO") as found:
        RegistryAvroSerde(registry).deserialize("t", data)
    assert "RegistryJsonSerde" in found.value.hint


def test_a_registered_schema_that_is_wrong_is_a_serde_error() -> None:
    registry = MemoryRegistry()
    registry.register("t-value", Schema("{"))
    with pytest.raises(SerdeError, match="id 1 cannot be used"):
        RegistryAvroSerde(registry).deserialize("t", b"\0\0\0\0\1a")
    with pytest.raises(SerdeError, match="not JSON"):
        RegistryAvroSerde(registry, use_latest=True).serialize("t", "a")


class Unreachable(MemoryRegistry):
    """A registry that is away."""

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        raise RegistryError(503, "away")

    def schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        raise RegistryError(503, "away")


def test_an_absent_registry_is_no_fault_of_the_record() -> None:
    serde = RegistryAvroSerde(Unreachable(), ORDER)
    with pytest.raises(RegistryError, match="away"):
        serde.serialize("t", VALUE)
    with pytest.raises(RegistryError, match="away"):
        serde.deserialize("t", b"\0\0\0\0\1a")


def nested(depth: int) -> object:
    value: object = None
    for _ in range(depth):
        value = {"next": value}
    return value


def test_deep_values_of_recursive_types_come_back() -> None:
    serde = RegistryAvroSerde(MemoryRegistry(), NODE)
    assert serde.deserialize("t", serde.serialize("t", nested(100))) == nested(100)
    padded = RegistryAvroSerde(
        MemoryRegistry(),
        {**NODE, "fields": [*NODE["fields"], {"name": "text", "type": "string", "default": "x"}]},
    )
    found = padded.deserialize("t", padded.serialize("t", nested(100)))
    for _ in range(100):
        assert isinstance(found, dict)
        assert found["text"] == "x"
        found = found["next"]
    assert found is None


def test_bytes_and_values_too_deep_for_the_stack_are_refused() -> None:
    serde = RegistryAvroSerde(MemoryRegistry(), NODE)
    with pytest.raises(SerdeError, match="nested more than"):
        serde.serialize("t", nested(100_000))
    serde.serialize("t", nested(1))
    with pytest.raises(SerdeError, match="recursion"):
        serde.deserialize("t", b"\0\0\0\0\1" + b"\2" * 1_000_000 + b"\0")


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "array", "items": "null"}, "no bytes"),
        (
            {"type": "map", "values": {"type": "array", "items": {**NODE, "fields": []}}},
            "no bytes",
        ),
        ({**NODE, "fields": [{"name": "x", "type": "Node"}]}, "contains itself"),
        (
            [
                {
                    "type": "record",
                    "name": f"T{number}",
                    "fields": [{"name": "x", "type": f"T{number - 1}" if number else "int"}],
                }
                for number in range(3_000)
            ],
            "deep",
        ),
    ],
)
def test_schemas_whose_values_have_no_limit_are_not_read(schema: Json, message: str) -> None:
    registry = MemoryRegistry()
    registry.register("t-value", Schema(json.dumps(schema)))
    with pytest.raises(SerdeError, match=message):
        RegistryAvroSerde(registry).deserialize("t", b"\0\0\0\0\1\2\2\2\2")


def test_threads_may_share_a_serde() -> None:
    serde = RegistryAvroSerde(MemoryRegistry(), ORDER)
    wrong: list[object] = []

    def work(number: int) -> None:
        for turn in range(300):
            value = {"id": number * 1_000 + turn, "note": str(turn) * number}
            if serde.deserialize("t", serde.serialize("t", value)) != value:
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_schema_of_another_kind_is_refused_at_once() -> None:
    with pytest.raises(SchemaError, match="JSON, but AVRO is needed"):
        RegistryAvroSerde(MemoryRegistry(), Schema("{}", SchemaKind.JSON))
