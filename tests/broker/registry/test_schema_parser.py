"""What was parsed is kept, up to a limit."""

import pytest

from broker.registry import schema_parser
from broker.registry.schema_parser import SchemaParser
from broker.registry.state import RegistryState
from tests.broker.registry.examples import record


def test_a_schema_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = SchemaParser(RegistryState())
    first = parser.parse("a", record("x"))
    assert parser.parse("b", record("x")) is first
    parser.forget()
    assert parser.parse("a", record("x")) is not first


@pytest.mark.parametrize(
    ("limit", "value"), [("CACHED_SCHEMAS_MAX", 2), ("CACHED_CHARACTERS_MAX", 200)]
)
def test_the_schemas_asked_for_longest_ago_are_dropped(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(schema_parser, limit, value)
    parser = SchemaParser(RegistryState())
    kept = parser.parse("a", record("x"))
    dropped = parser.parse("a", record("y"))
    assert parser.parse("a", record("x")) is kept
    parser.parse("a", record("z"))
    assert parser.parse("a", record("x")) is kept
    assert parser.parse("a", record("y")) is not dropped
