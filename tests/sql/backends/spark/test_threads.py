"""Queries that are started by other threads than the one that made the session."""

import threading
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'millstream[spark]'")

from sql.backends.spark.session import activate
from tests.sql.backends.spark.cluster import create, fill, numbers_in
from tests.sql.backends.spark.query import sink, source
from tests.support.spark import MARKS, shared_session

pytestmark = MARKS


def test_a_thread_that_did_not_make_the_session_starts_a_query(
    servers: str, tmp_path: Path
) -> None:
    create(servers, "threaded", 1)
    create(servers, "threaded-copy", 1)
    fill(servers, "threaded", range(20))
    spark = shared_session()
    problems: list[BaseException] = []

    def run() -> None:
        try:
            activate(spark)
            stream = source(spark, servers, "threaded").select("key", "value")
            sink(stream, servers, "threaded-copy", str(tmp_path / "checkpoint")).awaitTermination()
        except BaseException as error:  # it is the test's to tell
            problems.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert problems == []
    assert numbers_in(servers, "threaded-copy") == list(range(20))
