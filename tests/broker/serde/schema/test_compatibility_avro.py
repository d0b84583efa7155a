"""Compatibility of Avro schemas: a table of cases, Avro's own package and fastavro's reader."""

import io
import json
import re
from contextlib import suppress

import avro.compatibility
import avro.schema
import fastavro
import pytest
from fastavro.utils import generate_one
from hypothesis import given, settings

from broker.errors import SchemaError
from broker.serde.schema.avro_schema import AvroSchema, parse_avro
from broker.serde.schema.compatibility.avro import differences
from tests.broker.serde.schema.avro_pairs import Json, pairs
from tests.broker.serde.schema.case_files import CompatibilityCase, compatibility_cases
from tests.broker.serde.schema.schema_mutations import broken_texts

CASES = compatibility_cases("avro_compatibility.json")
SAMPLES = tuple(json.dumps(schema) for case in CASES for schema in (case.old, case.new))
MESSAGE = re.compile(r"\{errorType:'(\w+)', description:'.*?\(?path '(.*?)'")


def parsed(schema: object) -> AvroSchema:
    return parse_avro(json.dumps(schema), {})


def found(new: object, old: object) -> list[str]:
    matches = [MESSAGE.match(each) for each in differences(parsed(new), parsed(old))]
    return [f"{match[1]} {match[2]}" for match in matches if match is not None]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_has_its_differences_in_both_directions(case: CompatibilityCase) -> None:
    assert found(case.new, case.old) == case.backward
    assert found(case.old, case.new) == case.forward


@pytest.mark.slow
@given(pairs())
@settings(max_examples=100, deadline=None)
def test_the_verdict_is_that_of_avros_own_package(pair: tuple[Json, Json]) -> None:
    old, new = pair
    checker = avro.compatibility.ReaderWriterCompatibilityChecker()
    reader, writer = (avro.schema.parse(json.dumps(each)) for each in (new, old))
    verdict = checker.get_compatibility(reader, writer).compatibility
    compatible = verdict is avro.compatibility.SchemaCompatibilityType.compatible
    assert (found(new, old) == []) == compatible


@pytest.mark.slow
@given(pairs())
@settings(max_examples=100, deadline=None)
def test_fastavro_reads_what_is_compatible(pair: tuple[Json, Json]) -> None:
    old, new = parsed(pair[0]), parsed(pair[1])
    if differences(new, old):
        return
    written = io.BytesIO()
    fastavro.schemaless_writer(written, old.fastavro, generate_one(old.fastavro))
    written.seek(0)
    # Avro lets bytes be read as a string, though not all of them are one.
    with suppress(UnicodeDecodeError):
        fastavro.schemaless_reader(written, old.fastavro, new.fastavro)
        assert written.read() == b""


@pytest.mark.slow
@given(pairs())
@settings(max_examples=30, deadline=None)
def test_a_schema_is_compatible_with_itself(pair: tuple[Json, Json]) -> None:
    assert found(pair[1], pair[1]) == []


@pytest.mark.slow
@given(broken_texts(SAMPLES), broken_texts(SAMPLES))
@settings(max_examples=200, deadline=None)
def test_any_two_schemas_can_be_compared(old: str, new: str) -> None:
    with suppress(SchemaError):
        before, after = parse_avro(old, {}), parse_avro(new, {})
        assert all(MESSAGE.match(each) for each in differences(after, before))
        assert differences(before, before) == []


def test_a_message_says_which_field_lacks_a_default() -> None:
    old = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    new = {**old, "fields": [{"name": "a", "type": "int"}, {"name": "x", "type": "int"}]}
    assert differences(parsed(new), parsed(old)) == [
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'x' at path "
        "'/fields/1' in the new schema has no default value and is missing in the old schema', "
        "additionalInfo:'x'}"
    ]


def test_a_message_names_the_types_that_do_not_match() -> None:
    assert differences(parsed("int"), parsed("string")) == [
        "{errorType:'TYPE_MISMATCH', description:'The type (path '/') of a field in the new "
        "schema does not match with the old schema', additionalInfo:'reader type: INT not "
        "compatible with writer type: STRING'}"
    ]


def test_references_are_compared_as_if_they_were_written_out() -> None:
    text = '{"type":"record","name":"R","fields":[{"name":"a","type":"T"}]}'
    old, new = (
        parse_avro(text, {"T": f'{{"type":"record","name":"T","fields":[{fields}]}}'})
        for fields in ("", '{"name":"x","type":"int"}')
    )
    assert differences(old, new) == []
    assert len(differences(new, old)) == 1


@pytest.mark.slow
def test_circles_of_different_lengths_that_never_end_are_refused_and_do_no_harm() -> None:
    def circle(length: int) -> AvroSchema:
        text: object = "N0"
        for index in reversed(range(length)):
            fields = [{"name": "n", "type": text}]
            text = {"type": "record", "name": f"N{index}", "aliases": aliases, "fields": fields}
        return parsed(text)

    aliases = [f"N{index}" for index in range(60)]
    with pytest.raises(SchemaError, match="nested too deeply"):
        differences(circle(59), circle(60))
