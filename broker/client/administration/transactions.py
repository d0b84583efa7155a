"""Transactions and the producers behind them."""

from collections.abc import Iterable

from broker.client.administration.brokers import describe_cluster
from broker.client.administration.outcomes import collect, error_for
from broker.client.administration.values import (
    ProducerDescription,
    Results,
    TransactionDescription,
    TransactionListing,
)
from broker.client.answers import check
from broker.client.cluster import Cluster
from broker.client.consumer_protocol import group_by_topic
from broker.errors import BrokerError
from broker.model import TopicPartition
from broker.protocol.messages.transactions import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ProducerState,
    TopicRequest,
    TransactionState,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def list_transactions(
    cluster: Cluster,
    *,
    states: Iterable[str],
    producer_ids: Iterable[int],
    timeout_ms: int,
) -> list[TransactionListing]:
    """The transactional ids of all brokers; each broker lists those that it coordinates."""
    request = ListTransactionsRequest(
        state_filters=list(states), producer_id_filters=list(producer_ids)
    )
    found: dict[str, TransactionListing] = {}
    for node in describe_cluster(cluster, timeout_ms=timeout_ms).nodes:
        response = cluster.call(node.id, request, ListTransactionsResponse, timeout_ms=timeout_ms)
        check(response.error_code, f"cannot list the transactions of {node}")
        for item in response.transaction_states:
            found[item.transactional_id] = TransactionListing(
                item.transactional_id, item.producer_id, item.transaction_state
            )
    return [found[transactional_id] for transactional_id in sorted(found)]


def describe_transactions(
    cluster: Cluster, transactional_ids: Iterable[str], *, timeout_ms: int
) -> Results[str, TransactionDescription]:
    """State, producer and partitions of transactions."""
    answers: list[tuple[str, TransactionState, BrokerError | None]] = []
    for transactional_id in transactional_ids:
        response = cluster.call_coordinator(
            ("transaction", transactional_id),
            DescribeTransactionsRequest(transactional_ids=[transactional_id]),
            DescribeTransactionsResponse,
            lambda answer: answer.transaction_states[0].error_code,
            timeout_ms=timeout_ms,
        )
        state = response.transaction_states[0]
        what = f'cannot describe transactional id "{transactional_id}"'
        answers.append((transactional_id, state, error_for(state.error_code, what)))
    return collect(answers, _description)


def _description(state: TransactionState) -> TransactionDescription:
    return TransactionDescription(
        state.transactional_id,
        state.transaction_state,
        state.producer_id,
        state.producer_epoch,
        state.transaction_timeout_ms,
        state.transaction_start_time_ms,
        tuple(
            TopicPartition(topic.topic, number)
            for topic in state.topics
            for number in topic.partitions
        ),
    )


def describe_producers(
    cluster: Cluster, partitions: Iterable[TopicPartition], *, timeout_ms: int
) -> Results[TopicPartition, tuple[ProducerDescription, ...]]:
    """Producers that partitions remember, from the partitions' leaders."""
    by_leader: dict[int, list[TopicPartition]] = {}
    for tp in partitions:
        by_leader.setdefault(cluster.leader(tp, timeout_ms=timeout_ms), []).append(tp)
    answers: list[tuple[TopicPartition, list[ProducerState], BrokerError | None]] = []
    for leader, wanted in by_leader.items():
        request = DescribeProducersRequest(
            topics=[
                TopicRequest(name=name, partition_indexes=numbers)
                for name, numbers in group_by_topic(wanted).items()
            ]
        )
        response = cluster.call(leader, request, DescribeProducersResponse, timeout_ms=timeout_ms)
        for topic in response.topics:
            for item in topic.partitions:
                tp = TopicPartition(topic.name, item.partition_index)
                what = f"cannot describe the producers of {tp}"
                error = error_for(item.error_code, what, item.error_message)
                answers.append((tp, item.active_producers, error))
    return collect(answers, lambda states: tuple(_producer(state) for state in states))


def _producer(state: ProducerState) -> ProducerDescription:
    start = state.current_txn_start_offset
    return ProducerDescription(
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        state.coordinator_epoch,
        None if start < 0 else start,
    )


def abort_transaction(
    cluster: Cluster, tp: TopicPartition, producer: ProducerDescription, *, timeout_ms: int
) -> None:
    """Write the abort marker that a coordinator has failed to write (a hanging transaction)."""
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])],
        coordinator_epoch=max(0, producer.coordinator_epoch),
    )
    response = cluster.call(
        cluster.leader(tp, timeout_ms=timeout_ms),
        WriteTxnMarkersRequest(markers=[marker]),
        WriteTxnMarkersResponse,
        timeout_ms=timeout_ms,
    )
    for result in response.markers:
        for topic in result.topics:
            for item in topic.partitions:
                what = f"cannot abort the transaction of producer {producer.producer_id} in {tp}"
                check(item.error_code, what)
