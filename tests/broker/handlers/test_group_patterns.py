"""Patterns of topics that members of groups subscribe to: they hold up nobody else."""

import time

import pytest

from broker.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from tests.broker.handlers.embedded import EmbeddedClient

SLOW = "((a|b)?){900}.....x"
TOPICS = 40
CPU_SECONDS_MAX = 3.0


@pytest.mark.slow
def test_a_short_pattern_over_long_names_is_matched_in_no_time(client: EmbeddedClient) -> None:
    for number in range(TOPICS):
        client.create("ab" * 120 + f"{number:02}")
    request = ConsumerGroupHeartbeatRequest(
        "readers",
        "member",
        0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_regex=SLOW,
        topic_partitions=[],
    )
    started = time.process_time()
    assert client.start(request) is not None
    client.advance(1)
    assert time.process_time() - started < CPU_SECONDS_MAX
