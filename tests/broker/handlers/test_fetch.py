"""Fetch requests on an embedded broker."""

import pytest

from broker.errors import ErrorCode
from broker.pending import Pending
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from broker.protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.broker.handlers.embedded import EmbeddedClient, batch_of, completed, values_of


def request_for(
    topic: str, *offsets: int, max_wait_ms: int = 0, min_bytes: int = 1, bytes_max: int = 1_000_000
) -> FetchRequest:
    """A fetch of the partitions 0, 1, … of a topic from the given offsets on."""
    partitions = [
        FetchPartition(number, fetch_offset=offset, partition_max_bytes=bytes_max)
        for number, offset in enumerate(offsets)
    ]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        topics=[FetchTopic(topic, partitions=partitions)],
    )


def answers(response: FetchResponse) -> list[PartitionData]:
    return [data for topic in response.responses for data in topic.partitions]


def test_a_fetch_returns_whole_batches_from_the_one_with_the_offset(
    client: EmbeddedClient,
) -> None:
    client.create("orders")
    client.produce("orders", "a", "b")
    client.produce("orders", "c")
    data = client.fetch("orders", 1)
    assert values_of(data.records) == ["a", "b", "c"]
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (3, 3, 0)
    assert data.aborted_transactions is None
    assert data.preferred_read_replica == -1
    assert values_of(client.fetch("orders", 3).records) == []


@pytest.mark.parametrize("offset", [-1, 4])
def test_an_offset_outside_the_log_is_out_of_range(client: EmbeddedClient, offset: int) -> None:
    client.create("orders")
    client.produce("orders", "a", "b", "c")
    assert client.fetch("orders", offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_offset_before_the_log_start_is_out_of_range(client: EmbeddedClient) -> None:
    client.create("orders")
    client.produce("orders", "a")
    client.produce("orders", "b")
    asked = DeleteRecordsTopic("orders", [DeleteRecordsPartition(0, 1)])
    client.ask(DeleteRecordsRequest([asked]), DeleteRecordsResponse)
    assert client.fetch("orders", 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert client.fetch("orders", 1).log_start_offset == 1


def test_a_missing_partition_is_unknown(client: EmbeddedClient) -> None:
    client.create("orders")
    data = client.fetch("orders", partition=5)
    assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_the_leader_epoch_of_the_client_is_checked(
    client: EmbeddedClient, epoch: int, code: int
) -> None:
    client.create("orders")
    request = request_for("orders", 0)
    request.topics[0].partitions[0].current_leader_epoch = epoch
    assert answers(client.ask(request, FetchResponse, 12))[0].error_code == code


def test_an_epoch_that_we_never_had_is_out_of_range(client: EmbeddedClient) -> None:
    client.create("orders")
    client.produce("orders", "a")
    request = request_for("orders", 1, max_wait_ms=1000)
    request.topics[0].partitions[0].last_fetched_epoch = 3
    data = answers(client.ask(request, FetchResponse, 12))[0]
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_topics_come_by_id_since_version_13(client: EmbeddedClient) -> None:
    topic_id = client.create("orders")
    client.produce("orders", "a")
    request = request_for("", 0)
    request.topics[0].topic_id = topic_id
    request.topics.append(FetchTopic("", b"?" * 16, [FetchPartition(0)]))
    response = client.ask(request, FetchResponse, 13)
    assert [topic.topic_id for topic in response.responses] == [topic_id, b"?" * 16]
    found, missing = answers(response)
    assert values_of(found.records) == ["a"]
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_fetch_waits_for_data_and_a_produce_wakes_it(client: EmbeddedClient) -> None:
    client.create("orders", 2)
    waiting = client.start(request_for("orders", 0, 0, max_wait_ms=500), 12)
    assert isinstance(waiting, Pending)
    assert not waiting.done
    client.produce("orders", "a", partition=1)
    response = completed(waiting, FetchResponse)
    assert response is not None
    assert [values_of(data.records) for data in answers(response)] == [[], ["a"]]


def test_a_fetch_that_waited_in_vain_is_answered_empty(client: EmbeddedClient) -> None:
    client.create("orders")
    waiting = client.start(request_for("orders", 0, max_wait_ms=500), 12)
    client.advance(499)
    assert completed(waiting, FetchResponse) is None
    client.advance(1)
    response = completed(waiting, FetchResponse)
    assert response is not None
    assert [data.error_code for data in answers(response)] == [0]


def test_a_fetch_waits_for_as_many_bytes_as_it_wants(client: EmbeddedClient) -> None:
    client.create("orders")
    size = len(batch_of("a"))
    waiting = client.start(request_for("orders", 0, max_wait_ms=500, min_bytes=2 * size), 12)
    client.produce("orders", "a")
    assert completed(waiting, FetchResponse) is None
    client.produce("orders", "b")
    response = completed(waiting, FetchResponse)
    assert response is not None
    assert values_of(answers(response)[0].records) == ["a", "b"]


def test_a_fetch_does_not_wait_when_a_partition_has_an_error(client: EmbeddedClient) -> None:
    client.create("orders")
    response = client.ask(request_for("orders", 0, 0, max_wait_ms=500), FetchResponse, 12)
    assert [data.error_code for data in answers(response)] == [
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_a_fetch_nobody_waits_for_leaves_no_trace(client: EmbeddedClient) -> None:
    client.create("orders")
    waiting = client.start(request_for("orders", 0, max_wait_ms=500), 12)
    assert isinstance(waiting, Pending)
    client.broker.abandon(waiting)
    client.produce("orders", "a")
    client.advance(1000)
    stats = client.broker.metrics.topic("orders")
    assert stats.bytes_out == 0


def test_the_bytes_of_a_response_are_shared_by_its_partitions(client: EmbeddedClient) -> None:
    client.create("orders", 3)
    size = len(batch_of("a"))
    for partition in range(3):
        client.produce("orders", "a", partition=partition)
    request = request_for("orders", 0, 0, 0)
    request.max_bytes = 2 * size
    sizes = [len(data.records or b"") for data in answers(client.ask(request, FetchResponse, 12))]
    assert sizes == [size, size, 0]


def test_a_batch_bigger_than_the_limits_is_returned_alone(client: EmbeddedClient) -> None:
    client.create("orders", 2)
    for partition in range(2):
        client.produce("orders", "x" * 1000, partition=partition)
        client.produce("orders", "y", partition=partition)
    request = request_for("orders", 0, 0, bytes_max=10)
    request.max_bytes = 10
    found = [values_of(data.records) for data in answers(client.ask(request, FetchResponse, 12))]
    assert found == [["x" * 1000], []]


def test_deleted_topics_are_unknown_when_a_wait_ends(client: EmbeddedClient) -> None:
    client.create("orders")
    waiting = client.start(request_for("orders", 0, max_wait_ms=500), 12)
    client.broker.state.topics.delete("orders")
    client.advance(500)
    response = completed(waiting, FetchResponse)
    assert response is not None
    assert answers(response)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_counters_tell_what_went_out(client: EmbeddedClient) -> None:
    client.create("orders")
    batch = batch_of("a", "b")
    client.produce_batch("orders", batch)
    client.fetch("orders")
    stats = client.broker.metrics.topic("orders")
    assert (stats.bytes_out, stats.messages_out, stats.fetch_requests) == (len(batch), 2, 1)
