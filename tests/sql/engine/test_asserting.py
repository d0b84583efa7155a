"""ASSERT TOPIC and ASSERT SCHEMA."""

import pytest

from broker.broker import Broker
from broker.clock import SystemClock
from broker.serde.schema.schema import Schema, SchemaKind
from sql.engine.asserting import AssertionFailed, schema_problem, topic_problem, wait_until_holds
from sql.engine.topics import Topics
from sql.parse import parse_statement
from sql.syntax.statements import AssertSchema, AssertTopic
from tests.support.memory_registry import MemoryRegistry


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ASSERT TOPIC there;", None),
        ("ASSERT TOPIC there WITH (PARTITIONS=2, REPLICAS=1);", None),
        (
            "ASSERT TOPIC there WITH (PARTITIONS=3);",
            "Mismatched configuration for topic there: For config partitions, expected 3 got 2",
        ),
        ("ASSERT TOPIC there WITH (FOO=3);", "Cannot assert unknown topic property: FOO"),
        ("ASSERT TOPIC gone;", "Topic gone does not exist"),
        ("ASSERT NOT EXISTS TOPIC gone;", None),
        ("ASSERT NOT EXISTS TOPIC there;", "Topic there exists"),
    ],
)
def test_topics_are_asserted(broker: Broker, text: str, problem: str | None) -> None:
    topics = Topics(broker)
    topics.ensure("there", partitions=2, replicas=1)
    statement = parse_statement(text)
    assert isinstance(statement, AssertTopic)
    assert topic_problem(statement, topics) == problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ASSERT SCHEMA SUBJECT 'a';", None),
        ("ASSERT SCHEMA SUBJECT 'b';", "Schema with subject name b does not exist"),
        ("ASSERT SCHEMA ID 1;", None),
        ("ASSERT SCHEMA ID 9;", "Schema with id 9 does not exist"),
        ("ASSERT SCHEMA SUBJECT 'a' ID 1;", None),
        ("ASSERT NOT EXISTS SCHEMA SUBJECT 'a';", "Schema with subject name a exists"),
        ("ASSERT NOT EXISTS SCHEMA SUBJECT 'b' ID 1;", None),
    ],
)
def test_schemas_are_asserted(text: str, problem: str | None) -> None:
    registry = MemoryRegistry()
    registry.register("a", Schema('"int"', SchemaKind.AVRO))
    statement = parse_statement(text)
    assert isinstance(statement, AssertSchema)
    assert schema_problem(statement, registry) == problem


def test_an_assertion_is_asked_again_until_it_holds_or_the_time_is_up() -> None:
    asked = []

    def problem() -> str | None:
        asked.append(1)
        return None if len(asked) > 2 else "not yet"

    wait_until_holds(problem, SystemClock(), 10_000)
    assert len(asked) == 3
    with pytest.raises(AssertionFailed, match="never"):
        wait_until_holds(lambda: "never", SystemClock(), 0)
