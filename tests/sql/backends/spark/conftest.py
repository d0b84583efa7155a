"""One broker for the tests of a module, in a process of its own: Spark's workers must reach it."""

from collections.abc import Iterator

import pytest

from tests.sql.backends.spark.cluster import SETTINGS
from tests.support.millstream_broker import MillstreamBroker


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the broker listens."""
    with MillstreamBroker(tmp_path_factory.mktemp("broker"), settings=SETTINGS) as broker:
        yield broker.bootstrap
