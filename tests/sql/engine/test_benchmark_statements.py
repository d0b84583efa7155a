"""The statements that are measured do what the peers that they are compared with do."""

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.sql.engine_app import ORDERS, SETTINGS, statements
from benchmarks.streams.workload import PRICE_LIMIT, WINDOW_MS, begin_ms, orders
from broker.broker import Broker
from broker.client import producer
from sql.engine.engine import Engine
from sql.engine.settings import SqlConfig
from sql.engine.topic_rows import records_to_end
from tests.sql.engine.engines import wait_for

pytestmark = pytest.mark.slow

RECORDS = 200
ROWS = list(orders(RECORDS, begin_ms(RECORDS)))
VALUES = [json.loads(value) for _, value, _ in ROWS]
DEAR = [value for value in VALUES if value["price"] > PRICE_LIMIT]


@pytest.fixture
def engine(broker: Broker, tmp_path: Path) -> Engine:
    """An engine with the settings of the benchmark, to be started; its source is made by it."""
    return Engine(broker, data_directory=tmp_path, config=SqlConfig(SETTINGS))


def results(broker: Broker, engine: Engine, workload: str, count: int) -> list[object]:
    """What a workload writes."""
    source = ORDERS.format(topic="orders").replace("'JSON'", "'JSON', partitions=4")
    with engine:
        engine.execute(source)
        with producer(broker) as out:
            for key, value, timestamp_ms in ROWS:
                out.send("orders", value, key=key, timestamp_ms=timestamp_ms)
        engine.execute("".join(statements(workload, "results")))
        wait_for(lambda: len(written(broker)) >= count, lambda: f"{len(written(broker))} came")
    return written(broker)


def written(broker: Broker) -> list[object]:
    """All results until now."""
    return [json.loads(record.value or b"") for record in records_to_end(broker, "results")]


def test_the_filter_writes_two_fields_of_dear_orders(broker: Broker, engine: Engine) -> None:
    wanted = [{"user": each["user"], "price": each["price"]} for each in DEAR]
    found = results(broker, engine, "filter", len(wanted))
    assert sorted(map(str, found)) == sorted(map(str, wanted))


def test_the_totals_are_written_for_every_order(broker: Broker, engine: Engine) -> None:
    counts: Counter[tuple[bytes, int]] = Counter()
    for key, _, timestamp_ms in ROWS:
        counts[key, timestamp_ms // WINDOW_MS] += 1
    wanted = sum(count * (count + 1) // 2 for count in counts.values())
    found = results(broker, engine, "tumbling", RECORDS)
    assert len(found) == RECORDS
    assert sum(each["count"] for each in found if isinstance(each, dict)) == wanted


def test_several_queries_have_outputs_of_their_own() -> None:
    texts = statements("filter", "dear", 3)
    assert len(set(texts)) == 3
    assert ["'dear-2'" in text for text in texts] == [False, False, True]
