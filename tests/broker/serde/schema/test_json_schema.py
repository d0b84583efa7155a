"""JSON schemas: texts, drafts, references, what is refused, and the validator."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings

from broker.errors import SchemaError
from broker.serde.schema.json_schema import Draft, parse_json_schema
from tests.broker.serde.schema.case_files import compatibility_cases
from tests.broker.serde.schema.schema_mutations import broken_texts

SAMPLES = tuple(
    json.dumps(schema)
    for case in compatibility_cases("json_compatibility.json")
    for schema in (case.old, case.new)
)


def test_the_canonical_text_keeps_the_order_and_the_normalized_one_sorts() -> None:
    schema = parse_json_schema('{ "type": "object",\n "properties": {"b": {}, "a": true} }', {})
    assert schema.canonical == '{"type":"object","properties":{"b":{},"a":true}}'
    assert schema.formatted("") == schema.canonical
    assert schema.normalized() == '{"properties":{"a":true,"b":{}},"type":"object"}'
    assert schema.source == {"type": "object", "properties": {"b": {}, "a": True}}


@pytest.mark.parametrize(
    ("text", "name"),
    [('{"title":"Order"}', "Order"), ("{}", None), ("true", None)],
)
def test_the_title_is_the_name(text: str, name: str | None) -> None:
    assert parse_json_schema(text, {}).record_name() == name


@pytest.mark.parametrize(
    ("address", "draft"),
    [
        ("http://json-schema.org/draft-04/schema#", Draft.DRAFT_4),
        ("http://json-schema.org/draft-06/schema#", Draft.DRAFT_6),
        ("http://json-schema.org/draft-07/schema#", Draft.DRAFT_7),
        ("http://json-schema.org/draft-07/schema", Draft.DRAFT_7),
        ("https://json-schema.org/draft-07/schema", Draft.DRAFT_7),
        ("https://json-schema.org/draft/2019-09/schema", Draft.DRAFT_2019_09),
        ("https://json-schema.org/draft/2020-12/schema", Draft.DRAFT_2020_12),
        ("http://example.invalid/schema", Draft.DRAFT_7),
    ],
)
def test_the_draft_is_what_the_schema_says(address: str, draft: Draft) -> None:
    assert parse_json_schema(json.dumps({"$schema": address}), {}).draft is draft


def test_without_a_draft_it_is_draft_7() -> None:
    assert parse_json_schema("true", {}).draft is Draft.DRAFT_7
    schema = parse_json_schema('{"exclusiveMinimum":3}', {})
    assert schema.validator().is_valid(4)
    assert not schema.validator().is_valid(3)


def test_each_draft_has_its_own_words() -> None:
    fourth = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "minimum": 3,
        "exclusiveMinimum": True,
    }
    newest = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "prefixItems": [{"type": "integer"}],
        "items": False,
    }
    assert not parse_json_schema(json.dumps(fourth), {}).validator().is_valid(3)
    assert parse_json_schema(json.dumps(newest), {}).validator().is_valid([1])
    assert not parse_json_schema(json.dumps(newest), {}).validator().is_valid([1, 2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "the text is neither an object nor a boolean"),
        ('"string"', "the text is neither an object nor a boolean"),
        ("", "the text is not JSON"),
        ('{"type":"foo"}', "at path '#/type'"),
        ('{"properties":{"a":{"minLength":-1}}}', "at path '#/properties/a/minLength'"),
        ('{"pattern":"("}', "at path '#/pattern'"),
        ('{"required":"a"}', "at path '#/required'"),
        ('{"$ref":"#/definitions/x"}', "Pointer '/definitions/x' does not exist"),
        ('{"$ref":"other.json"}', '$ref names "other.json", which is not among the references'),
        ('{"$ref":"http://127.0.0.1:1/x"}', 'names "http://127.0.0.1:1/x", which is not among'),
    ],
)
def test_a_wrong_schema_is_refused_with_a_reason(text: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_json_schema(text, {})
    assert message in caught.value.message


@pytest.mark.parametrize("text", ["[" * 100_000, '{"not":' * 300 + "{}" + "}" * 300])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match=r"depth|deeper"):
        parse_json_schema(text, {})


def test_a_wrong_reference_is_named() -> None:
    with pytest.raises(SchemaError, match=r'reference "a\.json": the text is not JSON'):
        parse_json_schema("{}", {"a.json": "{"})


@pytest.mark.parametrize(
    ("identity", "reference"),
    [
        ({}, "customer.json"),
        ({}, "customer.json#/definitions/x"),
        ({"$id": "http://example.invalid/shop/order.json"}, "customer.json"),
        ({"$id": "http://example.invalid/shop/order.json"}, "./customer.json#/definitions/x"),
        ({}, "http://example.invalid/other/customer.json"),
    ],
)
def test_references_are_found_by_the_end_of_their_address(
    identity: dict[str, object], reference: str
) -> None:
    customer = {"$ref": "deep/number.json", "definitions": {"x": {"$ref": "deep/number.json"}}}
    schema = parse_json_schema(
        json.dumps({**identity, "properties": {"a": {"$ref": reference}}}),
        {"deep/number.json": '{"type":"integer"}', "customer.json": json.dumps(customer)},
    )
    assert schema.validator().is_valid({"a": 1})
    assert not schema.validator().is_valid({"a": "x"})
    place = schema.documents.resolve(reference, schema.documents.root.base)
    assert place is not None
    assert isinstance(place.schema, dict)
    assert place.schema["$ref"] == "deep/number.json"


def test_parts_are_found_by_their_own_addresses() -> None:
    schema = parse_json_schema(
        json.dumps(
            {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$id": "http://example.invalid/root",
                "$defs": {
                    "a~/b": {"$anchor": "here", "type": "integer"},
                    "c": {"$id": "inner", "$defs": {"d": {"type": "string"}}},
                },
                "prefixItems": [{"$ref": "#here"}, {"$ref": "inner#/$defs/d"}],
            }
        ),
        {},
    )
    assert schema.validator().is_valid([1, "x"])
    assert not schema.validator().is_valid(["x"])
    assert not schema.validator().is_valid([1, 2])
    find = schema.documents.resolve
    base = schema.documents.root.base
    for reference, kind in [
        ("#here", "integer"),
        ("#/$defs/a~0~1b", "integer"),
        ("inner#/$defs/d", "string"),
        ("#/$defs/c/$defs/d", "string"),
    ]:
        place = find(reference, base)
        assert place is not None
        assert isinstance(place.schema, dict)
        assert place.schema["type"] == kind
    assert find("#nowhere", base) is None
    assert find("#/$defs/c/x", base) is None
    assert find("#/prefixItems/7", base) is None
    assert find("nowhere", base) is None


def test_schemas_that_contain_themselves_are_compiled() -> None:
    text = '{"properties":{"next":{"anyOf":[{"type":"null"},{"$ref":"#"}]},"v":{"type":"integer"}}}'
    validator = parse_json_schema(text, {}).validator()
    assert validator.is_valid({"v": 1, "next": {"v": 2, "next": None}})
    assert not validator.is_valid({"v": 1, "next": {"v": "x"}})


def test_an_unknown_form_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match='no form "resolved"'):
        parse_json_schema("{}", {}).formatted("resolved")


@pytest.mark.slow
@given(broken_texts(SAMPLES))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_schema_or_a_schema_error(text: str) -> None:
    with suppress(SchemaError):
        schema = parse_json_schema(text, {})
        assert parse_json_schema(schema.canonical, {}).normalized() == schema.normalized()
