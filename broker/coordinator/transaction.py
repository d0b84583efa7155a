"""One transactional id: its producer, and the state of its transaction. Pure functions.

    EMPTY ──add──> ONGOING ──end──> PREPARE_COMMIT ──markers──> COMPLETE_COMMIT
                      │                                              │ add: ONGOING
                      └──end, fence──> PREPARE_ABORT ──markers──> COMPLETE_ABORT

    from             initialise         add      end(commit)     end(abort)     complete
    EMPTY            EMPTY              ONGOING  refused         refused [1]    -
    ONGOING          PREPARE_ABORT [2]  ONGOING  PREPARE_COMMIT  PREPARE_ABORT  -
    PREPARE_COMMIT   wait               wait     wait            refused        COMPLETE_COMMIT
    PREPARE_ABORT    wait               wait     refused         wait           COMPLETE_ABORT
    COMPLETE_COMMIT  EMPTY              ONGOING  same [3]        refused [1]    -
    COMPLETE_ABORT   EMPTY              ONGOING  refused         same [3]       -

refused is INVALID_TXN_STATE, wait is CONCURRENT_TRANSACTIONS: the client retries soon.
[1] A client of transactions v2 may abort a transaction that never began: PREPARE_ABORT without
    partitions, which increments its epoch and fences late writes of the failed attempt.
[2] Fenced: the epoch is incremented, so the older producer can neither write nor end, and the
    client retries once the transaction is aborted.
[3] A repeated request whose response was lost. Clients of transactions v2 get a new epoch from
    every end, so a repeat has the previous epoch; with the current epoch it is a new end.

A transition is a function from one immutable Transaction to the next; returning the same object
means that there is nothing to write. A refusal is a BrokerError.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from enum import IntEnum

from broker.errors import BrokerError, ErrorCode
from broker.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdentity, TopicPartition

EPOCH_MAX = 32_767
EPOCH_EXHAUSTED = EPOCH_MAX - 1  # the last epoch of a client; the coordinator fences with MAX

TRANSACTIONS_V1 = 1
TRANSACTIONS_V2 = 2  # partitions are added by producing, every end brings a new epoch

NewProducerId = Callable[[], int]


class TransactionState(IntEnum):
    """States, by their numbers in __transaction_state; the last two are only read."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The name that clients see: PrepareCommit for PREPARE_COMMIT."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided and the markers are being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_complete(self) -> bool:
        """Whether the last transaction has ended."""
        return self in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


