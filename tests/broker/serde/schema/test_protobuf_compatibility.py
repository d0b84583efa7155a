"""Compatibility of Protobuf schemas: a table of pairs, and what the bytes themselves say."""

import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.serde.schema.compatibility.protobuf import differences
from broker.serde.schema.protobuf_schema import ProtobufSchema, parse_protobuf
from broker.serde.schema.schema import Resolved

CASES = Path(__file__).parent / "cases" / "protobuf_compatibility.txt"
ALIKE = (
    {"int32", "int64", "uint32", "uint64", "bool"},
    {"sint32", "sint64"},
    {"string", "bytes"},
    {"fixed32", "sfixed32"},
    {"fixed64", "sfixed64"},
    {"float"},
    {"double"},
)
SCALARS = sorted(name for names in ALIKE for name in names)


def cases() -> list[list[str]]:
    lines = CASES.read_text().splitlines()
    return [
        [column.strip() for column in line.split("|")]
        for line in lines
        if line and not line.startswith("#")
    ]


def schema(text: str, resolved: Resolved | None = None) -> ProtobufSchema:
    if text.startswith("proto2 "):
        text = f'syntax = "proto2"; {text[7:]}'
    elif text.startswith("file "):
        text = f'syntax = "proto3"; {text[5:]}'
    else:
        text = f'syntax = "proto3"; message M {{ {text} }}'
    return parse_protobuf(text, resolved or {})


def kinds(new: ProtobufSchema, old: ProtobufSchema) -> str:
    found = [re.findall(r'errorType:"(\w+)"', text)[0] for text in differences(new, old)]
    return " ".join(found) or "ok"


@pytest.mark.parametrize("case", cases(), ids=lambda case: case[0].replace(" ", "-"))
def test_a_pair_of_the_table_is_judged_in_both_directions(case: list[str]) -> None:
    _, old, new, backward, forward = case
    assert kinds(schema(new), schema(old)) == backward
    assert kinds(schema(old), schema(new)) == forward


def test_the_table_has_enough_pairs() -> None:
    assert 2 * len(cases()) >= 100


def test_scalars_replace_each_other_only_if_they_are_written_alike() -> None:
    schemas = {name: schema(f"{name} a = 1;") for name in SCALARS}
    for old, new in product(SCALARS, SCALARS):
        alike = any(old in names and new in names for names in ALIKE)
        expected = "ok" if alike else "FIELD_SCALAR_KIND_CHANGED"
        assert kinds(schemas[new], schemas[old]) == expected, (old, new)


def test_a_difference_says_where_it_is() -> None:
    old = schema("message N { oneof o { int32 a = 1; } }")
    new = schema("message N { oneof o { string a = 1; } }")
    (text,) = differences(new, old)
    assert text.startswith('{errorType:"FIELD_SCALAR_KIND_CHANGED", description:"')
    assert "'#/M/N/o/1'" in text


IMPORTING = 'file import "other.proto"; message M { other.N n = 1; }'


def other(body: str) -> dict[str, str]:
    return {"other.proto": f'syntax = "proto3"; package other; {body}'}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("message N { int32 a = 1; }", "message N { int64 a = 1; }", "ok"),
        (
            "message N { int32 a = 1; }",
            "message N { string a = 1; }",
            "FIELD_SCALAR_KIND_CHANGED FIELD_NAMED_TYPE_CHANGED",
        ),
        (
            "message N { O o = 1; } message O { int32 a = 1; }",
            "message N { O o = 1; } message O { string a = 1; }",
            "FIELD_SCALAR_KIND_CHANGED FIELD_NAMED_TYPE_CHANGED FIELD_NAMED_TYPE_CHANGED",
        ),
        (
            "message N { O o = 1; } message O { N n = 1; }",
            "message N { O o = 1; } message O { N n = 1; int32 a = 2; }",
            "ok",
        ),
    ],
)
def test_messages_of_other_files_are_compared_too(old: str, new: str, expected: str) -> None:
    assert kinds(schema(IMPORTING, other(new)), schema(IMPORTING, other(old))) == expected


