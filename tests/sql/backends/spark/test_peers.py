"""Queries on Spark beside real peers: a real Apache Kafka, and Spark's own connector for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'millstream[spark]'")

from broker.client import admin
from sql.backends.spark.connectors import KAFKA, OURS, connector
from sql.errors import SqlError
from tests.sql.backends.spark.cluster import SETTINGS, committed_records, create
from tests.sql.backends.spark.counting import (
    APPLICATION,
    COUNTS,
    ORDERS,
    check_counts,
    write_orders,
)
from tests.sql.backends.spark.driving import PATIENCE_S, driving, wait_for_counts
from tests.support.apache_kafka import ApacheKafka
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import PeerMissing, skip_without_peer, wait_until
from tests.support.spark import MARKS, missing, shared_session
from tests.support.spark_connector import fetch_spark_connector

pytestmark = MARKS

COUNT = 600


@contextmanager
def cluster(kind: str, folder: Path) -> Iterator[str]:
    """A broker of ours, or a real Kafka; skipped when there is none."""
    if kind == "ours":
        with MillstreamBroker(folder, settings=SETTINGS) as broker:
            yield broker.bootstrap
        return
    try:
        kafka = ApacheKafka(folder)
    except PeerMissing as reason:
        skip_without_peer(reason)
    with kafka:
        yield kafka.bootstrap


def jars_of(reading: str) -> list[Path]:
    """The jars of Spark's connector, if it is to read."""
    if reading == OURS:
        return []
    try:
        return fetch_spark_connector(version("pyspark"))
    except PeerMissing as reason:
        skip_without_peer(reason)


@pytest.mark.peer
@pytest.mark.long  # each opens Spark anew
@pytest.mark.parametrize(
    ("kind", "reading"), [("ours", KAFKA), ("apache", OURS), ("apache", KAFKA)]
)
def test_a_query_with_state_counts_exactly(kind: str, reading: str, tmp_path: Path) -> None:
    why = missing()
    if why is not None:
        skip_without_peer(why)
    jars = jars_of(reading)
    with cluster(kind, tmp_path / "cluster") as servers:
        create(servers, ORDERS, 2)
        create(servers, COUNTS, 2)
        write_orders(servers, COUNT)
        with driving(servers, tmp_path, jars) as driver:
            wait_for_counts(driver, servers, COUNT)
            # The group tells how far it is, whatever reads.
            with admin(servers) as administration:

                def reported() -> bool:
                    driver.check()
                    found = administration.list_group_offsets(APPLICATION).all()
                    return sum(at.offset for tp, at in found.items() if tp.topic == ORDERS) == COUNT

                wait_until(reported, "the offsets of the group", timeout_s=PATIENCE_S)
        check_counts(committed_records(servers, COUNTS), COUNT)


def test_without_its_jars_the_connector_is_refused_and_ours_is_taken() -> None:
    spark = shared_session()
    assert connector(spark, "auto") == OURS
    with pytest.raises(SqlError, match="connector for Kafka is not available"):
        connector(spark, KAFKA)
