"""ASSERT TOPIC and ASSERT SCHEMA: checked repeatedly until they hold or time out."""

from collections.abc import Callable

from broker import concurrency
from broker.clock import Clock
from broker.errors import RegistryError
from broker.serde.registry.api import SchemaRegistry
from sql.engine.topics import Topics, TopicShape
from sql.errors import StatementFailed
from sql.syntax.expressions import IntegerLiteral
from sql.syntax.statements import AssertSchema, AssertTopic

ASK_AGAIN_MS = 50
NOT_FOUND = (40401, 40402, 40403)


class AssertionFailed(StatementFailed):
    """The assertion does not hold; ksqlDB's error 41700."""


def wait_until_holds(problem: Callable[[], str | None], clock: Clock, timeout_ms: int) -> None:
    """Check until the assertion holds; AssertionFailed with the last reason on timeout."""
    deadline_ms = clock.monotonic_ms() + timeout_ms
    never = concurrency.Condition()
    while True:
        found = problem()
        if found is None:
            return
        left_ms = deadline_ms - clock.monotonic_ms()
        if left_ms <= 0:
            raise AssertionFailed(found)
        with never:
            clock.wait(never, min(ASK_AGAIN_MS, left_ms))


def topic_problem(statement: AssertTopic, topics: Topics) -> str | None:
    """Why the assertion does not hold; None if it does."""
    shape = topics.shape(statement.topic)
    if not statement.exists:
        return None if shape is None else f"Topic {statement.topic} exists"
    if shape is None:
        return f"Topic {statement.topic} does not exist"
    return "\n".join(_mismatches(statement, shape)) or None


def _mismatches(statement: AssertTopic, shape: TopicShape) -> list[str]:
    actual = {"PARTITIONS": shape.partitions, "REPLICAS": shape.replicas}
    result = []
    for name, literal in statement.properties:
        if name.upper() not in actual:
            result.append(f"Cannot assert unknown topic property: {name}")
            continue
        expected = literal.value if isinstance(literal, IntegerLiteral) else None
        if expected != actual[name.upper()]:
            result.append(
                f"Mismatched configuration for topic {statement.topic}: For config "
                f"{name.lower()}, expected {getattr(literal, 'value', None)} "
                f"got {actual[name.upper()]}"
            )
    return result


def schema_problem(statement: AssertSchema, registry: SchemaRegistry) -> str | None:
    """Why the assertion does not hold; None if it does."""
    subject = "" if statement.subject is None else f" subject name {statement.subject}"
    number = "" if statement.schema_id is None else f" id {statement.schema_id}"
    if _schema_exists(statement, registry) == statement.exists:
        return None
    return f"Schema with{subject}{number} {'does not exist' if statement.exists else 'exists'}"


def _schema_exists(statement: AssertSchema, registry: SchemaRegistry) -> bool:
    try:
        if statement.schema_id is not None:
            schema = registry.schema(statement.schema_id, subject=statement.subject)
            if statement.subject is not None:
                registry.lookup(statement.subject, schema)
        elif statement.subject is not None:
            registry.version(statement.subject)
    except RegistryError as error:
        if error.code in NOT_FOUND:
            return False
        raise StatementFailed(f"Cannot check schema existence: {error.message}") from error
    return True
