"""Transaction requests on an embedded broker: shapes and codes by version."""

from pathlib import Path
from queue import SimpleQueue

import pytest

from broker.batch.codec import encode_batch
from broker.broker import Broker
from broker.config import BrokerConfig
from broker.errors import ErrorCode
from broker.model import TRANSACTION_TOPIC, ConnectionInfo, ProducerIdentity, TopicPartition
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import transactions as wire
from broker.protocol.messages.metadata import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from broker.protocol.messages.produce import ProduceResponse
from broker.protocol.wire import SPECS
from tests.broker.handlers.embedded import (
    FIRST_TIMESTAMP_MS,
    EmbeddedClient,
    produce_request,
    values_of,
)

NAME = "bank"


def begun(client: EmbeddedClient, name: str | None = NAME, version: int = 5) -> ProducerIdentity:
    answer = client.ask(
        wire.InitProducerIdRequest(name, 60_000), wire.InitProducerIdResponse, version
    )
    assert answer.error_code == ErrorCode.NONE
    return ProducerIdentity(answer.producer_id, answer.producer_epoch)


def added(client: EmbeddedClient, producer: ProducerIdentity, *partitions: int) -> list[int]:
    topic = wire.AddPartitionsToTxnTopic("orders", list(partitions))
    answer = client.ask(
        wire.AddPartitionsToTxnRequest([], NAME, *producer, [topic]),
        wire.AddPartitionsToTxnResponse,
        3,
    )
    (result,) = answer.results_by_topic_v3_and_below
    return [part.partition_error_code for part in result.results_by_partition]


def ended(
    client: EmbeddedClient, producer: ProducerIdentity, *, commit: bool = True, version: int = 3
) -> wire.EndTxnResponse:
    request = wire.EndTxnRequest(NAME, *producer, commit)
    return client.ask(request, wire.EndTxnResponse, version)


def transactional_batch(producer: ProducerIdentity) -> bytes:
    return encode_batch(
        [(None, b"a", (), FIRST_TIMESTAMP_MS)],
        producer=producer,
        base_sequence=0,
        transactional=True,
    )


def produced(
    client: EmbeddedClient, producer: ProducerIdentity, *, version: int, partition: int = 0
) -> int:
    request = produce_request("orders", transactional_batch(producer), partition=partition)
    request.transactional_id = NAME
    response = client.ask(request, ProduceResponse, version)
    return response.responses[0].partition_responses[0].error_code


def committed_offset(client: EmbeddedClient, group: str) -> int:
    request = OffsetFetchRequest(group, [OffsetFetchRequestTopic("orders", [0])])
    answer = client.ask(request, OffsetFetchResponse, 5)
    return answer.topics[0].partitions[0].committed_offset


def offset_commit(producer: ProducerIdentity, offset: int) -> wire.TxnOffsetCommitRequest:
    part = wire.TxnOffsetCommitRequestPartition(0, offset)
    topic = wire.TxnOffsetCommitRequestTopic("orders", [part])
    return wire.TxnOffsetCommitRequest(NAME, "group", *producer, topics=[topic])


def offsets_committed(
    client: EmbeddedClient, producer: ProducerIdentity, offset: int, *, version: int
) -> int:
    answer = client.ask(offset_commit(producer, offset), wire.TxnOffsetCommitResponse, version)
    return answer.topics[0].partitions[0].error_code


def test_a_producer_without_a_transactional_id_gets_an_id(client: EmbeddedClient) -> None:
    assert begun(client, None).epoch == 0
    assert begun(client, None) != begun(client, None)


@pytest.mark.parametrize(
    ("request_fields", "code"),
    [
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_a_wrong_start_is_refused(
    client: EmbeddedClient, request_fields: dict[str, object], code: ErrorCode
) -> None:
    request = wire.InitProducerIdRequest(NAME, 60_000)
    for name, value in request_fields.items():
        setattr(request, name, value)
    answer = client.ask(request, wire.InitProducerIdResponse, 5)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)


@pytest.mark.parametrize(
    ("version", "code"),
    [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)],
)
def test_a_fenced_producer_is_told_in_the_words_of_its_version(
    client: EmbeddedClient, version: int, code: ErrorCode
) -> None:
    old = begun(client)
    begun(client)
    request = wire.InitProducerIdRequest(NAME, 60_000, *old)
    assert client.ask(request, wire.InitProducerIdResponse, version).error_code == code


@pytest.mark.parametrize(
    ("version", "code"),
    [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)],
)
def test_a_fenced_end_is_told_in_the_words_of_its_version(
    client: EmbeddedClient, version: int, code: ErrorCode
) -> None:
    old = begun(client)
    begun(client)
    assert ended(client, old, version=version).error_code == code