@pytest.mark.slow
def test_a_long_chain_of_imported_messages_is_compared() -> None:
    chain = "".join(f"message N{i} {{ N{i + 1} n = 1; }}" for i in range(2000))
    start = 'file import "other.proto"; message M { other.N0 n = 1; }'
    old = schema(start, other(chain + "message N2000 { int32 a = 1; }"))
    new = schema(start, other(chain + "message N2000 { string a = 1; }"))
    assert kinds(new, old).count("FIELD_NAMED_TYPE_CHANGED") == 2001


def test_equal_messages_of_two_packages_are_told_apart() -> None:
    texts = {
        "a.proto": 'syntax = "proto3"; package a; message N { int32 x = 1; }',
        "b.proto": 'syntax = "proto3"; package b; message N { string x = 1; }',
    }
    text = 'file import "a.proto"; import "b.proto"; message M { a.N a = 1; b.N b = 2; }'
    swapped = text.replace("a.N a", "b.N a").replace("b.N b", "a.N b")
    assert kinds(schema(text, texts), schema(text, texts)) == "ok"
    assert "FIELD_SCALAR_KIND_CHANGED" in kinds(schema(swapped, texts), schema(text, texts))


FIELD_TYPES = [
    *SCALARS,
    "repeated int32",
    "repeated string",
    "optional int64",
    "map<string, int32>",
    "N",
]
NUMBERS = st.integers(1, 5)


@st.composite
def bodies(draw: st.DrawFn) -> dict[int, tuple[str, bool]]:
    """Fields of a message: their types, and whether they are in its oneof."""
    types = draw(st.dictionaries(NUMBERS, st.sampled_from(FIELD_TYPES), max_size=5))
    return {
        number: (name, name in (*SCALARS, "N") and draw(st.booleans()))
        for number, name in types.items()
    }


@st.composite
def changes(draw: st.DrawFn) -> tuple[dict[int, tuple[str, bool]], dict[int, tuple[str, bool]]]:
    """A message and another one that has most of its fields."""
    old = draw(bodies())
    new = {number: field for number, field in old.items() if draw(st.integers(0, 4))}
    if draw(st.booleans()):
        new.update(draw(bodies()))
    return old, new


def text_of(body: dict[int, tuple[str, bool]]) -> str:
    plain = "".join(f"{name} f{n} = {n};" for n, (name, inside) in body.items() if not inside)
    inside = "".join(f"{name} f{n} = {n};" for n, (name, inside) in body.items() if inside)
    oneof = f"oneof o {{ {inside} }}" if inside else ""
    return f"{plain} {oneof} message N {{ int32 x = 1; }}"


def sample(name: str) -> object:
    match name.split()[-1]:
        case "string":
            return "text"
        case "bytes":
            return b"bytes"
        case "bool":
            return True
        case "float" | "double":
            return 0.5
        case _:
            return 7


@pytest.mark.slow
@given(changes(), st.data())
def test_a_compatible_schema_keeps_the_values_of_unchanged_fields(
    change: tuple[dict[int, tuple[str, bool]], dict[int, tuple[str, bool]]], data: st.DataObject
) -> None:
    old_body, new_body = change
    old, new = schema(text_of(old_body)), schema(text_of(new_body))
    if differences(new, old):
        return
    written = old.message_class("M")()
    for number in data.draw(st.permutations(sorted(old_body))):
        name = old_body[number][0]
        values = getattr(written, f"f{number}", None)
        if name == "N":
            values.x = 7  # type: ignore[union-attr]
        elif name.startswith("map"):
            values["key"] = 7  # type: ignore[index]
        elif name.startswith("repeated"):
            values.append(sample(name))  # type: ignore[union-attr]
        else:
            setattr(written, f"f{number}", sample(name))
    read = new.message_class("M")()
    read.ParseFromString(written.SerializeToString())
    for number in old_body.keys() & new_body.keys():
        if old_body[number][0] == new_body[number][0]:
            before, after = getattr(written, f"f{number}"), getattr(read, f"f{number}")
            if old_body[number][0] == "N":
                assert before.SerializeToString() == after.SerializeToString()
            else:
                assert before == after
