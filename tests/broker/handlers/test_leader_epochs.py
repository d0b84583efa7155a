"""What clients are told of leader epochs after a broker was started in another one."""

import pytest

from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    PartitionData,
)
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.broker.handlers.embedded import EmbeddedClient

LATEST = -1
EARLIEST = -2


@pytest.fixture
def client(client: EmbeddedClient) -> EmbeddedClient:
    """Offsets 0 and 1 were written in epoch 0, offset 2 in epoch 2, which lasts."""
    client.create("orders")
    client.produce("orders", "a", "b")
    client.broker.state.partitions.leader(TopicPartition("orders", 0)).lead(2)
    client.produce("orders", "c")
    return client


def fetched(client: EmbeddedClient, offset: int, **epochs: int) -> PartitionData:
    asked = FetchPartition(0, fetch_offset=offset, partition_max_bytes=1000, **epochs)  # type: ignore[arg-type]
    request = FetchRequest(topics=[FetchTopic("orders", partitions=[asked])])
    return client.ask(request, FetchResponse, 12).responses[0].partitions[0]


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-1, ErrorCode.NONE),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (1, ErrorCode.FENCED_LEADER_EPOCH),
        (2, ErrorCode.NONE),
        (3, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_reader_with_an_old_view_is_fenced(
    client: EmbeddedClient, epoch: int, code: ErrorCode
) -> None:
    assert fetched(client, 0, current_leader_epoch=epoch).error_code == code


@pytest.mark.parametrize(
    ("epoch", "offset", "diverging"),
    [(0, 2, (-1, -1)), (0, 3, (0, 2)), (1, 2, (0, 2)), (2, 3, (-1, -1))],
)
def test_a_reader_beyond_the_end_of_its_epoch_is_told_where_that_is(
    client: EmbeddedClient, epoch: int, offset: int, diverging: tuple[int, int]
) -> None:
    data = fetched(client, offset, current_leader_epoch=2, last_fetched_epoch=epoch)
    assert data.error_code == ErrorCode.NONE
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == diverging


@pytest.mark.parametrize(
    ("epoch", "end"), [(0, (0, 2)), (1, (0, 2)), (2, (2, 3)), (3, (-1, -1)), (-1, (-1, -1))]
)
def test_the_end_of_each_epoch_is_known(
    client: EmbeddedClient, epoch: int, end: tuple[int, int]
) -> None:
    asked = OffsetForLeaderTopic("orders", [OffsetForLeaderPartition(0, 2, epoch)])
    response = client.ask(OffsetForLeaderEpochRequest(topics=[asked]), OffsetForLeaderEpochResponse)
    found = response.topics[0].partitions[0]
    assert (found.error_code, (found.leader_epoch, found.end_offset)) == (0, end)


@pytest.mark.parametrize(("time", "found"), [(EARLIEST, (0, 0)), (LATEST, (3, 2)), (0, (0, 0))])
def test_offsets_come_with_the_epochs_of_their_records(
    client: EmbeddedClient, time: int, found: tuple[int, int]
) -> None:
    topic = ListOffsetsTopic("orders", [ListOffsetsPartition(0, 2, time)])
    response = client.ask(ListOffsetsRequest(topics=[topic]), ListOffsetsResponse, 7)
    answer = response.topics[0].partitions[0]
    assert (answer.offset, answer.leader_epoch) == found


def test_metadata_has_the_epoch_of_this_run(client: EmbeddedClient) -> None:
    request = MetadataRequest([MetadataRequestTopic(name="orders")])
    response = client.ask(request, MetadataResponse, 12)
    assert response.topics[0].partitions[0].leader_epoch == 2
