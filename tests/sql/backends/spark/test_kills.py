"""A query with state whose driver is killed at random: nothing is lost, and nothing is there twice.

A kill comes when the logs have grown by a random number of records, committed or not: often in the
middle of a transaction. Workers live a little longer than their driver, as on a cluster.
"""

from pathlib import Path
from random import Random

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'millstream[spark]'")

from broker.client import admin
from broker.model import LATEST_TIMESTAMP, TopicPartition
from tests.sql.backends.spark.cluster import SETTINGS, committed_records, create
from tests.sql.backends.spark.counting import COUNTS, ORDERS, check_counts, write_orders
from tests.sql.backends.spark.driving import PATIENCE_S, Driver, driving, wait_for_counts
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import skip_without_peer, wait_until
from tests.support.spark import MARKS, missing

pytestmark = MARKS

ORDERS_PER_KILL = 1_000


def grown(servers: str) -> int:
    """How long all logs of the query are that it writes to, with what is not committed."""
    with admin(servers) as administration:
        names = [name for name in administration.list_topics() if name.endswith("-repartition")]
        described = administration.describe_topics([*names, COUNTS])
        places = [
            TopicPartition(name, number)
            for name in (*names, COUNTS)
            for number in described[name].partitions
        ]
        ends = administration.list_offsets(dict.fromkeys(places, LATEST_TIMESTAMP)).all()
    return sum(end.offset for end in ends.values())


@pytest.mark.long
@pytest.mark.parametrize("kills", [3, 10])
def test_a_query_with_state_whose_driver_is_killed_counts_exactly(
    kills: int, tmp_path: Path
) -> None:
    why = missing()
    if why is not None:
        skip_without_peer(why)
    orders = kills * ORDERS_PER_KILL
    chance = Random(orders)
    with MillstreamBroker(tmp_path / "broker", settings=SETTINGS) as broker:
        servers = broker.bootstrap
        create(servers, ORDERS, 2)
        create(servers, COUNTS, 2)
        write_orders(servers, orders)
        for kill in range(kills):
            with driving(servers, tmp_path) as driver:
                goal = grown(servers) + chance.randrange(1, ORDERS_PER_KILL)

                def reached(driver: Driver = driver, goal: int = goal) -> bool:
                    driver.check()
                    return grown(servers) >= goal

                wait_until(reached, f"growth before kill {kill}", timeout_s=PATIENCE_S)
        with driving(servers, tmp_path) as driver:
            wait_for_counts(driver, servers, orders)
        check_counts(committed_records(servers, COUNTS), orders)
