"""Shared by all tests that start Spark: marks, and one session per process.

They run one after the other in one pytest worker: a session takes seconds to open and uses all
cores.
"""

import importlib.util

# Spark's sessions are Any: PySpark may be missing.
from typing import Any

import pytest

from sql.backends.spark.session import check_java, open_session
from sql.errors import SqlError
from tests.support.apache_kafka import SHORT_LIVED
from tests.support.peer import skip_without_peer

MASTER = "local[2,3]"  # failed tasks are retried, as on a cluster
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.python.authenticate.socketTimeout": "120s",  # workers start slowly on a busy machine
    # Each query is compiled and runs once: half of the processor time would be that of the
    # optimising compiler and of garbage collection threads.
    "spark.driver.extraJavaOptions": " ".join(SHORT_LIVED),
}
MARKS = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(1_800),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def missing() -> str | None:
    """The reason why Spark cannot run here, or None."""
    if importlib.util.find_spec("pyspark") is None:
        return "Spark is not installed: pip install 'millstream[spark]'"
    try:
        check_java()
    except SqlError as error:
        return str(error)
    return None


def shared_session() -> Any:
    """The session of this process."""
    why = missing()
    if why is not None:
        skip_without_peer(why)
    return open_session(MASTER, SETTINGS)
