"""Engines on an embedded broker, and what tests do with them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from broker.broker import Broker
from broker.serde.registry.api import SchemaRegistry
from sql.engine.engine import Engine
from sql.engine.entities import CurrentStatus, Entity
from sql.engine.results import ResultRow
from sql.engine.settings import SqlConfig
from tests.support.peer import wait_until

DEADLINE_MS = 60_000

# Only what makes waiting shorter, and reads what was written before a query began.
SETTINGS = {
    "auto.offset.reset": "earliest",
    "commit.interval.ms": 50,
    "heartbeat.interval.ms": 100,
    "num.stream.threads": 1,
    "ksql.query.retry.backoff.initial.ms": 50,
}
ORDERS = (
    "CREATE STREAM orders (id STRING KEY, item STRING, amount INT) "
    "WITH (kafka_topic='orders', value_format='JSON', partitions=2);"
)
TOTALS = "CREATE TABLE totals AS SELECT id, SUM(amount) AS total FROM orders GROUP BY id;"


def engine_of(
    broker: Broker,
    folder: Path,
    registry: SchemaRegistry | None = None,
    **settings: object,
) -> Engine:
    """An engine that was not started."""
    given = {name.replace("__", "."): value for name, value in settings.items()}
    config = SqlConfig({**SETTINGS, **given})
    return Engine(broker, data_directory=folder / "sql", registry=registry, config=config)


def status(entity: Entity) -> CurrentStatus:
    """The entity of a command."""
    assert isinstance(entity, CurrentStatus)
    return entity


def rows(engine: Engine, text: str, **properties: Any) -> list[tuple[object, ...]]:
    """The rows of a query that ends by itself."""
    result = engine.query(text, properties)
    try:
        return [each.values for each in result.rows()]
    finally:
        result.close()


def until_rows(engine: Engine, text: str, wanted: list[tuple[object, ...]]) -> None:
    """Ask until a pull query has just these rows, in any order."""
    last: list[object] = []

    def there() -> bool:
        last[:] = rows(engine, text)
        return sorted(map(repr, last)) == sorted(map(repr, wanted))

    wait_for(there, lambda: f"{text} has {last}, not {wanted}")


def wait_for(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    """Wait for a condition; `what` says what was seen last."""
    try:
        wait_until(condition, "the result")
    except TimeoutError as error:
        raise AssertionError(what()) from error


def taken(result: Any, count: int) -> list[ResultRow]:
    """Some rows of a push query, in the order they came."""
    found: list[ResultRow] = []
    while len(found) < count:
        row = result.poll(DEADLINE_MS)
        assert row is not None, f"only {found} came"
        found.append(row)
    return found
