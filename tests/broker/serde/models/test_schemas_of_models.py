"""Schemas that are derived of type hints, and hints that have none."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID, uuid4

import msgspec
import pydantic
import pytest

from broker.errors import RegistryError, SchemaError
from broker.serde import (
    DecimalDigits,
    FieldNumber,
    LocalTime,
    ModelSerde,
    avro,
    json_schema,
    protobuf,
)
from broker.serde.schema.compatibility.levels import CompatibilityLevel, incompatibilities
from broker.serde.schema.parsing import parse_schema
from tests.broker.serde.models.sample_models import (
    Address,
    Card,
    Cash,
    Colour,
    Customer,
    Line,
    Node,
    Order,
    Point,
    Visit,
)
from tests.support.memory_registry import MemoryRegistry


def schema_of(form: Any, model: Any, **options: Any) -> Any:
    """The JSON of a derived schema."""
    serde: ModelSerde[Any] = form(model, MemoryRegistry(), **options)
    return json.loads(serde.schema.text)


def avro_type(hint: Any) -> Any:
    """The Avro type of a field with a hint."""
    model = msgspec.defstruct("Model", [("f", hint)], module="shop")
    return schema_of(avro, model)["fields"][0]["type"]


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (str, "string"),
        (int, "long"),
        (datetime, {"type": "long", "logicalType": "timestamp-micros"}),
        (
            Annotated[datetime, LocalTime],
            {"type": "long", "logicalType": "local-timestamp-micros"},
        ),
        (Decimal, {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}),
        (
            Annotated[Decimal, DecimalDigits(10, 2)],
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        ),
        (UUID, {"type": "string", "logicalType": "uuid"}),
        (list[int], {"type": "array", "items": "long"}),
        (tuple[int, ...], {"type": "array", "items": "long"}),
        (frozenset[str], {"type": "array", "items": "string"}),
        (dict[str, bytes], {"type": "map", "values": "bytes"}),
        (int | None, ["null", "long"]),
        (int | str | None, ["null", "long", "string"]),
        (list[int | None], {"type": "array", "items": ["null", "long"]}),
        (
            Colour,
            {
                "type": "enum",
                "name": "Colour",
                "namespace": Colour.__module__,
                "doc": "What it looks like.",
                "symbols": ["RED", "BLUE"],
            },
        ),
    ],
)
def test_a_hint_has_an_avro_type(hint: Any, expected: object) -> None:
    assert avro_type(hint) == expected


def test_a_record_has_names_docs_and_defaults() -> None:
    found = schema_of(avro, Line, namespace="shop")
    assert {name: found[name] for name in ("type", "name", "namespace", "doc")} == {
        "type": "record",
        "name": "Line",
        "namespace": "shop",
        "doc": "What was bought.",
    }
    assert [each.get("default", "none") for each in found["fields"]] == [
        "none",
        "none",
        1,
        None,
        "LARGE",
    ]
    assert found["fields"][2]["type"] == "int"


CARD, POINT = Card("5"), Point(1.5)


@dataclass(frozen=True)
class Defaults:
    __schema_namespace__ = "shop"

    payment: Cash | Card | None = CARD
    raw: bytes = b"\0\xff"
    price: Decimal = Decimal("-1.5")
    point: Point = POINT
    key: UUID = field(default_factory=uuid4)
    many: dict[str, int] = field(default_factory=dict)


def test_a_default_is_of_the_first_type_of_its_union_and_one_that_changes_is_none() -> None:
    payment, raw, price, point, key, many = schema_of(avro, Defaults)["fields"]
    assert payment["type"][0]["name"] == "Card"
    assert payment["type"][1] == "null"
    assert payment["default"] == {"number": "5"}
    assert raw["default"] == "\0\xff"
    assert price["default"].encode("latin-1") == (-1_500_000_000).to_bytes(4, signed=True)
    assert point["default"] == {"x": 1.5, "y": 0.0}
    assert "default" not in key
    assert many["default"] == {}


def test_a_model_that_contains_itself_is_named_there() -> None:
    fields = schema_of(avro, Node, namespace="")["fields"]
    assert fields[1]["type"] == {"type": "array", "items": "Node"}
    assert fields[2]["type"] == ["null", "Node"]
    found = schema_of(json_schema, Node)
    assert found["title"] == "Node"
    assert found["properties"]["children"]["items"] == {"$ref": "#"}


def test_names_of_fields_are_those_that_others_see() -> None:
    assert schema_of(avro, Visit)["fields"][0]["name"] == "pageName"
    customer = schema_of(avro, Customer)["fields"][0]
    assert (customer["name"], customer["doc"]) == ("fullName", "as on the letters")
    floor = schema_of(avro, Address)["fields"][1]
    assert (floor["type"], floor["default"]) == (["null", "long"], None)


@dataclass
class Owner:
    customer: Customer
    line: Line | None = None


def test_a_json_schema_is_closed_and_has_its_definitions_at_the_top() -> None:
    found = schema_of(json_schema, Owner)
    assert found["title"] == "Owner"
    assert found["additionalProperties"] is False
    assert found["required"] == ["customer"]
    assert set(found["$defs"]) >= {"Line", "Colour", "Size"}
    assert "$defs" not in found["properties"]["customer"]
    assert schema_of(json_schema, Customer)["properties"]["fullName"]["type"] == "string"


@dataclass
class Numbered:
    """Two lines

    of text."""

    __schema_namespace__ = "shop"

    first: Annotated[int, FieldNumber(5)]
    payment: Card | Cash
    colour: Colour
    lines: list[Line]
    last: Annotated[str | None, FieldNumber(1)] = None


def test_a_protobuf_file_has_numbers_oneofs_and_enums() -> None:
    text = protobuf(Numbered, MemoryRegistry()).schema.text
    for line in (
        "package shop;",
        'import "confluent/type/decimal.proto";',
        "// Two lines\n//\n// of text.\nmessage Numbered {\n  int64 first = 5;\n  oneof payment {\n"
        "    Card payment_card = 6;\n    Cash payment_cash = 7;\n  }\n  Colour colour = 8;\n"
        "  repeated Line lines = 9;\n  optional string last = 1;\n}",
        "  COLOUR_UNSPECIFIED = 0;\n  COLOUR_RED = 1;\n  COLOUR_BLUE = 2;\n",
        "  SIZE_SMALL = 0;\n  SIZE_LARGE = 5;\n",
    ):
        assert line in text


class Opaque:
    """No model."""


@pytest.mark.parametrize(
    ("form", "hint", "reason"),
    [
        (avro, Opaque, 'schemas do not support the type "Opaque"'),
        (json_schema, Opaque, "Opaque"),
        (protobuf, complex, 'schemas do not support the type "complex"'),
        (avro, list[Opaque], 'schemas do not support the type "Opaque"'),
        (avro, dict[int, str], "whose keys are not strings"),
        (avro, tuple[int, str], r"use tuple\[T, ...\]"),
        (avro, list, 'schemas do not support the type "list"'),
        (avro, datetime | int, "an Avro union can contain each type only once"),
        (avro, Annotated[str, LocalTime], "a str marked as local"),
        (protobuf, list[list[int]], "it has no list in a list"),
        (protobuf, list[int | None], "None in a list"),
        (protobuf, list[int] | None, "a list or map cannot be None"),
        (protobuf, dict[str, Card | Cash], "no union in a list or map"),
        (protobuf, Annotated[datetime, LocalTime], "without a time zone"),
    ],
)
def test_a_hint_without_a_schema_is_refused_with_its_field(
    form: Any, hint: Any, reason: str
) -> None:
    model = msgspec.defstruct("Model", [("first", int), ("odd", hint)], module="shop")
    with pytest.raises(SchemaError, match=reason) as caught:
        form(model, MemoryRegistry())
    assert 'field "odd" of "Model"' in str(caught.value)


def test_a_default_that_does_not_fit_is_refused() -> None:
    model = msgspec.defstruct("Model", [("odd", int, "text")], module="shop")
    with pytest.raises(SchemaError, match=r"the default does not match its type: .* not str"):
        avro(model, MemoryRegistry())


def test_two_classes_of_one_name_are_refused() -> None:
    other = msgspec.defstruct("Line", [("x", int)], module=Line.__module__)
    model = msgspec.defstruct("Model", [("a", Line), ("b", other)], module="shop")
    with pytest.raises(SchemaError, match='two classes have the name "Line"'):
        avro(model, MemoryRegistry())


def test_only_models_are_messages() -> None:
    with pytest.raises(SchemaError, match="only models have a Protobuf schema"):
        protobuf(list[int], MemoryRegistry())


@pytest.mark.parametrize("form", [avro, json_schema, protobuf])
def test_a_field_with_a_default_may_be_added(form: Any) -> None:
    # Each class is a version of one model.
    old = msgspec.defstruct("Sale", [("id", int)], module="shop")
    new = msgspec.defstruct("Sale", [("id", int), ("note", str | None, None)], module="shop")
    other = msgspec.defstruct("Sale", [("id", list[str])], module="shop")
    parsed = [parse_schema(form(each, MemoryRegistry()).schema) for each in (old, new, other)]
    assert incompatibilities(CompatibilityLevel.BACKWARD, parsed[1], [parsed[0]]) == []
    assert incompatibilities(CompatibilityLevel.BACKWARD, parsed[2], [parsed[0]])


class Strict(MemoryRegistry):
    """A registry that refuses what is not compatible."""

    def register(self, subject: str, schema: Any, *, normalize: bool = False) -> int:
        """The id of a schema that the latest one's records can be read with."""
        try:
            latest = parse_schema(self.version(subject).schema)
        except RegistryError:
            return super().register(subject, schema)
        found = incompatibilities(CompatibilityLevel.BACKWARD, parse_schema(schema), [latest])
        if found:
            raise RegistryError(409, f"incompatible: {found[0]}")
        return super().register(subject, schema)


class Person(pydantic.BaseModel):
    name: str


@pytest.mark.parametrize("form", [avro, json_schema, protobuf])
def test_a_change_that_breaks_readers_is_refused_when_it_is_checked(form: Any) -> None:
    registry = Strict()
    old = msgspec.defstruct("Person", [("name", str)], module=__name__)
    new = msgspec.defstruct("Person", [("name", list[int])], module=__name__)
    form(old, registry).check("people")
    with pytest.raises(RegistryError, match='"Person" for subject "people-value": inc') as caught:
        form(new, registry).check("people")
    assert caught.value.code == 409
    assert "add defaults to new fields" in str(caught.value)
    assert form(Person, registry).check("people") >= 1


def test_the_whole_order_has_a_schema_of_each_binary_format() -> None:
    for form in (avro, protobuf):
        assert parse_schema(form(Order, MemoryRegistry()).schema).record_name() == (
            f"{Order.__module__}.Order"
        )
