"""Producer ids and transactions: converts messages of all versions to the coordinator's values."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from broker.coordinator.parts import Parts, each
from broker.coordinator.topic_pattern import TopicPattern
from broker.coordinator.transaction import (
    TRANSACTIONS_V1,
    TRANSACTIONS_V2,
    TransactionState,
)
from broker.errors import BrokerError, ErrorCode
from broker.handlers.answers import follow, gather
from broker.handlers.offsets import commit_in_transaction, transactional_response
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import (
    GROUP_TOPIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TRANSACTION_TOPIC,
    ProducerIdentity,
    TopicPartition,
)
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import transactions as wire

PRODUCER_FENCED_VERSION_MIN = 2  # older clients only support INVALID_PRODUCER_EPOCH
INIT_FENCED_VERSION_MIN = 4
ADD_MANY_VERSION_MIN = 4
ADD_ABORTABLE_VERSION_MIN = 5
END_NEW_EPOCH_VERSION_MIN = 5
OFFSETS_ABORTABLE_VERSION_MIN = 4
OFFSETS_IMPLICIT_VERSION_MIN = 5

STATES_BY_TITLE = {state.title: state for state in TransactionState}


def init_producer_id(
    state: BrokerState, request: wire.InitProducerIdRequest, context: RequestContext
) -> wire.InitProducerIdResponse | Pending[wire.InitProducerIdResponse]:
    """A producer starts, idempotent or transactional."""
    expected = ProducerIdentity(request.producer_id, request.producer_epoch)
    try:
        _check_init(expected)
        answer = state.transactions.init_producer_id(
            request.transactional_id,
            timeout_ms=request.transaction_timeout_ms,
            expected=expected,
        )
    except BrokerError as error:
        modern = context.version >= INIT_FENCED_VERSION_MIN
        return wire.InitProducerIdResponse(
            error_code=_fencing_code(error.code, modern=modern), producer_epoch=NO_PRODUCER_EPOCH
        )
    return follow(
        answer,
        lambda producer: wire.InitProducerIdResponse(
            producer_id=producer.producer_id, producer_epoch=producer.epoch
        ),
    )


def _check_init(expected: ProducerIdentity) -> None:
    if (expected.producer_id == NO_PRODUCER_ID) != (expected.epoch == NO_PRODUCER_EPOCH):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "a producer id needs its epoch")


def _fencing_code(code: ErrorCode, *, modern: bool) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED and not modern:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def add_partitions_to_txn(
    state: BrokerState, request: wire.AddPartitionsToTxnRequest, context: RequestContext
) -> object:
    """Add partitions to a transaction; since version 4 to several transactions at once."""
    if context.version < ADD_MANY_VERSION_MIN:
        only = wire.AddPartitionsToTxnTransaction(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        return follow(
            _add_to_one(state, only, context.version),
            lambda results: wire.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results),
        )
    return _add_to_many(state, request, context.version)


def _add_to_many(
    state: BrokerState, request: wire.AddPartitionsToTxnRequest, version: int
) -> Parts[wire.AddPartitionsToTxnResponse | Pending[wire.AddPartitionsToTxnResponse]]:
    answers = []
    for asked in request.transactions:
        answers.append(
            follow(
                _add_to_one(state, asked, version),
                partial(wire.AddPartitionsToTxnResult, asked.transactional_id),
            )
        )
        yield
    return follow(
        gather(answers),
        lambda results: wire.AddPartitionsToTxnResponse(results_by_transaction=results),
    )


def _add_to_one(
    state: BrokerState, asked: wire.AddPartitionsToTxnTransaction, version: int
) -> list[wire.AddPartitionsToTxnTopicResult] | Pending[list[wire.AddPartitionsToTxnTopicResult]]:
    partitions = _partitions_of((topic.name, topic.partitions) for topic in asked.topics)
    producer = ProducerIdentity(asked.producer_id, asked.producer_epoch)
    unknown = {partition for partition in partitions if state.partitions.get(partition) is None}
    if unknown:
        return _add_results(
            asked,
            lambda partition: (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if partition in unknown
                else ErrorCode.OPERATION_NOT_ATTEMPTED
            ),
        )
    try:
        if asked.verify_only:
            return _verify_one(state, asked, producer, version)
        many = version >= ADD_MANY_VERSION_MIN
        answer = state.transactions.add_partitions(
            asked.transactional_id,
            producer,
            partitions,
            client_version=TRANSACTIONS_V2 if many else TRANSACTIONS_V1,
        )
    except BrokerError as error:
        code = _fencing_code(error.code, modern=version >= PRODUCER_FENCED_VERSION_MIN)
        return _add_results(asked, lambda _: code)
    return follow(answer, lambda code: _add_results(asked, lambda _: code))


def _verify_one(
    state: BrokerState,
    asked: wire.AddPartitionsToTxnTransaction,
    producer: ProducerIdentity,
    version: int,
) -> list[wire.AddPartitionsToTxnTopicResult]:
    partitions = _partitions_of((topic.name, topic.partitions) for topic in asked.topics)
    missing = state.transactions.missing_partitions(asked.transactional_id, producer, partitions)
    abortable = version >= ADD_ABORTABLE_VERSION_MIN
    refusal = ErrorCode.TRANSACTION_ABORTABLE if abortable else ErrorCode.INVALID_TXN_STATE
    return _add_results(
        asked, lambda partition: refusal if partition in missing else ErrorCode.NONE
    )


def _add_results(
    asked: wire.AddPartitionsToTxnTransaction, code_of: Callable[[TopicPartition], ErrorCode]
) -> list[wire.AddPartitionsToTxnTopicResult]:
    return [
        wire.AddPartitionsToTxnTopicResult(
            topic.name,
            [
                wire.AddPartitionsToTxnPartitionResult(
                    number, code_of(TopicPartition(topic.name, number))
                )
                for number in topic.partitions
            ],
        )
        for topic in asked.topics
    ]


def refuse_partitions(
    request: wire.AddPartitionsToTxnRequest, code: ErrorCode
) -> wire.AddPartitionsToTxnResponse:
    """The same error for every partition, in the format of old and new versions."""
    old = wire.AddPartitionsToTxnTransaction(topics=request.v3_and_below_topics)
    return wire.AddPartitionsToTxnResponse(
        error_code=code, results_by_topic_v3_and_below=_add_results(old, lambda _: code)
    )


def add_offsets_to_txn(
    state: BrokerState, request: wire.AddOffsetsToTxnRequest, context: RequestContext
) -> wire.AddOffsetsToTxnResponse | Pending[wire.AddOffsetsToTxnResponse]:
    """Add a group's offsets to a transaction."""
    try:
        answer = state.transactions.add_partitions(
            request.transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            [state.transactions.offsets_partition(request.group_id)],
        )
    except BrokerError as error:
        modern = context.version >= PRODUCER_FENCED_VERSION_MIN
        return wire.AddOffsetsToTxnResponse(error_code=_fencing_code(error.code, modern=modern))
    return follow(answer, lambda code: wire.AddOffsetsToTxnResponse(error_code=code))


