"""Compatibility of JSON schemas: a table of cases, and values that must stay valid."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import SchemaError
from broker.serde.schema.compatibility.json_difference import DESCRIPTIONS
from broker.serde.schema.compatibility.json_schema import differences
from broker.serde.schema.json_schema import JsonSchema, parse_json_schema
from tests.broker.serde.schema.case_files import CompatibilityCase, compatibility_cases
from tests.broker.serde.schema.schema_mutations import broken_texts

CASES = compatibility_cases("json_compatibility.json")
SAMPLES = tuple(json.dumps(schema) for case in CASES for schema in (case.old, case.new))
MESSAGE = re.compile(r'\{errorType:"(\w+)", description:".*?path \'(.*?)\'.*"\}')

Json = dict[str, object]


def parsed(schema: object) -> JsonSchema:
    return parse_json_schema(json.dumps(schema), {})


def found(new: object, old: object) -> list[str]:
    matches = [MESSAGE.fullmatch(each) for each in differences(parsed(new), parsed(old))]
    return [f"{match[1]} {match[2]}" for match in matches if match is not None]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_has_its_differences_in_both_directions(case: CompatibilityCase) -> None:
    assert found(case.new, case.old) == case.backward
    assert found(case.old, case.new) == case.forward


def test_the_cases_have_every_kind_of_difference() -> None:
    seen = {each.split()[0] for case in CASES for each in (*case.backward, *case.forward)}
    assert seen == set(DESCRIPTIONS)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_schema_of_the_cases_is_compatible_with_itself(case: CompatibilityCase) -> None:
    assert found(case.new, case.new) == []
    assert found(case.old, case.old) == []


# Pieces of schemas from tight to loose: each one allows what those before it allow.
LADDERS: tuple[tuple[Json, ...], ...] = (
    ({"type": "integer", "minimum": 2, "maximum": 4}, {"type": "integer"}, {"type": "number"}),
    (
        {"type": "integer", "multipleOf": 6},
        {"type": "integer", "multipleOf": 3},
        {"type": "number"},
    ),
    ({"type": "string", "maxLength": 2}, {"type": "string", "maxLength": 5}, {"type": "string"}),
    ({"enum": ["a"]}, {"enum": ["a", 1]}, {"enum": ["a", 1, None]}),
    ({"type": "null"}, {"type": ["null", "string"]}, {"type": ["null", "string", "boolean"]}),
    (
        {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
        {"type": "array", "items": {"type": "number"}, "maxItems": 3},
        {"type": "array"},
    ),
    ({"allOf": [{"type": "string"}, {"minLength": 1}]}, {"allOf": [{"type": "string"}]}),
    ({"not": {"type": "number"}}, {"not": {"type": "integer"}}),
)
NAMES = ("a", "b", "ab", "c")
MODELS: tuple[Json, ...] = (
    {},
    {"additionalProperties": False},
    {"additionalProperties": {"type": "integer"}},
    {"additionalProperties": False, "patternProperties": {"^a": {"type": ["integer", "null"]}}},
    {"patternProperties": {"^a": {"type": "integer"}}},
)


@st.composite
def object_pairs(draw: st.DrawFn) -> tuple[Json, Json]:
    """An object and the same object after edits of its properties and its content model."""
    rungs = st.sampled_from(LADDERS).flatmap(st.sampled_from)
    old: Json = {"type": "object", **draw(st.sampled_from(MODELS))}
    properties = draw(st.dictionaries(st.sampled_from(NAMES), rungs, max_size=3))
    old["properties"] = properties
    old["required"] = draw(st.lists(st.sampled_from(NAMES[:2]), unique=True, max_size=1))
    new = copy.deepcopy(old)
    changed = dict(properties)
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=2)):
        ladder = next((each for each in LADDERS if changed.get(name) in each), None)
        if ladder is None or draw(st.integers(0, 3)) == 0:
            changed[name] = draw(rungs)
        elif draw(st.booleans()):
            changed[name] = ladder[-1]
        else:
            del changed[name]
    new["properties"] = changed
    if changed == properties or draw(st.booleans()):
        for word in ("additionalProperties", "patternProperties"):
            new.pop(word, None)
        new.update(draw(st.sampled_from(MODELS)))
    if draw(st.booleans()):
        new["required"] = draw(st.lists(st.sampled_from(NAMES[:2]), unique=True, max_size=1))
    return old, new


SHAPES: tuple[Callable[[Json], Json], ...] = (
    lambda schema: schema,
    lambda schema: {"anyOf": [schema, {"type": "boolean"}]},
    lambda schema: {"allOf": [schema]},
    lambda schema: {"type": "array", "items": schema},
    lambda schema: {"type": "array", "items": [schema, {}], "additionalItems": False},
    lambda schema: {"type": "array", "items": [{}], "additionalItems": schema},
    lambda schema: {"type": "object", "properties": {"a": schema}, "required": ["a"]},
)


@st.composite
def ladder_pairs(draw: st.DrawFn) -> tuple[Json, Json]:
    """Two rungs, mostly of one ladder, in the same shape or in two."""
    ladder, shape = draw(st.sampled_from(LADDERS)), draw(st.sampled_from(SHAPES))
    other_ladder = draw(st.sampled_from((ladder, ladder, draw(st.sampled_from(LADDERS)))))
    other_shape = draw(st.sampled_from((shape, shape, draw(st.sampled_from(SHAPES)))))
    return shape(draw(st.sampled_from(ladder))), other_shape(draw(st.sampled_from(other_ladder)))


LEAVES: tuple[object, ...] = (
    *(0, 1, 2, 3, 4, 6, -3, 1.5, "", "a", "abc", "abcdef", None, True),
    *([], [1], [1.5, "a"], [1, 2, 3], {}),
)
LISTS: tuple[object, ...] = tuple([one, two] for one in LEAVES for two in LEAVES)


def values_of(schema: Json, random: Random) -> Iterator[object]:
    """Values among which those that a schema allows are frequent."""
    yield from LEAVES
    yield from LISTS
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)
    fitting = {
        name: [each for each in LEAVES if parsed(inner).validator().is_valid(each)]
        for name, inner in properties.items()
    }
    for _ in range(150):
        names = random.sample((*NAMES, "z"), random.randint(0, 3))
        yield {name: random.choice(fitting.get(name) or LEAVES) for name in names}


@pytest.mark.slow
@given(
    pair=st.one_of(object_pairs(), object_pairs(), ladder_pairs()),
    random=st.randoms(use_true_random=False),
)
@settings(max_examples=300, deadline=None)
def test_values_of_the_old_schema_are_valid_under_a_compatible_one(
    pair: tuple[Json, Json], random: Random
) -> None:
    old, new = pair
    if old == new or found(new, old):
        return
    before, after = parsed(old).validator(), parsed(new).validator()
    for value in values_of(old, random):
        assert after.is_valid(value) or not before.is_valid(value), value


@pytest.mark.parametrize("ladder", LADDERS, ids=lambda ladder: json.dumps(ladder[0]))
def test_each_rung_of_a_ladder_allows_what_the_one_before_allows(ladder: tuple[Json, ...]) -> None:
    for tight, loose in pairwise(ladder):
        assert found(loose, tight) == []
        assert found(tight, loose) != []


@pytest.mark.slow
@given(broken_texts(SAMPLES), broken_texts(SAMPLES))
@settings(max_examples=200, deadline=None)
def test_any_two_schemas_can_be_compared(old: str, new: str) -> None:
    with suppress(SchemaError):
        before, after = parse_json_schema(old, {}), parse_json_schema(new, {})
        assert all(MESSAGE.fullmatch(each) for each in differences(after, before))
        assert differences(before, before) == []


def test_a_message_says_what_was_added_to_which_model() -> None:
    old = {"type": "object", "properties": {}}
    new = {"type": "object", "properties": {"x": {"type": "string"}}}
    assert differences(parsed(new), parsed(old)) == [
        '{errorType:"PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", description:"The old schema has an '
        "open content model, and the new schema has a property or item at path "
        "'#/properties/x' which is missing in the old schema\"}"
    ]


def test_references_to_other_texts_are_compared_as_if_they_were_written_out() -> None:
    text = '{"properties":{"a":{"$ref":"number.json"}}}'
    old = parse_json_schema(text, {"number.json": '{"type":"integer"}'})
    new = parse_json_schema(text, {"number.json": '{"type":"number"}'})
    assert differences(new, old) == []
    assert len(differences(old, new)) == 1


@pytest.mark.slow
def test_long_chains_of_references_are_refused_and_do_no_harm() -> None:
    def chain(kind: str) -> JsonSchema:
        links: Json = {
            f"d{index}": {"properties": {"n": {"$ref": f"#/definitions/d{index + 1}"}}}
            for index in range(400)
        }
        links["d400"] = {"type": kind}
        return parsed({"definitions": links, "$ref": "#/definitions/d0"})

    with pytest.raises(SchemaError, match="nested too deeply"):
        differences(chain("string"), chain("integer"))


def nested(depth: int, leaf: str) -> object:
    if depth == 0:
        return {"type": leaf}
    return {"anyOf": [{"properties": {each: nested(depth - 1, leaf)}} for each in "abc"]}


@pytest.mark.slow
def test_alternatives_inside_alternatives_are_compared_once_each() -> None:
    assert found(nested(4, "integer"), nested(4, "string")) == [
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"
    ]
    assert found(nested(4, "number"), nested(4, "integer")) == []


@pytest.mark.slow
def test_too_many_alternatives_are_refused() -> None:
    def alternatives(word: str) -> JsonSchema:
        return parsed({"anyOf": [{"type": "integer", word: each} for each in range(300)]})

    with pytest.raises(SchemaError, match="too many alternatives"):
        differences(alternatives("minimum"), alternatives("maximum"))
