"""Transaction: the state of a transactional producer, and its requests to the coordinators.

    UNINITIALISED --init--> READY --begin--> IN_TRANSACTION --commit--> COMMITTING --> READY
                                                |        |
                                          error |        +----abort---> ABORTING ----> READY
                                                v                          ^
                                          ABORTABLE_ERROR -----abort-------+

    any state --fenced, not authorised, impossible state--> FATAL_ERROR (only close is left)

| state           | records taken | begin | send offsets | commit | abort |
|-----------------|---------------|-------|--------------|--------|-------|
| READY           | no            | yes   | no           | no     | no    |
| IN_TRANSACTION  | yes           | no    | yes          | yes    | yes   |
| COMMITTING      | no            | no    | no           | again  | no    |
| ABORTING        | no            | no    | no           | no     | again |
| ABORTABLE_ERROR | no            | no    | no           | no     | yes   |

The sender's thread adds partitions to the transaction before it sends their first batch; everything
else runs in the thread of the caller.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TypeVar

from broker import concurrency
from broker.client.accumulator import Accumulator
from broker.client.answers import code_of
from broker.client.api import GroupMetadata, OffsetAndMetadata
from broker.client.cluster import Cluster, CoordinatorKind
from broker.client.config import ProducerConfig
from broker.client.produced_batch import ProducedBatch
from broker.client.retry import Backoff, Retrier
from broker.client.sequences import Sequences
from broker.errors import BrokerError, ClientError, ErrorCode, MillstreamError, RequestTimeout
from broker.model import ProducerIdentity, TopicPartition
from broker.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

T = TypeVar("T")

# Later versions are for requests between brokers (AddPartitionsToTxn), or increment the epoch with
# every transaction.
ADD_PARTITIONS_VERSION_MAX = 3
END_VERSION_MAX = 4
OFFSET_COMMIT_VERSION_MAX = 4

# A new transaction must wait for the markers of the previous one: retry soon.
BACKOFF_FIRST_MS = 10
BACKOFF_LONGEST_MS = 200

FATAL = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})


class ProducerState(Enum):
    """The states of a transactional producer."""

    UNINITIALISED = "not initialised"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    ABORTABLE_ERROR = "in a transaction that failed"
    FATAL_ERROR = "unusable after a fatal error"


# Why records cannot be sent in a state.
REFUSALS = {
    ProducerState.UNINITIALISED: "call init_transactions() first",
    ProducerState.READY: "call begin_transaction() first",
    ProducerState.COMMITTING: "the transaction is being committed",
    ProducerState.ABORTING: "the transaction is being aborted",
}


class Transaction:
    """The transaction of one producer."""

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        accumulator: Accumulator,
        sequences: Sequences,
    ) -> None:
        assert config.transactional_id is not None
        self._cluster = cluster
        self._config = config
        self._id = config.transactional_id
        self._accumulator = accumulator
        self._sequences = sequences
        backoff = Backoff(BACKOFF_FIRST_MS, BACKOFF_LONGEST_MS, cluster.random)
        self._retrier = Retrier(cluster.clock, backoff)
        self._lock = concurrency.RLock()  # guards the fields below; never held while waiting
        self._state = ProducerState.UNINITIALISED
        self._error: MillstreamError | None = None
        self._partitions: set[TopicPartition] = set()
        self._has_offsets = False
        self._epoch_is_spent = False
        self._abandoned = False
        self._enter(ProducerState.UNINITIALISED)

    @property
    def state(self) -> ProducerState:
        return self._state

    # --- the caller's thread ------------------------------------------------------------------

    def init(self) -> None:
        """Take over the transactional id: older producers are fenced, their transactions ended."""
        with self._lock:
            self._expect("init_transactions", ProducerState.UNINITIALISED)
        self._identify(ProducerIdentity())
        with self._lock:
            self._enter(ProducerState.READY)

    def begin(self) -> None:
        with self._lock:
            self._expect("begin_transaction", ProducerState.READY)
            self._enter(ProducerState.IN_TRANSACTION)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata
    ) -> None:
        """Commit offsets of a group as part of the transaction."""
        with self._lock:
            self._expect("send_offsets_to_transaction", ProducerState.IN_TRANSACTION)
            producer = self._producer()
        if not offsets:
            return
        add = AddOffsetsToTxnRequest(self._id, *producer, group.group_id)
        added: AddOffsetsToTxnResponse = self._ask(add, lambda answer: answer.error_code)
        self._check(added.error_code, f'adding group "{group.group_id}" to the transaction')
        with self._lock:
            self._has_offsets = True
        commit = _offset_commit(self._id, producer, group, offsets)
        answer: TxnOffsetCommitResponse = self._ask(
            commit,
            _first_offset_error,
            coordinator=("group", group.group_id),
            version_max=OFFSET_COMMIT_VERSION_MAX,
        )
        self._check(_first_offset_error(answer), f'committing offsets of group "{group.group_id}"')

    def begin_commit(self) -> None:
        """Accept no more records; the caller flushes, then calls `end`."""
        with self._lock:
            self._expect(
                "commit_transaction", ProducerState.IN_TRANSACTION, ProducerState.COMMITTING
            )
            self._enter(ProducerState.COMMITTING)

    def begin_abort(self) -> None:
        """Drop unsent records; the caller waits for those in flight, then calls `end`."""
        with self._lock:
            self._expect(
                "abort_transaction",
                ProducerState.IN_TRANSACTION,
                ProducerState.ABORTABLE_ERROR,
                ProducerState.ABORTING,
            )
            self._error = None
            self._enter(ProducerState.ABORTING)

    def end(self) -> None:
        """Commit or abort, as it was begun; returns when the coordinator has decided."""
        with self._lock:
            self._raise_error()
            assert self._state in (ProducerState.COMMITTING, ProducerState.ABORTING), self._state
            committed = self._state is ProducerState.COMMITTING
            producer = self._producer()
            touched = bool(self._partitions) or self._has_offsets
        if touched:
            request = EndTxnRequest(self._id, *producer, committed)
            answer: EndTxnResponse = self._ask(
                request, lambda answer: answer.error_code, version_max=END_VERSION_MAX
            )
            verb = "committing" if committed else "aborting"
            self._check(answer.error_code, f'{verb} the transaction of "{self._id}"')
        if self._epoch_is_spent:
            # The broker will never receive some sequences; a new epoch starts at 0.
            self._identify(producer)
        with self._lock:
            self._partitions.clear()
            self._has_offsets = False
            self._epoch_is_spent = False
            self._enter(ProducerState.READY)

    def abandon(self) -> None:
        """Fail the transaction, even while its partitions or offsets are being added."""
        self._abandoned = True

    def is_open(self) -> bool:
        """Whether closing the producer should abort a transaction."""
        return self._state in (
            ProducerState.IN_TRANSACTION,
            ProducerState.ABORTABLE_ERROR,
            ProducerState.ABORTING,
        )

    def close(self) -> None:
        """End all waits."""
        self._retrier.close()

    # --- the sender's thread ------------------------------------------------------------------

    def failure(self) -> MillstreamError | None:
        """Why pending batches must not be sent; None if they may be."""
        if self._state is ProducerState.ABORTING:
            return ClientError(f'the transaction of "{self._id}" was aborted')
        return self._error

    def is_prepared(self, tp: TopicPartition) -> bool:
        """Whether the partition is part of the transaction."""
        return tp in self._partitions

    def prepare(self, partitions: Sequence[TopicPartition]) -> None:
        """Add partitions to the transaction; waits for the coordinator."""
        request = AddPartitionsToTxnRequest([], self._id, *self._producer(), _by_topic(partitions))
        try:
            answer: AddPartitionsToTxnResponse = self._ask(
                request, _first_partition_error, version_max=ADD_PARTITIONS_VERSION_MAX
            )
            what = f'adding partitions to the transaction of "{self._id}"'
            self._check(_first_partition_error(answer), what)
        except MillstreamError as error:
            self._failed(error)
            return
        with self._lock:
            self._partitions.update(partitions)

    def batch_failed(self, batch: ProducedBatch, error: MillstreamError) -> None:
        """A record is lost: the transaction can only be aborted."""
        with self._lock:
            if batch.has_sequence:
                self._epoch_is_spent = True
            if isinstance(error, BrokerError) and error.code is ErrorCode.PRODUCER_FENCED:
                self._fail(ProducerState.FATAL_ERROR, error)
            elif self._state in (ProducerState.IN_TRANSACTION, ProducerState.COMMITTING):
                self._fail(ProducerState.ABORTABLE_ERROR, error)

    # --- inside -------------------------------------------------------------------------------

    def _identify(self, producer: ProducerIdentity) -> None:
        request = InitProducerIdRequest(self._id, self._config.transaction_timeout_ms, *producer)
        answer: InitProducerIdResponse = self._ask(request, lambda answer: answer.error_code)
        self._check(answer.error_code, f'initialising transactional id "{self._id}"')
        self._sequences.start(ProducerIdentity(answer.producer_id, answer.producer_epoch))

    def _producer(self) -> ProducerIdentity:
        assert self._sequences.producer is not None, "init comes first"
        return self._sequences.producer

    def _ask(
        self,
        request: object,
        error_of: Callable[[T], int],
        *,
        coordinator: tuple[CoordinatorKind, str] | None = None,
        version_max: int | None = None,
    ) -> T:
        asked = coordinator or ("transaction", self._id)
        name = type(request).__name__.removesuffix("Request")

        def attempt(left_ms: int) -> T:
            if self._abandoned and not isinstance(request, EndTxnRequest | InitProducerIdRequest):
                raise ClientError(f'the transaction of "{self._id}" was abandoned')
            return self._cluster.ask_coordinator(
                asked, request, error_of, timeout_ms=left_ms, version_max=version_max
            )

        try:
            return self._retrier.run(
                f'{name} for {asked[0]} "{asked[1]}"',
                attempt,
                timeout_ms=self._config.max_block_ms,
            )
        except RequestTimeout:
            # The coordinator may have done it: a new epoch ends any open transaction.
            self._epoch_is_spent = True
            raise

    def _check(self, value: int, what: str) -> None:
        """Raise an error of the coordinator, after the change of state that it means."""
        if value == ErrorCode.NONE:
            return
        code = code_of(value)
        if code in FENCED:
            error = BrokerError(
                ErrorCode.PRODUCER_FENCED,
                f'{what}: another producer took over transactional id "{self._id}", or the '
                "transaction timed out",
                hint="close this producer; create a new one only if no other should use this id",
            )
        else:
            error = BrokerError(code, f"{what}: {code.name.lower().replace('_', ' ')}")
        self._failed(error)
        raise error

    def _failed(self, error: MillstreamError) -> None:
        with self._lock:
            fatal = isinstance(error, BrokerError) and error.code in FATAL
            if fatal:
                self._fail(ProducerState.FATAL_ERROR, error)
            elif self._state is not ProducerState.ABORTING:
                self._fail(ProducerState.ABORTABLE_ERROR, error)

    def _fail(self, state: ProducerState, error: MillstreamError) -> None:
        if self._state is ProducerState.UNINITIALISED and state is ProducerState.ABORTABLE_ERROR:
            return  # there is nothing to abort; init may be retried
        self._error = error
        self._enter(state)

    def _enter(self, state: ProducerState) -> None:
        self._state = state
        refusal: MillstreamError | None = None
        if state in REFUSALS:
            refusal = ClientError(f"no record can be sent now: {REFUSALS[state]}")
        elif state is not ProducerState.IN_TRANSACTION:
            refusal = self._blocked()
        self._accumulator.refuse(refusal)
        self._accumulator.wake()

    def _blocked(self) -> MillstreamError:
        if self._state is ProducerState.ABORTABLE_ERROR:
            return ClientError(
                f"the transaction failed: {self._error}", hint="call abort_transaction()"
            )
        return self._error or ClientError("the producer cannot continue")

    def _expect(self, what: str, *states: ProducerState) -> None:
        if self._state in states:
            return
        self._raise_error()
        raise ClientError(
            f"{what}() cannot be called now: the producer is {self._state.value}",
            hint=f"it can be called when it is {' or '.join(state.value for state in states)}",
        )

    def _raise_error(self) -> None:
        if self._state is ProducerState.FATAL_ERROR and self._error is not None:
            raise self._error
        if self._state is ProducerState.ABORTABLE_ERROR:
            raise self._blocked() from self._error


def _by_topic(partitions: Iterable[TopicPartition]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, AddPartitionsToTxnTopic(topic)).partitions.append(partition)
    return list(topics.values())


def _first_partition_error(answer: AddPartitionsToTxnResponse) -> int:
    """The first error that is a cause; other partitions only report that they were not tried."""
    codes = [
        result.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for result in topic.results_by_partition
        if result.partition_error_code
    ]
    telling = [code for code in codes if code != ErrorCode.OPERATION_NOT_ATTEMPTED]
    return next(iter(telling or codes), 0)


def _first_offset_error(answer: TxnOffsetCommitResponse) -> int:
    codes = (part.error_code for topic in answer.topics for part in topic.partitions)
    return next((code for code in codes if code), 0)


def _offset_commit(
    transactional_id: str,
    producer: ProducerIdentity,
    group: GroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> TxnOffsetCommitRequest:
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for tp, position in offsets.items():
        topics.setdefault(tp.topic, TxnOffsetCommitRequestTopic(tp.topic)).partitions.append(
            TxnOffsetCommitRequestPartition(
                tp.partition, position.offset, position.leader_epoch, position.metadata
            )
        )
    return TxnOffsetCommitRequest(
        transactional_id,
        group.group_id,
        *producer,
        group.generation_id,
        group.member_id,
        group.group_instance_id,
        list(topics.values()),
    )
