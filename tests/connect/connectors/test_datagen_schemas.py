"""Avro schemas with arg.properties: what values they stand for, and what is refused."""

import json
import re
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from connect import data
from connect.connectors.datagen.columns import Run
from connect.connectors.datagen.quickstarts import QUICKSTARTS
from connect.connectors.datagen.random_avro import RecordGenerator, read_record, read_schema
from connect.data import Struct
from connect.errors import ConfigError


def generator_of(kind: object, **properties: object) -> RecordGenerator:
    if properties:
        base = kind if isinstance(kind, dict) else {"type": kind}
        kind = {**base, "arg.properties": properties}
    return read_schema(
        json.dumps({"type": "record", "name": "r", "fields": [{"name": "f", "type": kind}]})
    )


def values_of(kind: object, count: int = 500, **properties: object) -> list[object]:
    generator = generator_of(kind, **properties)
    values = list(generator.fields[0].column(Run(Random(3), range(count))))
    for value in values:
        data.validate(generator.fields[0].schema, value)
    return values


@pytest.mark.parametrize(
    "kind",
    [
        "int",
        "long",
        "float",
        "double",
        "boolean",
        "string",
        "bytes",
        {"type": "enum", "name": "e", "symbols": ["A", "B"]},
        {"type": "fixed", "name": "x", "size": 4},
        {"type": "array", "items": "int"},
        {"type": "map", "values": "string"},
        {"type": "record", "name": "inner", "fields": [{"name": "a", "type": "long"}]},
        {"type": "long", "logicalType": "timestamp-millis"},
        {"type": "int", "logicalType": "date"},
        {"type": "int", "logicalType": "time-millis"},
        {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        ["null", "string"],
        ["double"],
    ],
)
def test_values_of_every_type_fit_its_schema(kind: object) -> None:
    assert len(values_of(kind)) == 500


def test_a_range_includes_its_minimum_and_not_its_maximum() -> None:
    assert set(values_of("int", range={"min": 3, "max": 6})) == {3, 4, 5}
    assert all(
        isinstance(value, float) and 0.5 <= value < 0.75
        for value in values_of("double", range={"min": 0.5, "max": 0.75})
    )


def test_a_long_over_its_whole_range_is_made_of_more_bits_than_a_float_has() -> None:
    values = values_of("long", 2_000)
    assert len({value % 1_024 for value in values if isinstance(value, int)}) > 700


@pytest.mark.parametrize(
    ("iteration", "values"),
    [
        ({"start": 5}, [5, 6, 7, 8]),
        ({"start": 0, "restart": 3}, [0, 1, 2, 0]),
        ({"start": 0, "restart": 5, "step": 2}, [0, 2, 4, 0]),
        ({"start": 3, "restart": 1}, [3, 2, 3, 2]),
        ({"start": 0, "restart": 4, "initial": 2}, [2, 3, 0, 1]),
        ({"start": 2_147_483_646}, [2_147_483_646, 2_147_483_647, 2_147_483_646, 2_147_483_647]),
    ],
)
def test_an_iteration_goes_on_in_steps_and_restarts(
    iteration: dict[str, int], values: list[int]
) -> None:
    assert values_of("int", 4, iteration=iteration) == values


def test_flags_alternate_in_an_iteration_and_follow_their_odds() -> None:
    assert values_of("boolean", 3, iteration={"start": True}) == [True, False, True]
    assert set(values_of("boolean", odds=0.0)) == {False}
    assert set(values_of("boolean", odds=1.0)) == {True}


def test_strings_follow_pattern_length_prefix_and_suffix() -> None:
    for value in values_of("string", regex="[a-f]{3,20}", prefix="<", suffix=">"):
        assert isinstance(value, str)
        assert re.fullmatch("<[a-f]{3,20}>", value)
    assert {len(str(value)) for value in values_of("string", length={"min": 2, "max": 4})} == {2, 3}
    assert {len(str(value)) for value in values_of("string", length=5)} == {5}
    assert set(values_of("string", numbered={"prefix": "n", "count": 2})) == {"n1", "n2"}
    many = values_of("string", 5_000, numbered={"prefix": "n", "count": 1_000_000})
    assert all(re.fullmatch("n[1-9][0-9]{0,6}", str(value)) for value in many)


def test_options_come_from_the_schema_or_a_file(tmp_path: Path) -> None:
    assert set(values_of("string", options=["a", "b"])) == {"a", "b"}
    assert set(values_of("double", options=[1, 2.5])) == {1.0, 2.5}
    file = tmp_path / "nouns.json"
    file.write_text('["cat", "dog"]')
    listed = values_of("string", options={"file": str(file), "encoding": "json"})
    assert set(listed) == {"cat", "dog"}


def test_options_of_records_become_structs() -> None:
    fields = [{"name": "month", "type": "string"}, {"name": "day", "type": "int"}]
    kind = {"type": "record", "name": "date", "fields": fields}
    values = values_of(kind, options=[{"month": "May", "day": 2}])
    assert isinstance(values[0], Struct)
    assert values[0].to_dict() == {"month": "May", "day": 2}


def test_maps_take_their_keys_from_properties() -> None:
    kind = {"type": "map", "values": "int"}
    for value in values_of(kind, length=3, keys={"options": ["a", "b"]}):
        assert isinstance(value, dict)
        assert set(value) <= {"a", "b"}


def test_decimals_have_their_scale() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    for value in values_of(kind):
        assert isinstance(value, Decimal)
        assert value.as_tuple().exponent == -2
        assert 0 <= value < 100


def test_a_type_can_be_used_again_by_its_name() -> None:
    inner = {"type": "enum", "name": "side", "symbols": ["L", "R"]}
    made = read_record(
        {
            "type": "record",
            "namespace": "n",
            "name": "r",
            "fields": [{"name": "a", "type": inner}, {"name": "b", "type": "side"}],
        }
    )
    assert made.schema.name == "n.r"
    assert set(made.fields[1].column(Run(Random(1), range(50)))) == {"L", "R"}


@pytest.mark.parametrize(
    ("kind", "properties", "why"),
    [
        ("text", {}, '"text" is neither an Avro type'),
        (["int", "string"], {}, "a union of several types"),
        ("int", {"range": {"min": 3, "max": 3}}, "the range from 3 to 3 is empty"),
        ("int", {"range": 7}, "7 is not a JSON object"),
        ("int", {"range": {"min": "low"}}, "\"min\" is not a number: 'low'"),
        ("int", {"iteration": {"start": 1, "restart": 1}}, "cannot restart at its start"),
        ("int", {"iteration": {"start": 1, "restart": 5, "step": -1}}, "never reaches its restart"),
        ("string", {"regexp": "a"}, 'unknown property "regexp"'),
        ("string", {"options": []}, "options must be a list of values"),
        ("int", {"options": ["a"]}, "an option does not match the schema"),
        ("string", {"options": {"file": "none", "encoding": "json"}}, "cannot be read"),
        ("string", {"options": {"file": "none"}}, '"encoding": "json"'),
        ("string", {"length": {"min": 4, "max": 4}}, "there is no length from 4 to below 4"),
        ({"type": "enum", "name": "e"}, {}, "the enum has no symbols"),
        ("int", {"time": True}, "cannot hold the record's time"),
    ],
)
def test_what_cannot_be_generated_is_refused_with_field_and_reason(
    kind: object, properties: dict[str, object], why: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        generator_of(kind, **properties)
    assert why in caught.value.message
    assert caught.value.at == 'field "f"'


@pytest.mark.parametrize("text", ["{", '"string"', '{"type": "record", "name": "r"}'])
def test_a_schema_that_is_not_a_record_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        read_schema(text)


@pytest.mark.parametrize("name", QUICKSTARTS)
def test_quickstarts_have_a_key_field_and_a_schema(name: str) -> None:
    quickstart = QUICKSTARTS[name]
    made = read_record(quickstart.schema)
    assert quickstart.key_field in made.schema.positions
    assert (made.schema.name or "").startswith("ksql.")
