"""What members tell each other survives the trip, and outside bytes do no harm."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.assignors import MemberAssignment, MemberSubscription
from broker.client.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from broker.errors import MalformedMessage
from broker.model import TopicPartition

topics = st.text("abc", min_size=1, max_size=3)
partitions = st.sets(st.builds(TopicPartition, topics, st.integers(0, 9))).map(
    lambda found: tuple(sorted(found))
)
user_data = st.none() | st.binary(max_size=5)


@given(st.sets(topics), partitions, st.integers(-1, 99), user_data, st.none() | topics)
def test_a_subscription_comes_back(
    wanted: set[str],
    owned: tuple[TopicPartition, ...],
    generation: int,
    data: bytes | None,
    rack: str | None,
) -> None:
    sent = MemberSubscription("m", tuple(sorted(wanted)), "i", owned, generation, data, rack)
    assert decode_subscription("m", "i", encode_subscription(sent)) == sent


@given(partitions, user_data)
def test_an_assignment_comes_back(
    given_out: tuple[TopicPartition, ...], data: bytes | None
) -> None:
    sent = MemberAssignment(given_out, data)
    assert decode_assignment(encode_assignment(sent)) == sent


def test_old_and_future_versions_are_read() -> None:
    oldest = struct.pack(">hih", 0, 1, 1) + b"t" + struct.pack(">i", -1)
    assert decode_subscription("m", None, oldest).topics == ("t",)
    future = b"\x00\x09" + encode_subscription(MemberSubscription("m", ("t",)))[2:] + b"more"
    assert decode_subscription("m", None, future).topics == ("t",)
    assert decode_assignment(b"") == MemberAssignment()


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for decode in (decode_assignment, lambda data: decode_subscription("m", None, data)):
        try:
            decode(data)
        except MalformedMessage:
            continue


@pytest.mark.parametrize("data", [b"\x00", b"\xff\xff\x00\x00", b"\x00\x00\x00\x00\x00\x05"])
def test_broken_subscriptions_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_subscription("m", None, data)
