"""Tests of applications: a driver that runs a topology without a broker."""

from streams.testing.driver import TopologyTestDriver
from streams.testing.topics import TestInputTopic, TestOutputTopic

__all__ = ["TestInputTopic", "TestOutputTopic", "TopologyTestDriver"]
