"""Avro schemas: canonical texts, references, what is refused, and what fastavro gets."""

import io
import json
from contextlib import suppress

import fastavro
import pytest
from fastavro.utils import generate_one
from hypothesis import given, settings

from broker.errors import SchemaError
from broker.serde.schema.avro_schema import parse_avro
from broker.serde.schema.avro_types import digits_max
from tests.broker.serde.schema.avro_pairs import Json, schemas
from tests.broker.serde.schema.case_files import CASES
from tests.broker.serde.schema.schema_mutations import broken_texts

TEXTS = json.loads((CASES / "avro_texts.json").read_text())
REFUSED = json.loads((CASES / "avro_refused.json").read_text())
SAMPLES = tuple(json.dumps(each["text"]) for each in TEXTS if "references" not in each)


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case["name"])
def test_a_text_has_its_canonical_normalized_and_resolved_forms(case: Json) -> None:
    references = case.get("references", {})
    assert isinstance(references, dict)
    resolved = {name: json.dumps(each) for name, each in references.items()}
    schema = parse_avro(json.dumps(case["text"]), resolved)
    assert schema.canonical == case["canonical"]
    assert schema.formatted("") == case["canonical"]
    assert schema.normalized() == case.get("normalized", case["canonical"])
    assert schema.formatted("resolved") == case.get("resolved", case["canonical"])
    assert schema.record_name() == case.get("record")
    assert schema.source == case["text"]
    assert parse_avro(schema.canonical, resolved).canonical == schema.canonical
    assert parse_avro(schema.normalized(), resolved).normalized() == schema.normalized()


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["message"])
def test_a_wrong_schema_is_refused_with_a_reason(case: Json) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_avro(json.dumps(case["text"]), {})
    assert str(caught.value) == case["message"]


@pytest.mark.parametrize("text", ["", "string", "{", '{"type":"int"} x', "'int'", "\ud800"])
def test_a_text_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match="the text is not JSON"):
        parse_avro(text, {})


def nested(depth: int) -> str:
    return '{"type":"array","items":' * depth + '"int"' + "}" * depth


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"type":"array","items":' * 100_000, nested(250)],
    ids=["brackets", "open", "deep"],
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match=r"depth|deeper"):
        parse_avro(text, {})


def test_nesting_below_the_limit_is_read() -> None:
    assert parse_avro(nested(190), {}).canonical == nested(190)


def test_a_long_text_is_refused() -> None:
    with pytest.raises(SchemaError, match="characters, more than"):
        parse_avro(" " * (10 * 1024 * 1024) + '"int"', {})


def test_references_that_nest_too_deeply_together_are_refused() -> None:
    resolved = {}
    inner = "int"
    for index in range(80):
        resolved[f"R{index}"] = (
            f'{{"type":"record","name":"R{index}","fields":[{{"name":"a","type":"{inner}"}}]}}'
        )
        inner = f"R{index}"
    with pytest.raises(SchemaError, match="nested deeper than 200 levels"):
        parse_avro('{"type":"array","items":"R79"}', resolved)


def test_a_wrong_reference_is_named() -> None:
    with pytest.raises(SchemaError, match=r'reference "a\.B": no type'):
        parse_avro('"int"', {"a.B": "{}"})


def test_an_unknown_form_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match='no form "serialized"'):
        parse_avro('"int"', {}).formatted("serialized")


def test_fastavro_gets_types_of_references_and_names_without_a_namespace() -> None:
    schema = parse_avro(
        '{"type":"record","name":"n.R","fields":[{"name":"a","type":["null","T"]},'
        '{"name":"b","type":"T"}]}',
        {"T": '{"type":"record","name":"T","fields":[{"name":"x","type":"int"}]}'},
    )
    value = {"a": ("T", {"x": 1}), "b": {"x": 2}}
    written = io.BytesIO()
    fastavro.schemaless_writer(written, schema.fastavro, value)
    assert written.getvalue() == bytes([2, 2, 4])
    written.seek(0)
    read = fastavro.schemaless_reader(written, schema.fastavro, None)
    assert read == {"a": {"x": 1}, "b": {"x": 2}}


def test_fastavro_reads_bytes_where_a_decimal_is_wrong() -> None:
    schema = parse_avro('{"type":"bytes","logicalType":"decimal","precision":2,"scale":3}', {})
    assert fastavro.schemaless_reader(io.BytesIO(b"\x02a"), schema.fastavro, None) == b"a"


@pytest.mark.slow
@given(schemas())
@settings(max_examples=50, deadline=None)
def test_values_survive_fastavro_and_texts_survive_parsing(value: Json) -> None:
    schema = parse_avro(json.dumps(value), {})
    again = parse_avro(schema.normalized(), {})
    written = io.BytesIO()
    datum = generate_one(schema.fastavro)
    fastavro.schemaless_writer(written, schema.fastavro, datum)
    written.seek(0)
    fastavro.schemaless_reader(written, again.fastavro, None)
    assert again.canonical == parse_avro(again.canonical, {}).canonical


@pytest.mark.slow
@given(broken_texts(SAMPLES))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_schema_or_a_schema_error(text: str) -> None:
    with suppress(SchemaError):
        schema = parse_avro(text, {})
        assert parse_avro(schema.canonical, {}).normalized() == schema.normalized()


@pytest.mark.parametrize("size", [*range(1, 30), 100, 1000])
def test_digits_that_always_fit_in_so_many_bytes(size: int) -> None:
    assert digits_max(size) == len(str(2 ** (8 * size - 1) - 1)) - 1
