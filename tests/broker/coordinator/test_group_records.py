"""Bytes that are no records of groups: refused, never a crash."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.group_members import ClassicMember, subscribed_topics
from broker.coordinator.group_records import KINDS, decode_record
from broker.errors import BrokerError

KEYS = st.builds(
    lambda kind, rest: kind.to_bytes(2, "big", signed=True) + rest,
    st.sampled_from([*KINDS, 4, 9, 16, -1]),
    st.binary(max_size=40),
)
VALUES = st.builds(
    lambda version, rest: version.to_bytes(2, "big", signed=True) + rest,
    st.integers(-1, 5),
    st.binary(max_size=80),
)


@pytest.mark.slow
@given(st.none() | st.binary(max_size=3) | KEYS, st.none() | st.binary(max_size=3) | VALUES)
def test_any_bytes_are_a_record_or_refused(key: bytes | None, value: bytes | None) -> None:
    with suppress(BrokerError):
        decode_record(key, value)


def member(subscription: bytes) -> ClassicMember:
    return ClassicMember("m", None, "", "", 10_000, 10_000, [("range", subscription)])


@given(st.binary(max_size=60))
def test_any_bytes_are_a_subscription_or_none(data: bytes) -> None:
    found = subscribed_topics([member(data)], "range")
    assert found is None or all(isinstance(name, str) for name in found)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff", {"t"}),
        # a later version has more at its end
        (b"\0\x09\0\0\0\1\0\1t\xff\xff\xff\xff\0\0\0\0\0\0\0\1\xff\xffmore", {"t"}),
        (b"", None),
        (b"\xff\xff\0\0\0\1\0\1t\xff\xff\xff\xff", None),
    ],
)
def test_topics_of_subscriptions(data: bytes, expected: set[str] | None) -> None:
    assert subscribed_topics([member(data)], "range") == expected