@dataclass(frozen=True, slots=True)
class Transaction:
    """The state of a transactional id; only last_epoch does not survive a restart."""

    transactional_id: str
    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    last_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = field(default_factory=frozenset)
    start_ms: int = -1
    update_ms: int = -1
    client_version: int = TRANSACTIONS_V1

    @property
    def producer(self) -> ProducerIdentity:
        """Id and epoch of current batches and markers."""
        return ProducerIdentity(self.producer_id, self.epoch)

    @property
    def visible_producer(self) -> ProducerIdentity:
        """Id and epoch for the client: those of the next id if the epochs are exhausted."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return ProducerIdentity(self.next_producer_id, 0)
        return self.producer

    @property
    def is_commit(self) -> bool:
        """Whether the outcome is decided and is a commit."""
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)


def initialise(
    transaction: Transaction,
    expected: ProducerIdentity,
    *,
    timeout_ms: int,
    now_ms: int,
    new_producer_id: NewProducerId,
) -> Transaction:
    """A producer starts: EMPTY with its epoch, or PREPARE_ABORT if a transaction must end first.

    `expected` is the client's previous id and epoch, -1 if it has none.
    """
    if expected.producer_id != NO_PRODUCER_ID and not _may_continue(transaction, expected):
        raise _refusal(transaction, ErrorCode.PRODUCER_FENCED)
    if transaction.state.is_prepared:
        raise _refusal(transaction, ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.state is TransactionState.ONGOING:
        return fence(transaction, now_ms=now_ms)
    fresh = replace(
        transaction,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        partitions=frozenset(),
        start_ms=-1,
        update_ms=now_ms,
    )
    if transaction.epoch >= EPOCH_EXHAUSTED and expected.epoch in (
        NO_PRODUCER_EPOCH,
        transaction.epoch,
    ):
        remembered = expected.epoch != NO_PRODUCER_EPOCH
        return replace(
            fresh,
            producer_id=new_producer_id(),
            previous_producer_id=transaction.producer_id,
            epoch=0,
            last_epoch=transaction.epoch if remembered else NO_PRODUCER_EPOCH,
        )
    epoch, last_epoch = _next_epoch(transaction, expected.epoch)
    return replace(fresh, epoch=epoch, last_epoch=last_epoch)


def _may_continue(transaction: Transaction, expected: ProducerIdentity) -> bool:
    if transaction.epoch == NO_PRODUCER_EPOCH or expected.producer_id == transaction.producer_id:
        return True
    rolled_over = expected.producer_id == transaction.previous_producer_id
    return rolled_over and expected.epoch >= EPOCH_EXHAUSTED


def _next_epoch(transaction: Transaction, expected_epoch: int) -> tuple[int, int]:
    """The new epoch, and the previous one, which the same producer may still use."""
    current = transaction.epoch
    if expected_epoch == NO_PRODUCER_EPOCH:
        return current + 1, NO_PRODUCER_EPOCH
    if current == NO_PRODUCER_EPOCH or (expected_epoch == current and current < EPOCH_EXHAUSTED):
        return current + 1, current
    if expected_epoch == transaction.last_epoch:
        # The response to the same request was lost. Another producer would have reset last_epoch.
        return current, transaction.last_epoch
    raise _refusal(transaction, ErrorCode.PRODUCER_FENCED)


def add_partitions(
    transaction: Transaction,
    producer: ProducerIdentity,
    partitions: Collection[TopicPartition],
    *,
    now_ms: int,
    client_version: int = TRANSACTIONS_V1,
) -> Transaction:
    """Add partitions to the transaction; the first ones begin it."""
    _check_producer(transaction, producer)
    if transaction.state.is_prepared:
        raise _refusal(transaction, ErrorCode.CONCURRENT_TRANSACTIONS)
    ongoing = transaction.state is TransactionState.ONGOING
    if ongoing and transaction.partitions.issuperset(partitions):
        return transaction
    return replace(
        transaction,
        state=TransactionState.ONGOING,
        partitions=transaction.partitions.union(partitions),
        start_ms=transaction.start_ms if ongoing else now_ms,
        update_ms=now_ms,
        client_version=client_version,
    )


def missing_partitions(
    transaction: Transaction, producer: ProducerIdentity, partitions: Collection[TopicPartition]
) -> set[TopicPartition]:
    """The partitions that are not part of the producer's transaction."""
    _check_producer(transaction, producer)
    if transaction.state.is_prepared:
        raise _refusal(transaction, ErrorCode.CONCURRENT_TRANSACTIONS)
    return set(partitions) - transaction.partitions


