"""Compatibility levels: which versions are compared, in which direction, in which order."""

import pytest

from broker.serde.schema.compatibility.levels import CompatibilityLevel, incompatibilities
from broker.serde.schema.parsing import parse_schema
from broker.serde.schema.schema import ParsedSchema, Schema, SchemaKind


def record(*fields: str) -> ParsedSchema:
    """A record of int fields; those with an equals sign have a default."""
    parts = [
        f'{{"name":"{name}","type":"int"{f",{DEFAULT}:{default}" if default else ""}}}'
        for name, _, default in (each.partition("=") for each in fields)
    ]
    text = f'{{"type":"record","name":"R","fields":[{",".join(parts)}]}}'
    return parse_schema(Schema(text))


DEFAULT = '"default"'
NEW = record("a", "b")
LAST = record("a")
FIRST = record("a", "c")


@pytest.mark.parametrize(
    ("level", "previous", "count"),
    [
        (CompatibilityLevel.NONE, [FIRST, LAST], 0),
        (CompatibilityLevel.BACKWARD, [], 0),
        (CompatibilityLevel.FULL_TRANSITIVE, [], 0),
        (CompatibilityLevel.BACKWARD, [LAST], 1),
        (CompatibilityLevel.FORWARD, [LAST], 0),
        (CompatibilityLevel.FULL, [LAST], 1),
        (CompatibilityLevel.FORWARD, [FIRST, LAST], 0),
        (CompatibilityLevel.FORWARD, [LAST, FIRST], 1),
        (CompatibilityLevel.FORWARD_TRANSITIVE, [FIRST, LAST], 1),
        (CompatibilityLevel.FULL_TRANSITIVE, [LAST, FIRST], 2),
        (CompatibilityLevel.BACKWARD_TRANSITIVE, [LAST, NEW], 1),
        (CompatibilityLevel.BACKWARD, [LAST, NEW], 0),
    ],
)
def test_a_level_looks_at_its_versions_in_its_direction(
    level: CompatibilityLevel, previous: list[ParsedSchema], count: int
) -> None:
    assert len(incompatibilities(level, NEW, previous)) == count


def test_backward_messages_speak_of_the_new_schema_as_reader() -> None:
    (message,) = incompatibilities(CompatibilityLevel.BACKWARD, NEW, [LAST])
    assert "in the new schema has no default value and is missing in the old schema" in message


def test_forward_messages_speak_of_the_old_schema_as_reader() -> None:
    (message,) = incompatibilities(CompatibilityLevel.FORWARD, LAST, [NEW])
    assert "in the old schema has no default value and is missing in the new schema" in message


def test_full_has_messages_of_both_directions_backward_first() -> None:
    backward, forward = incompatibilities(CompatibilityLevel.FULL, NEW, [FIRST])
    assert "'b' at path '/fields/1' in the new schema" in backward
    assert "'c' at path '/fields/1' in the old schema" in forward


def test_the_newest_incompatible_version_gives_the_messages() -> None:
    older = record("a", "b", "c=1")
    messages = incompatibilities(CompatibilityLevel.FULL_TRANSITIVE, NEW, [FIRST, LAST, older])
    assert ["'b'" in each for each in messages] == [True]


@pytest.mark.parametrize("level", [each for each in CompatibilityLevel if each != "NONE"])
def test_schemas_of_different_kinds_are_never_compatible(level: CompatibilityLevel) -> None:
    other = parse_schema(Schema('{"type":"object"}', SchemaKind.JSON))
    messages = incompatibilities(level, NEW, [other])
    assert messages == ["Incompatible because of different schema type"]
    assert incompatibilities(level, other, [NEW]) == messages


def test_json_and_protobuf_schemas_are_compared_by_their_own_rules() -> None:
    number = parse_schema(Schema('{"type":"number"}', SchemaKind.JSON))
    integer = parse_schema(Schema('{"type":"integer"}', SchemaKind.JSON))
    assert incompatibilities(CompatibilityLevel.BACKWARD, number, [integer]) == []
    assert len(incompatibilities(CompatibilityLevel.FULL, number, [integer])) == 1
    message = parse_schema(Schema('syntax="proto3"; message M {}', SchemaKind.PROTOBUF))
    assert incompatibilities(CompatibilityLevel.FULL_TRANSITIVE, message, [message]) == []