@pytest.mark.parametrize(("commit", "seen"), [(True, ["a"]), (False, [])])
def test_a_transaction_of_an_old_client_is_committed_or_aborted(
    client: EmbeddedClient, commit: bool, seen: list[str]
) -> None:
    client.create("orders", 2)
    producer = begun(client)
    assert added(client, producer, 0) == [ErrorCode.NONE]
    assert produced(client, producer, version=9) == ErrorCode.NONE
    assert ended(client, producer, commit=commit).error_code == ErrorCode.NONE
    assert ended(client, producer, commit=commit).error_code == ErrorCode.NONE
    assert ended(client, producer, commit=not commit).error_code == ErrorCode.INVALID_TXN_STATE
    fetched = client.fetch("orders", isolation_level=1)
    assert fetched.last_stable_offset == 2
    aborted = fetched.aborted_transactions or []
    assert [entry.producer_id for entry in aborted] == ([] if commit else [producer.producer_id])
    assert values_of(fetched.records)[: len(seen)] == seen


def test_nothing_is_added_when_one_partition_is_unknown(client: EmbeddedClient) -> None:
    client.create("orders", 2)
    producer = begun(client)
    assert added(client, producer, 0, 7) == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert ended(client, producer).error_code == ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("version", "code"),
    [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_a_partition_that_was_not_added_is_refused(
    client: EmbeddedClient, version: int, code: ErrorCode
) -> None:
    client.create("orders", 2)
    producer = begun(client)
    added(client, producer, 0)
    assert produced(client, producer, version=version, partition=1) == code


def test_several_transactions_are_added_to_or_verified_at_once(client: EmbeddedClient) -> None:
    client.create("orders", 2)
    producer = begun(client)
    added(client, producer, 0)
    topic = wire.AddPartitionsToTxnTopic("orders", [0, 1])
    asked = [
        wire.AddPartitionsToTxnTransaction(NAME, *producer, True, [topic]),
        wire.AddPartitionsToTxnTransaction("nobody", 9, 0, False, [topic]),
    ]
    request = wire.AddPartitionsToTxnRequest(asked)
    answer = client.ask(request, wire.AddPartitionsToTxnResponse, 5)
    codes = {
        result.transactional_id: [
            part.partition_error_code for part in result.topic_results[0].results_by_partition
        ]
        for result in answer.results_by_transaction
    }
    assert codes == {
        NAME: [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE],
        "nobody": [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2,
    }


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_count_when_their_transaction_commits(client: EmbeddedClient, commit: bool) -> None:
    client.create("orders")
    producer = begun(client)
    refused = offsets_committed(client, producer, 5, version=3)
    assert refused == ErrorCode.INVALID_TXN_STATE
    request = wire.AddOffsetsToTxnRequest(NAME, *producer, "group")
    assert client.ask(request, wire.AddOffsetsToTxnResponse, 3).error_code == ErrorCode.NONE
    assert offsets_committed(client, producer, 5, version=3) == ErrorCode.NONE
    assert committed_offset(client, "group") == -1
    ended(client, producer, commit=commit)
    assert committed_offset(client, "group") == (5 if commit else -1)


def test_what_a_v2_client_writes_joins_its_transaction(client: EmbeddedClient) -> None:
    client.create("orders")
    producer = begun(client)
    assert produced(client, producer, version=12) == ErrorCode.NONE
    assert offsets_committed(client, producer, 5, version=5) == ErrorCode.NONE
    answer = ended(client, producer, version=5)
    assert answer.error_code == ErrorCode.NONE
    following = ProducerIdentity(answer.producer_id, answer.producer_epoch)
    assert following == ProducerIdentity(producer.producer_id, producer.epoch + 1)
    assert committed_offset(client, "group") == 5
    assert values_of(client.fetch("orders", isolation_level=1).records)[:1] == ["a"]
    late = produced(client, producer, version=12)
    assert late == ErrorCode.INVALID_PRODUCER_EPOCH
    assert produced(client, following, version=12) == ErrorCode.NONE


def test_a_v2_write_waits_until_its_partition_is_safely_added(tmp_path: Path) -> None:
    config = BrokerConfig(durability="fsync", transaction_state_log_num_partitions=2)
    with Broker(config, data_directory=str(tmp_path)) as broker:
        with broker.lock:
            broker.state.topics.create("orders", partition_count=1)
            log = broker.state.storage.log(TopicPartition("orders", 0))
        begun_answer = waited(broker, wire.InitProducerIdRequest(NAME, 60_000), version=5)
        assert isinstance(begun_answer, wire.InitProducerIdResponse)
        producer = ProducerIdentity(begun_answer.producer_id, begun_answer.producer_epoch)
        request = produce_request("orders", transactional_batch(producer))
        request.transactional_id = NAME
        with broker.lock:
            # The flusher cannot finish in here: the partition is not safely added.
            pending = broker.handle(ApiKey.PRODUCE, 12, request, ConnectionInfo())
            assert log.end_offset == 0
        response = answer_of(broker, pending)
        assert isinstance(response, ProduceResponse)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        waited(broker, wire.EndTxnRequest(NAME, *producer, True), version=5)
        with broker.lock:
            assert (log.last_stable_offset, log.end_offset) == (2, 2)


def waited(broker: Broker, request: object, *, version: int) -> object:
    api_key = SPECS[type(request)].api_key
    assert api_key is not None
    return answer_of(broker, broker.handle(api_key, version, request, ConnectionInfo()))


def answer_of(broker: Broker, pending: object) -> object:
    assert isinstance(pending, Pending)
    found: SimpleQueue[object] = SimpleQueue()
    broker.when_done(pending, found.put)
    return found.get(timeout=60)


def test_transactions_v2_are_announced_to_clients_that_can_read_it(
    client: EmbeddedClient,
) -> None:
    answer = client.ask(ApiVersionsRequest(), ApiVersionsResponse, 4)
    (feature,) = answer.finalized_features
    assert (feature.name, feature.max_version_level) == ("transaction.version", 2)
    assert not client.ask(ApiVersionsRequest(), ApiVersionsResponse, 3).finalized_features


def test_transactions_are_described(client: EmbeddedClient) -> None:
    client.create("orders", 2)
    producer = begun(client)
    added(client, producer, 1, 0)
    request = wire.DescribeTransactionsRequest([NAME, "nobody", ""])
    bank, nobody, empty = client.ask(request, wire.DescribeTransactionsResponse).transaction_states
    assert (bank.transaction_state, bank.transaction_timeout_ms) == ("Ongoing", 60_000)
    assert (bank.producer_id, bank.producer_epoch) == producer
    assert bank.transaction_start_time_ms == client.clock.now_ms()
    assert [(topic.topic, topic.partitions) for topic in bank.topics] == [("orders", [0, 1])]
    assert nobody.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert empty.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({}, ["bank", "shop: 2"]),
        ({"state_filters": ["Ongoing"]}, ["bank"]),
        ({"state_filters": ["Empty", "Sleeping"]}, ["shop: 2"]),
        ({"state_filters": ["Sleeping"]}, []),
        ({"producer_id_filters": [1]}, ["shop: 2"]),
        ({"duration_filter": 4999}, ["bank", "shop: 2"]),
        ({"duration_filter": 5000}, ["shop: 2"]),
        ({"transactional_id_pattern": "b.*"}, ["bank"]),
        ({"transactional_id_pattern": "b"}, []),
        ({"transactional_id_pattern": "[^b]+"}, ["shop: 2"]),
        ({"transactional_id_pattern": r"shop:\s\d"}, ["shop: 2"]),
    ],
)
def test_transactions_are_listed_by_filters(
    client: EmbeddedClient, filters: dict[str, object], names: list[str]
) -> None:
    client.create("orders")
    producer = begun(client)
    added(client, producer, 0)
    begun(client, "shop: 2")
    client.clock.advance(5000)
    request = wire.ListTransactionsRequest()
    for name, value in filters.items():
        setattr(request, name, value)
    answer = client.ask(request, wire.ListTransactionsResponse)
    assert [found.transactional_id for found in answer.transaction_states] == names
    unknown = ["Sleeping"] if "Sleeping" in request.state_filters else []
    assert answer.unknown_state_filters == unknown


