"""The fixture for users' tests."""

import pytest

from streams.errors import StreamsError
from streams.testing.plugin import OpenDriver, open_drivers, topology_driver
from tests.streams.engine.topologies import sink, source, topology

__all__ = ["topology_driver"]  # a fixture is used by its name

PASS_ON = topology([source("in"), sink("s", "out", "in")])


def test_the_fixture_opens_drivers_with_options(topology_driver: OpenDriver) -> None:
    driver = topology_driver(PASS_ON, partitions=2)
    words = driver.create_input_topic("in", key=str, value=object)
    words.pipe_input("k", "v", partition=1)
    assert driver.create_output_topic("out", key=str, value=object).read_key_value() == ("k", "v")


def test_drivers_are_closed_at_the_end() -> None:
    with open_drivers() as open_driver:
        words = open_driver(PASS_ON).create_input_topic("in", key=str, value=object)
        words.pipe_input("k", "v")
    with pytest.raises(StreamsError, match="the driver is closed"):
        words.pipe_input("k", "v")
