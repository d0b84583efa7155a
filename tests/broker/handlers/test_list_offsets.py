"""ListOffsets and OffsetForLeaderEpoch on an embedded broker."""

import threading

import pytest

from broker.batch.codec import control_batch, encode_batch
from broker.errors import ErrorCode
from broker.model import ProducerIdentity, TopicPartition
from broker.pending import Pending
from broker.protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.broker.handlers.embedded import FIRST_TIMESTAMP_MS, EmbeddedClient, values_of

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
T = FIRST_TIMESTAMP_MS


def find(
    client: EmbeddedClient,
    timestamp_ms: int,
    *,
    version: int = 10,
    isolation_level: int = 0,
    epoch: int = -1,
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsTopic("orders", [ListOffsetsPartition(0, epoch, timestamp_ms)])
    request = ListOffsetsRequest(-1, isolation_level, [asked])
    response = client.ask(request, ListOffsetsResponse, version)
    return response.topics[0].partitions[0]


@pytest.mark.parametrize(
    ("timestamp_ms", "offset", "found_ms"),
    [
        (LATEST, 5, -1),
        (EARLIEST, 1, -1),
        (EARLIEST_LOCAL, 1, -1),
        (LATEST_TIERED, -1, -1),
        (MAX_TIMESTAMP, 2, T + 2),
        (T - 1000, 1, T + 1),
        (T, 1, T + 1),
        (T + 1, 1, T + 1),
        (T + 2, 2, T + 2),
        (T + 3, -1, -1),
    ],
)
def test_offsets_are_found_by_time_and_by_name(
    client: EmbeddedClient, timestamp_ms: int, offset: int, found_ms: int
) -> None:
    client.create("orders")
    client.produce("orders", "a", "b", "c")
    client.produce("orders", "d", "e")
    client.broker.state.storage.logs()[0].delete_records_before(1)
    found = find(client, timestamp_ms)
    assert (found.error_code, found.offset, found.timestamp) == (0, offset, found_ms)
    assert found.leader_epoch == (0 if offset >= 0 else -1)


def test_an_empty_log_has_no_offset_for_a_time(client: EmbeddedClient) -> None:
    client.create("orders")
    assert find(client, LATEST).offset == 0
    assert find(client, EARLIEST).offset == 0
    assert find(client, T).offset == -1
    assert find(client, MAX_TIMESTAMP).offset == -1


@pytest.mark.parametrize(
    ("timestamp_ms", "version"),
    [(MAX_TIMESTAMP, 6), (EARLIEST_LOCAL, 7), (LATEST_TIERED, 8), (-6, 10), (-7, 11)],
)
def test_a_special_time_needs_a_version_that_has_it(
    client: EmbeddedClient, timestamp_ms: int, version: int
) -> None:
    client.create("orders")
    assert find(client, timestamp_ms, version=version).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_what_is_missing_or_from_another_epoch_is_refused(client: EmbeddedClient) -> None:
    assert find(client, LATEST).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    client.create("orders")
    assert find(client, LATEST, epoch=0).error_code == 0
    assert find(client, LATEST, epoch=4).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def append(client: EmbeddedClient, batch: bytes) -> None:
    log = client.broker.state.storage.log(TopicPartition("orders", 0))
    log.append(memoryview(bytearray(batch)), origin="coordinator", now_ms=client.clock.now_ms())


def test_committed_readers_stop_at_the_open_transaction(client: EmbeddedClient) -> None:
    producer = ProducerIdentity(9, 0)
    client.create("orders")
    client.produce("orders", "a")
    append(
        client,
        encode_batch(
            [(None, b"b", (), T + 9)], producer=producer, base_sequence=0, transactional=True
        ),
    )
    assert find(client, LATEST).offset == 2
    assert find(client, LATEST, isolation_level=1).offset == 1
    assert find(client, T + 9).offset == 1
    assert find(client, T + 9, isolation_level=1).offset == -1
    committed = client.fetch("orders", isolation_level=1)
    assert (values_of(committed.records), committed.last_stable_offset) == (["a"], 1)
    append(
        client, control_batch(commit=False, producer=producer, coordinator_epoch=0, timestamp_ms=T)
    )
    ended = client.fetch("orders", isolation_level=1)
    assert ended.last_stable_offset == 3
    assert ended.aborted_transactions is not None
    aborted = [(one.producer_id, one.first_offset) for one in ended.aborted_transactions]
    assert aborted == [(9, 1)]


@pytest.mark.parametrize(
    ("epoch", "current", "expected"),
    [
        (0, -1, (0, 0, 2)),
        (0, 0, (0, 0, 2)),
        (1, -1, (0, -1, -1)),
        (-1, -1, (0, -1, -1)),
        (0, 3, (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)),
    ],
)
def test_the_only_epoch_ends_where_the_log_ends(
    client: EmbeddedClient, epoch: int, current: int, expected: tuple[int, int, int]
) -> None:
    client.create("orders")
    client.produce("orders", "a", "b")
    asked = OffsetForLeaderTopic("orders", [OffsetForLeaderPartition(0, current, epoch)])
    response = client.ask(OffsetForLeaderEpochRequest(topics=[asked]), OffsetForLeaderEpochResponse)
    found = response.topics[0].partitions[0]
    assert (found.error_code, found.leader_epoch, found.end_offset) == expected


def test_the_epoch_of_a_missing_partition_is_unknown(client: EmbeddedClient) -> None:
    asked = OffsetForLeaderTopic("orders", [OffsetForLeaderPartition(0)])
    response = client.ask(OffsetForLeaderEpochRequest(topics=[asked]), OffsetForLeaderEpochResponse)
    found = response.topics[0].partitions[0]
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_many_lookups_by_time_let_others_have_the_lock(client: EmbeddedClient) -> None:
    client.create("orders", partitions=8)
    for partition in range(8):
        client.produce("orders", "a", partition=partition)
    asked = [ListOffsetsPartition(number, -1, 0) for number in range(9)]
    done = threading.Event()
    found: list[ListOffsetsResponse] = []

    def take(response: ListOffsetsResponse) -> None:
        found.append(response)
        done.set()

    with client.broker.lock:
        answer = client.start(ListOffsetsRequest(topics=[ListOffsetsTopic("orders", asked)]))
        assert isinstance(answer, Pending)
        answer.then(take)
        assert not done.is_set()
    assert done.wait(60)
    answers = found[0].topics[0].partitions
    assert [one.partition_index for one in answers] == list(range(9))
    assert [one.offset for one in answers] == [0] * 8 + [-1]
    assert answers[8].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
