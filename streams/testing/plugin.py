"""Fixtures for pytest: name this module in `pytest_plugins` of a conftest.py.

pytest_plugins = ["streams.testing.plugin"]

def test_words_are_counted(topology_driver):
    driver = topology_driver(count_words())
    ...
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import pytest

from streams.testing.driver import TopologyTestDriver
from streams.topology import Topology


class OpenDriver(Protocol):
    """Creates a TopologyTestDriver that is closed when the test ends."""

    # Any: the options of the driver, which checks them itself.
    def __call__(self, topology: Topology, **options: Any) -> TopologyTestDriver:
        """Create a driver, with the options of TopologyTestDriver."""
        ...


@contextmanager
def open_drivers() -> Iterator[OpenDriver]:
    """A function that creates drivers, which are closed at the end."""
    with ExitStack() as opened:

        def open_driver(topology: Topology, **options: Any) -> TopologyTestDriver:
            return opened.enter_context(TopologyTestDriver(topology, **options))

        yield open_driver


@pytest.fixture
def topology_driver() -> Iterator[OpenDriver]:
    """A function that creates drivers, which are closed when the test ends."""
    with open_drivers() as open_driver:
        yield open_driver
