"""Fixtures and settings that all tests share."""

import os

from hypothesis import HealthCheck, settings

pytest_plugins = [
    "millstream.pytest_plugin",  # found by itself where Millstream is installed
    "tests.support.durations",
    "tests.support.kafka_for_all",
    "tests.support.scheduling",
    "tests.support.seeds",
]

# A change must pass or fail by itself, not by luck: new examples are looked for in the long runs.
settings.register_profile(
    "ci",
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