def test_a_wrong_pattern_is_refused(client: EmbeddedClient) -> None:
    request = wire.ListTransactionsRequest(transactional_id_pattern="(")
    answer = client.ask(request, wire.ListTransactionsResponse)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_producers_are_described_and_a_hanging_transaction_is_aborted_by_hand(
    client: EmbeddedClient,
) -> None:
    client.create("orders")
    producer = begun(client)
    added(client, producer, 0)
    produced(client, producer, version=9)
    asked = wire.DescribeProducersRequest([wire.TopicRequest("orders", [0, 7])])
    known, unknown = client.ask(asked, wire.DescribeProducersResponse).topics[0].partitions
    (found,) = known.active_producers
    assert (found.producer_id, found.producer_epoch) == producer
    assert (found.last_sequence, found.current_txn_start_offset) == (0, 0)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic = wire.WritableTxnMarkerTopic("orders", [0, 7])
    marker = wire.WritableTxnMarker(*producer, False, [topic], 0)
    answer = client.ask(wire.WriteTxnMarkersRequest([marker]), wire.WriteTxnMarkersResponse)
    codes = [part.error_code for part in answer.markers[0].topics[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    (found,) = (
        client.ask(asked, wire.DescribeProducersResponse).topics[0].partitions[0].active_producers
    )
    assert found.current_txn_start_offset == -1


def test_no_marker_is_written_by_hand_to_the_topic_of_transactions(client: EmbeddedClient) -> None:
    client.broker.state.topics.ensure_internal(TRANSACTION_TOPIC)
    topic = wire.WritableTxnMarkerTopic(TRANSACTION_TOPIC, [0])
    marker = wire.WritableTxnMarker(7, 0, False, [topic], 0)
    answer = client.ask(wire.WriteTxnMarkersRequest([marker]), wire.WriteTxnMarkersResponse)
    (part,) = answer.markers[0].topics[0].partitions
    assert part.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