def end_txn(
    state: BrokerState, request: wire.EndTxnRequest, context: RequestContext
) -> wire.EndTxnResponse | Pending[wire.EndTxnResponse]:
    """Commit or abort."""
    moves = context.version >= END_NEW_EPOCH_VERSION_MIN
    try:
        answer = state.transactions.end(
            request.transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            commit=request.committed,
            client_version=TRANSACTIONS_V2 if moves else TRANSACTIONS_V1,
        )
    except BrokerError as error:
        modern = context.version >= PRODUCER_FENCED_VERSION_MIN
        return wire.EndTxnResponse(error_code=_fencing_code(error.code, modern=modern))
    return follow(
        answer,
        lambda producer: wire.EndTxnResponse(
            producer_id=producer.producer_id, producer_epoch=producer.epoch
        ),
    )


def txn_offset_commit(
    state: BrokerState, request: wire.TxnOffsetCommitRequest, context: RequestContext
) -> wire.TxnOffsetCommitResponse | Pending[wire.TxnOffsetCommitResponse]:
    """Commit offsets in a transaction; since version 5 the group is added implicitly."""
    producer = ProducerIdentity(request.producer_id, request.producer_epoch)
    partition = state.transactions.offsets_partition(request.group_id)
    try:
        if context.version < OFFSETS_IMPLICIT_VERSION_MIN:
            abortable = context.version >= OFFSETS_ABORTABLE_VERSION_MIN
            state.transactions.verify(
                request.transactional_id,
                producer,
                [partition],
                refusal=(
                    ErrorCode.TRANSACTION_ABORTABLE if abortable else ErrorCode.INVALID_TXN_STATE
                ),
            )
            return commit_in_transaction(state, request)
        joined = state.transactions.add_partitions(
            request.transactional_id, producer, [partition], client_version=TRANSACTIONS_V2
        )
    except BrokerError as error:
        code = OFFSET_ERRORS.get(error.code, error.code)
        return refuse_offsets(request, code)
    return follow(joined, lambda _: commit_in_transaction(state, request))


