"""Queries with state on a standalone cluster of Spark, through Spark Connect, and submitted."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'millstream[spark]'")

from tests.sql.backends.spark.cluster import SETTINGS, committed_records, create
from tests.sql.backends.spark.counting import COUNTS, ORDERS, STATEMENTS, check_counts, write_orders
from tests.sql.backends.spark.driving import driving, wait_for_counts
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import REPOSITORY, skip_without_peer
from tests.support.spark import MARKS, missing
from tests.support.spark_servers import connect_server, standalone_cluster, submit

pytestmark = [*MARKS, pytest.mark.long]

COUNT = 600


@pytest.mark.parametrize("spark", [standalone_cluster, connect_server])
def test_a_query_with_state_counts_exactly(
    spark: Callable[[Path], AbstractContextManager[str]], tmp_path: Path
) -> None:
    why = missing()
    if why is not None:
        skip_without_peer(why)
    with (
        MillstreamBroker(tmp_path / "broker", settings=SETTINGS) as broker,
        spark(tmp_path / "spark") as master,
    ):
        servers = broker.bootstrap
        create(servers, ORDERS, 2)
        create(servers, COUNTS, 2)
        write_orders(servers, COUNT)
        for _ in range(2):  # the second goes on from the checkpoint
            with driving(servers, tmp_path, master=master) as driver:
                wait_for_counts(driver, servers, COUNT)
        check_counts(committed_records(servers, COUNTS), COUNT)


def test_spark_submit_says_where_the_command_runs(tmp_path: Path) -> None:
    why = missing()
    if why is not None:
        skip_without_peer(why)
    statements = tmp_path / "job.sql"
    statements.write_text(STATEMENTS)
    with (
        MillstreamBroker(tmp_path / "broker", settings=SETTINGS) as broker,
        standalone_cluster(tmp_path / "spark") as master,
    ):
        servers = broker.bootstrap
        create(servers, ORDERS, 2)
        create(servers, COUNTS, 2)
        write_orders(servers, COUNT)
        command = ["sql", "--engine", "spark", "--bounded", "-s", "auto.offset.reset=earliest"]
        command += ["--bootstrap", servers, "-f", str(statements)]
        said = submit(master, [str(REPOSITORY / "millstream" / "__main__.py"), *command], tmp_path)
        assert "all records are processed" in said
        check_counts(committed_records(servers, COUNTS), COUNT)
    assert "Asked to launch executor" in (tmp_path / "spark" / "worker.log").read_text()