def _check_producer(transaction: Transaction, producer: ProducerIdentity) -> None:
    if transaction.producer_id != producer.producer_id:
        raise _refusal(transaction, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.epoch != producer.epoch:
        raise _refusal(transaction, ErrorCode.PRODUCER_FENCED)


def end(
    transaction: Transaction,
    producer: ProducerIdentity,
    *,
    commit: bool,
    now_ms: int,
    new_producer_id: NewProducerId,
    client_version: int = TRANSACTIONS_V1,
) -> Transaction:
    """Decide the outcome: returns a PREPARE state, or the same object for a repeat."""
    epoch_moves = client_version >= TRANSACTIONS_V2
    repeated = epoch_moves and _is_repeat(transaction, producer)
    if not repeated:
        _check_producer(transaction, producer)
        if epoch_moves and transaction.state.is_prepared:
            raise _refusal(transaction, ErrorCode.PRODUCER_FENCED)
    match transaction.state:
        case TransactionState.ONGOING:
            return _prepare(transaction, commit, now_ms, client_version, new_producer_id)
        case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT:
            if commit == transaction.is_commit:
                raise _refusal(transaction, ErrorCode.CONCURRENT_TRANSACTIONS)
        case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT:
            if commit == transaction.is_commit and (repeated or not epoch_moves):
                return transaction
    if epoch_moves and not commit and not repeated:
        return _prepare(transaction, commit, now_ms, client_version, new_producer_id)
    raise _refusal(transaction, ErrorCode.INVALID_TXN_STATE)


def _is_repeat(transaction: Transaction, producer: ProducerIdentity) -> bool:
    if not (transaction.state.is_prepared or transaction.state.is_complete):
        return False
    if transaction.producer_id == producer.producer_id:
        return transaction.epoch == producer.epoch + 1
    rolled_over = transaction.previous_producer_id == producer.producer_id
    return rolled_over and producer.epoch == EPOCH_EXHAUSTED and transaction.epoch == 0


def _prepare(
    transaction: Transaction,
    commit: bool,
    now_ms: int,
    client_version: int,
    new_producer_id: NewProducerId,
) -> Transaction:
    prepared = replace(
        transaction,
        state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        start_ms=now_ms if transaction.start_ms < 0 else transaction.start_ms,
        update_ms=now_ms,
        client_version=client_version,
    )
    if client_version < TRANSACTIONS_V2:
        return prepared
    exhausted = transaction.epoch >= EPOCH_EXHAUSTED
    return replace(
        prepared,
        epoch=transaction.epoch + 1,
        last_epoch=transaction.epoch,
        next_producer_id=new_producer_id() if exhausted else NO_PRODUCER_ID,
    )


def fence(transaction: Transaction, *, now_ms: int) -> Transaction:
    """Abort an ongoing transaction and fence its producer with a higher epoch."""
    assert transaction.state is TransactionState.ONGOING, "only an ongoing transaction is fenced"
    return replace(
        transaction,
        state=TransactionState.PREPARE_ABORT,
        epoch=min(transaction.epoch + 1, EPOCH_MAX),
        last_epoch=NO_PRODUCER_EPOCH,
        update_ms=now_ms,
    )


def complete(transaction: Transaction, *, now_ms: int) -> Transaction:
    """Complete a transaction whose markers are all written."""
    assert transaction.state.is_prepared, "only a decided transaction completes"
    done = replace(
        transaction,
        state=(
            TransactionState.COMPLETE_COMMIT
            if transaction.is_commit
            else TransactionState.COMPLETE_ABORT
        ),
        partitions=frozenset(),
        update_ms=now_ms,
    )
    if transaction.next_producer_id == NO_PRODUCER_ID:
        return done
    return replace(
        done,
        producer_id=transaction.next_producer_id,
        previous_producer_id=transaction.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        epoch=0,
    )


def remaining_ms(transaction: Transaction, *, now_ms: int) -> int:
    """How much longer a transaction may stay open, by its stored start time.

    Never more than its timeout, even if the wall clock was set back. Negative if the time
    is over.
    """
    return min(transaction.start_ms + transaction.timeout_ms - now_ms, transaction.timeout_ms)


def is_expired(transaction: Transaction, *, now_ms: int, expiration_ms: int) -> bool:
    """Whether the id has been unused for long enough to expire."""
    idle = transaction.state is TransactionState.EMPTY or transaction.state.is_complete
    return idle and transaction.update_ms + expiration_ms <= now_ms


def _refusal(transaction: Transaction, code: ErrorCode) -> BrokerError:
    return BrokerError(
        code,
        at=f'transactional id "{transaction.transactional_id}", {transaction.state.title}, '
        f"producer {transaction.producer_id} epoch {transaction.epoch}",
    )