# Kafka's group coordinator maps errors of partitions to codes that clients of offsets know.
OFFSET_ERRORS = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


def refuse_offsets(
    request: wire.TxnOffsetCommitRequest, code: ErrorCode
) -> wire.TxnOffsetCommitResponse:
    """The same error for every partition."""
    return transactional_response(request, repeat(code))


def write_txn_markers(
    state: BrokerState, request: wire.WriteTxnMarkersRequest, context: RequestContext
) -> Parts[wire.WriteTxnMarkersResponse | Pending[wire.WriteTxnMarkersResponse]]:
    """End transactions in single partitions: this aborts a hanging transaction."""
    answers = []
    for marker in request.markers:
        answers.append((yield from _write_marker(state, marker)))
        yield
    return follow(gather(answers), lambda results: wire.WriteTxnMarkersResponse(results))


Codes = dict[TopicPartition, ErrorCode]


def _write_marker(
    state: BrokerState, marker: wire.WritableTxnMarker
) -> Parts[wire.WritableTxnMarkerResult | Pending[wire.WritableTxnMarkerResult]]:
    answers: list[Codes | Pending[Codes]] = []
    seen: set[TopicPartition] = set()
    for partition in _each_partition(marker):
        yield
        if partition in seen:  # one marker per partition
            continue
        seen.add(partition)
        if partition.topic == TRANSACTION_TOPIC:  # only the coordinator writes to it
            answers.append({partition: ErrorCode.INVALID_TOPIC_EXCEPTION})
            continue
        answers.append(
            state.transactions.write_markers(
                ProducerIdentity(marker.producer_id, marker.producer_epoch),
                [partition],
                commit=marker.transaction_result,
                coordinator_epoch=marker.coordinator_epoch,
            )
        )

    def result(found: list[dict[TopicPartition, ErrorCode]]) -> wire.WritableTxnMarkerResult:
        codes = {partition: code for some in found for partition, code in some.items()}
        return _marker_result(marker, codes.__getitem__)

    return follow(gather(answers), result)


def _each_partition(marker: wire.WritableTxnMarker) -> Iterator[TopicPartition]:
    for topic in marker.topics:
        for number in topic.partition_indexes:
            yield TopicPartition(topic.name, number)


