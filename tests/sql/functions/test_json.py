"""Functions of JSON in strings."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.functions.json_documents import DEPTH_MAX, document_text, parse_path, read_document
from tests.sql.functions.calls import call, same, typed

NULL = typed("STRING", None)
ORDER = '{"id": 7, "price": 1.10, "tags": ["a", {"b": null}], "a b": {"@x:y": true}, "é_1": "z"}'

CALLS: list[tuple[str, tuple[object, ...], object]] = [
    ("EXTRACTJSONFIELD", (ORDER, "$.id"), "7"),
    ("EXTRACTJSONFIELD", (ORDER, "$.price"), "1.10"),
    ("EXTRACTJSONFIELD", (ORDER, "$.tags[0]"), "a"),
    ("EXTRACTJSONFIELD", (ORDER, "$.tags.0"), "a"),
    ("EXTRACTJSONFIELD", (ORDER, "$.tags"), '["a",{"b":null}]'),
    ("EXTRACTJSONFIELD", (ORDER, "$.tags[1].b"), "null"),
    ("EXTRACTJSONFIELD", (ORDER, "$.tags[2]"), None),
    ("EXTRACTJSONFIELD", (ORDER, "$.tags.first"), None),
    ("EXTRACTJSONFIELD", (ORDER, '$["a b"].@x:y'), "true"),
    ("EXTRACTJSONFIELD", (ORDER, '$["a b"]'), '{"@x:y":true}'),
    ("EXTRACTJSONFIELD", (ORDER, "$.é_1"), "z"),
    ("EXTRACTJSONFIELD", (ORDER, "$.id.more"), None),
    ("EXTRACTJSONFIELD", (ORDER, "$.missing"), None),
    ("EXTRACTJSONFIELD", ('{"a": "x"}} and more', "$.a"), "x"),
    ("EXTRACTJSONFIELD", ("[1e3, -0.0, 1E-9]", "$"), "[1E+3,0.0,1E-9]"),
    ("EXTRACTJSONFIELD", ("[100000000000000000000, -0]", "$"), "[100000000000000000000,0]"),
    ("EXTRACTJSONFIELD", ('{"a\\"b": 1}', '$["a\\"b"]'), "1"),
    ("EXTRACTJSONFIELD", ("", "$.a"), None),
    ("EXTRACTJSONFIELD", (" ", "$"), ""),
    ("EXTRACTJSONFIELD", (NULL, "$.a"), None),
    ("JSON_ARRAY_CONTAINS", ("[1, 2]", 2), True),
    ("JSON_ARRAY_CONTAINS", ("[1, 2]", 5_000_000_000), False),
    ("JSON_ARRAY_CONTAINS", ("[1, 2]", 2.0), False),
    ("JSON_ARRAY_CONTAINS", ("[1, 2.0]", 2.0), True),
    ("JSON_ARRAY_CONTAINS", ("[1, 2.0]", 2), False),
    ("JSON_ARRAY_CONTAINS", ("[1, 2.5]", Decimal("2.5")), False),
    ("JSON_ARRAY_CONTAINS", ('["1"]', 1), False),
    ("JSON_ARRAY_CONTAINS", ('["a", "b"]', "b"), True),
    ("JSON_ARRAY_CONTAINS", ("[true]", True), True),
    ("JSON_ARRAY_CONTAINS", ("[1]", True), False),
    ("JSON_ARRAY_CONTAINS", ("[1, null]", typed("STRING", None)), True),
    ("JSON_ARRAY_CONTAINS", ("[1]", typed("STRING", None)), False),
    ("JSON_ARRAY_CONTAINS", ('{"a": 1}', 1), False),
    ("JSON_ARRAY_CONTAINS", ("[1", 1), False),
    ("JSON_ARRAY_CONTAINS", (NULL, 1), None),
    ("JSON_ARRAY_LENGTH", ("[1, [2, 3]]",), 2),
    ("JSON_ARRAY_LENGTH", ("[]",), 0),
    ("JSON_ARRAY_LENGTH", ("{}",), None),
    ("JSON_ARRAY_LENGTH", ("",), None),
    ("JSON_KEYS", ('{"b": 1, "a": {"c": 2}}',), ["b", "a"]),
    ("JSON_KEYS", ("[]",), None),
    (
        "JSON_RECORDS",
        ('{"b": 1.50, "a": {"c": "d"}, "e": "f"}',),
        {"b": "1.50", "a": '{"c":"d"}', "e": "f"},
    ),
    ("JSON_RECORDS", ("3",), None),
    ("JSON_ITEMS", ('[1, "a", {"b": [2]}, null]',), ["1", '"a"', '{"b":[2]}', "null"]),
    ("JSON_ITEMS", ("[]",), []),
    ("JSON_CONCAT", ('{"a": 1, "b": 2}', '{"b": 3}'), '{"a":1,"b":3}'),
    ("JSON_CONCAT", ("[1]", "2", '{"a": 3}'), '[1,2,{"a":3}]'),
    ("JSON_CONCAT", ('{"a": 1}', "[2]"), '[{"a":1},2]'),
    ("JSON_CONCAT", ("1",), "1"),
    ("JSON_CONCAT", ("1e3", "1.0"), "[1000,1.0]"),
    ("JSON_CONCAT", ("[]", NULL), None),
    ("JSON_CONCAT", ("[]", ""), None),
    ("IS_JSON_STRING", ("[1, 2]",), True),
    ("IS_JSON_STRING", ('"a"',), True),
    ("IS_JSON_STRING", ("a",), False),
    ("IS_JSON_STRING", ("NaN",), False),
    ("IS_JSON_STRING", ("01",), False),
    ("IS_JSON_STRING", ("1.",), False),
    ("IS_JSON_STRING", ("[1,]",), False),
    ("IS_JSON_STRING", ("",), False),
    ("IS_JSON_STRING", (NULL,), False),
    ("TO_JSON_STRING", (1,), "1"),
    ("TO_JSON_STRING", (1e10,), "1.0E10"),
    ("TO_JSON_STRING", (float("nan"),), '"NaN"'),
    ("TO_JSON_STRING", (Decimal("1.50"),), "1.50"),
    ("TO_JSON_STRING", (True,), "true"),
    ("TO_JSON_STRING", ('a"\n\x1f\\é',), '"a\\"\\n\\u001F\\\\é"'),
    ("TO_JSON_STRING", (b"!",), '"IQ=="'),
    ("TO_JSON_STRING", (typed("TIME", 60_220_000),), '"16:43:40"'),
    ("TO_JSON_STRING", (typed("DATE", 1000),), '"1972-09-27"'),
    ("TO_JSON_STRING", (typed("TIMESTAMP", 60_220_000_000),), '"1971-11-28T23:46:40.000"'),
    ("TO_JSON_STRING", (typed("TIME", None),), "null"),
    ("TO_JSON_STRING", (typed("DATE", None),), "null"),
    ("TO_JSON_STRING", (typed("TIMESTAMP", None),), "null"),
    ("TO_JSON_STRING", (typed("INT", None),), "null"),
    ("TO_JSON_STRING", (typed("ARRAY<INT>", [1, None]),), "[1,null]"),
    ("TO_JSON_STRING", (typed("MAP<INT, BYTES>", {2: b"", 1: b"!"}),), '{"1":"IQ==","2":""}'),
    ("TO_JSON_STRING", (typed("STRUCT<b INT, a STRING>", {"b": 1, "a": "x"}),), '{"a":"x","b":1}'),
]


@pytest.mark.parametrize(("name", "arguments", "wanted"), CALLS)
def test_a_call_gives_its_result(name: str, arguments: tuple[object, ...], wanted: object) -> None:
    found = call(name, *arguments)
    assert same(found, wanted), found


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "$a",
        "$.",
        "$..a",
        "$[",
        "$[]",
        "$[0",
        '$["a',
        '$["a"',
        "$.a b",
        "$[*]",
        "$.*",
        '$["\\a"]',
    ],
)
def test_a_wrong_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="Invalid JSON path"):
        call("EXTRACTJSONFIELD", ORDER, path)


@pytest.mark.parametrize(
    "name", ["JSON_KEYS", "JSON_RECORDS", "JSON_ARRAY_LENGTH", "JSON_ITEMS", "JSON_CONCAT"]
)
def test_what_is_no_json_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="Invalid JSON format:nothing"):
        call(name, "nothing")


def test_items_of_something_else_than_an_array_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Invalid JSON format:\{\}"):
        call("JSON_ITEMS", "{}")


@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 100_000])
def test_documents_may_not_be_too_deep(depth: int) -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        text = opening * depth + "1" + closing * depth
        assert call("IS_JSON_STRING", text) is False
        with pytest.raises(ValueError, match="deeper than"):
            call("EXTRACTJSONFIELD", text, "$")


def test_a_document_may_have_many_arrays_side_by_side() -> None:
    assert call("JSON_ARRAY_LENGTH", f"[{','.join(['[]'] * 1000)}]") == 1000


documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.decimals(allow_nan=False, allow_infinity=False, places=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(documents)
def test_a_written_document_is_read_as_the_same(document: object) -> None:
    assert read_document(document_text(document)) == document


@given(documents, st.text(max_size=3))
def test_what_follows_a_document_does_not_matter_after_a_bracket(
    document: object, rest: str
) -> None:
    text = document_text([document])
    assert read_document(text + rest) == [document]


@given(st.dictionaries(st.text(), st.integers(), max_size=4))
def test_every_name_can_be_reached_by_a_path(values: dict[str, int]) -> None:
    text = json.dumps(values)
    for name, value in values.items():
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        assert call("EXTRACTJSONFIELD", text, f'$["{quoted}"]') == str(value)


@given(st.text(st.sampled_from('$.[]"\\a0_@:* '), max_size=12))
def test_any_text_is_a_path_or_refused(path: str) -> None:
    try:
        steps = parse_path(path)
    except ValueError:
        return
    assert path[0] == "$"
    assert isinstance(steps, tuple)


@given(st.text(st.sampled_from('[]{}",:0123.eE+-truefalsn \\u'), max_size=25))
def test_any_text_is_json_or_refused(text: str) -> None:
    try:
        found = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    except (ValueError, pytest.fail.Exception):
        call("IS_JSON_STRING", text)
        return
    assert call("IS_JSON_STRING", text) is True
    assert json.loads(str(call("JSON_CONCAT", text))) == found


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("TIME", 60_220_000, '"16:43:40"'),
        ("DATE", None, "null"),
        ("ARRAY<DATE>", [1000, None], '["1972-09-27",null]'),
        ("MAP<STRING, TIMESTAMP>", {"b": 0, "a": None}, '{"a":null,"b":"1970-01-01T00:00:00.000"}'),
        ("MAP<DATE, INT>", {1000: 1}, '{"1972-09-27":1}'),
        ("ARRAY<STRUCT<b TIME, a BYTES>>", [{"b": 0, "a": b"!"}], '[{"a":"IQ==","b":"00:00"}]'),
        ("STRUCT<b INT, a INT>", {"b": 1}, '{"a":null,"b":1}'),
        ("BIGINT", 1000, "1000"),
    ],
)
def test_times_inside_a_value_are_strings(kind: str, value: object, wanted: str) -> None:
    assert call("TO_JSON_STRING", typed(kind, value)) == wanted
