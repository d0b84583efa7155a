"""A regular expression that tries many ways does not hold up a task."""

import pytest

from connect.api import Predicate, Transformation
from connect.records import SinkRecord
from connect.transforms.predicates import TopicNameMatches
from connect.transforms.regex_router import RegexRouter

PATTERN = "(a+)+$"
# Backtracking takes twice as long with each letter: minutes for these.
TOPIC = "a" * 29 + "-"


def record() -> SinkRecord:
    return SinkRecord(TOPIC, 0, None, None, None, "v", 0)


@pytest.mark.timeout(30)
def test_a_router_with_a_pattern_that_backtracks_is_done_at_once() -> None:
    router: Transformation = RegexRouter()
    router.configure({"regex": PATTERN, "replacement": "other"})
    routed = router.apply(record())
    assert routed is not None
    assert routed.topic == TOPIC


@pytest.mark.timeout(30)
def test_a_predicate_with_a_pattern_that_backtracks_is_done_at_once() -> None:
    predicate: Predicate = TopicNameMatches()
    predicate.configure({"pattern": PATTERN})
    assert not predicate.test(record())
