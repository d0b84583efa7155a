"""Partitioners: Java's hash to the bit, and the sticky choice without a key."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client import partitioner
from broker.client.partitioner import StickyPartitioner, murmur2, partition_for_key
from tests.broker.batch.oracle import murmur2 as oracle_murmur2

# What Java's Utils.murmur2 gives, as signed integers.
JAVA_VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("key", JAVA_VECTORS)
def test_the_hash_is_javas(key: bytes) -> None:
    expected = JAVA_VECTORS[key] & 0xFFFFFFFF
    assert murmur2(key) == expected
    assert partitioner._plain_murmur2(key) == expected


@given(key=st.binary(max_size=60), count=st.integers(1, 1000))
def test_keys_go_where_other_clients_send_them(key: bytes, count: int) -> None:
    expected = oracle_murmur2(key) & 0xFFFFFFFF
    assert murmur2(key) == partitioner._plain_murmur2(key) == expected
    assert partition_for_key(key, count) == (expected & 0x7FFFFFFF) % count


def test_a_batch_of_bytes_stays_together_and_then_moves_on() -> None:
    sticky = StickyPartitioner(1000, Random(1))
    partitions = range(10)
    runs = []
    for _ in range(50):
        first = sticky.partition("t", partitions)
        for _ in range(10):
            assert sticky.partition("t", partitions) == first
            sticky.appended("t", partitions, 100, batch_closed=True)
        runs.append(first)
    assert len(set(runs)) > 5


def test_an_open_batch_is_filled_before_the_switch_but_not_for_ever() -> None:
    sticky = StickyPartitioner(1000, Random(1))
    partitions = range(1_000_000)
    first = sticky.partition("t", partitions)
    sticky.appended("t", partitions, 1500, batch_closed=False)
    assert sticky.partition("t", partitions) == first
    sticky.appended("t", partitions, 500, batch_closed=False)
    assert sticky.partition("t", partitions) != first


def test_a_partition_that_went_away_is_left_at_once() -> None:
    sticky = StickyPartitioner(1000, Random(1))
    first = sticky.partition("t", [0, 1, 2])
    others = [partition for partition in (0, 1, 2) if partition != first]
    assert sticky.partition("t", others) in others


def test_topics_choose_for_themselves() -> None:
    sticky = StickyPartitioner(1000, Random(1))
    chosen = {sticky.partition(f"t{n}", range(100)) for n in range(20)}
    assert len(chosen) > 5
    sticky.appended("unseen", range(100), 5, batch_closed=True)