def _marker_result(
    marker: wire.WritableTxnMarker, code_of: Callable[[TopicPartition], ErrorCode]
) -> wire.WritableTxnMarkerResult:
    return wire.WritableTxnMarkerResult(
        marker.producer_id,
        [
            wire.WritableTxnMarkerTopicResult(
                topic.name,
                [
                    wire.WritableTxnMarkerPartitionResult(
                        number, code_of(TopicPartition(topic.name, number))
                    )
                    for number in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )


def refuse_markers(
    request: wire.WriteTxnMarkersRequest, code: ErrorCode
) -> wire.WriteTxnMarkersResponse:
    """The same error for every partition."""
    return wire.WriteTxnMarkersResponse(
        [_marker_result(marker, lambda _: code) for marker in request.markers]
    )


def describe_producers(
    state: BrokerState, request: wire.DescribeProducersRequest, context: RequestContext
) -> Parts[wire.DescribeProducersResponse]:
    """The producers of partitions, and their open transactions."""
    topics = []
    for topic in request.topics:
        # A partition that is listed twice is described once.
        numbers = dict.fromkeys(topic.partition_indexes)
        found = yield from each(numbers, partial(_producers_of, state, topic.name))
        topics.append(wire.TopicResponse(topic.name, found))
        yield
    return wire.DescribeProducersResponse(topics=topics)


def _producers_of(state: BrokerState, topic: str, number: int) -> wire.PartitionResponse:
    partition = TopicPartition(topic, number)
    try:
        found = state.partitions.leader(partition)
    except BrokerError as error:
        return wire.PartitionResponse(partition.partition, error.code, error.message)
    return wire.PartitionResponse(
        partition.partition,
        active_producers=[
            wire.ProducerState(
                entry.producer_id,
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp_ms,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
            for entry in found.producers()
        ],
    )


def refuse_producers(
    request: wire.DescribeProducersRequest, code: ErrorCode
) -> wire.DescribeProducersResponse:
    """The same error for every partition."""
    return wire.DescribeProducersResponse(
        topics=[
            wire.TopicResponse(
                topic.name,
                [wire.PartitionResponse(number, code) for number in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def describe_transactions(
    state: BrokerState, request: wire.DescribeTransactionsRequest, context: RequestContext
) -> Parts[wire.DescribeTransactionsResponse]:
    """The states of transactional ids."""
    # An id that is listed twice is described once.
    found = yield from each(dict.fromkeys(request.transactional_ids), partial(_description, state))
    return wire.DescribeTransactionsResponse(transaction_states=found)


def _description(state: BrokerState, transactional_id: str) -> wire.TransactionState:
    if not transactional_id:
        return wire.TransactionState(ErrorCode.INVALID_REQUEST, transactional_id)
    found = state.transactions.get(transactional_id)
    if found is None:
        return wire.TransactionState(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(found.partitions):
        by_topic.setdefault(topic, []).append(number)
    return wire.TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.title,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=[wire.TopicData(topic, numbers) for topic, numbers in by_topic.items()],
    )


def refuse_descriptions(
    request: wire.DescribeTransactionsRequest, code: ErrorCode
) -> wire.DescribeTransactionsResponse:
    """The same error for every transactional id."""
    return wire.DescribeTransactionsResponse(
        transaction_states=[wire.TransactionState(code, name) for name in request.transactional_ids]
    )


def list_transactions(
    state: BrokerState, request: wire.ListTransactionsRequest, context: RequestContext
) -> Parts[wire.ListTransactionsResponse]:
    """Transactional ids by state, producer id, age and name."""
    known = state.transactions.transactions()
    try:
        text = request.transactional_id_pattern
        pattern = TopicPattern(text) if text else None
    except BrokerError as error:
        return wire.ListTransactionsResponse(error_code=error.code)
    states = {STATES_BY_TITLE.get(title) for title in request.state_filters}
    producer_ids = set(request.producer_id_filters)
    started_before_ms = state.clock.now_ms() - request.duration_filter
    listed = []
    for found in known:
        if (
            (not states or found.state in states)
            and (not producer_ids or found.producer_id in producer_ids)
            and (request.duration_filter < 0 or found.start_ms < started_before_ms)
            and (pattern is None or pattern.matches(found.transactional_id))
        ):
            listed.append(
                wire.ListTransactionsResponseTransactionState(
                    found.transactional_id, found.producer_id, found.state.title
                )
            )
        yield
    return wire.ListTransactionsResponse(
        unknown_state_filters=[
            title for title in request.state_filters if title not in STATES_BY_TITLE
        ],
        transaction_states=listed,
    )


def _partitions_of(topics: Iterable[tuple[str, Sequence[int]]]) -> list[TopicPartition]:
    return [TopicPartition(name, number) for name, numbers in topics for number in numbers]


def prepare_id(
    state: BrokerState, request: wire.InitProducerIdRequest, context: RequestContext
) -> None:
    """Create the topic of transactions before the lock is acquired: this waits for the disk."""
    if request.transactional_id:
        state.topics.prepare_internal(TRANSACTION_TOPIC)


def prepare_offsets(state: BrokerState, request: object, context: RequestContext) -> None:
    """Create the topic of offsets before the lock is acquired: this waits for the disk."""
    state.topics.prepare_internal(GROUP_TOPIC)


PREPARATIONS: dict[ApiKey, Handler] = {
    ApiKey.INIT_PRODUCER_ID: prepare_id,
    ApiKey.ADD_OFFSETS_TO_TXN: prepare_offsets,
    ApiKey.TXN_OFFSET_COMMIT: prepare_offsets,
}
HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.INIT_PRODUCER_ID: init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: add_offsets_to_txn,
    ApiKey.END_TXN: end_txn,
    ApiKey.TXN_OFFSET_COMMIT: txn_offset_commit,
    ApiKey.WRITE_TXN_MARKERS: write_txn_markers,
    ApiKey.DESCRIBE_PRODUCERS: describe_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: describe_transactions,
    ApiKey.LIST_TRANSACTIONS: list_transactions,
}
# Any: each takes the request class of its API.
REFUSALS: dict[ApiKey, Callable[[Any, ErrorCode], object]] = {
    ApiKey.ADD_PARTITIONS_TO_TXN: refuse_partitions,
    ApiKey.TXN_OFFSET_COMMIT: refuse_offsets,
    ApiKey.WRITE_TXN_MARKERS: refuse_markers,
    ApiKey.DESCRIBE_PRODUCERS: refuse_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: refuse_descriptions,
}
