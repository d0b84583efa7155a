"""One transactional id: every transition, refusal, fencing, epochs that run out."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from broker.coordinator.transaction import (
    EPOCH_EXHAUSTED,
    EPOCH_MAX,
    TRANSACTIONS_V1,
    TRANSACTIONS_V2,
    Transaction,
    TransactionState,
    add_partitions,
    complete,
    end,
    fence,
    initialise,
    is_expired,
    missing_partitions,
    remaining_ms,
)
from broker.errors import BrokerError, ErrorCode
from broker.model import ProducerIdentity, TopicPartition

ORDERS = TopicPartition("orders", 0)
BILLS = TopicPartition("bills", 3)
PRODUCER = ProducerIdentity(7, 5)
NOBODY = ProducerIdentity()
NEW_ID = 99


def transaction(state: TransactionState = TransactionState.EMPTY, epoch: int = 5) -> Transaction:
    holds = state is TransactionState.ONGOING or state.is_prepared
    return Transaction(
        transactional_id="bank",
        producer_id=7,
        epoch=epoch,
        timeout_ms=60_000,
        state=state,
        partitions=frozenset({ORDERS}) if holds else frozenset(),
        start_ms=1000 if holds else -1,
        update_ms=1000,
    )


def begun(before: Transaction, expected: ProducerIdentity = NOBODY) -> Transaction:
    return initialise(
        before, expected, timeout_ms=5000, now_ms=2000, new_producer_id=lambda: NEW_ID
    )


def added(before: Transaction, producer: ProducerIdentity = PRODUCER) -> Transaction:
    return add_partitions(before, producer, [BILLS], now_ms=2000)


def ended(
    before: Transaction,
    *,
    commit: bool,
    producer: ProducerIdentity = PRODUCER,
    version: int = TRANSACTIONS_V1,
) -> Transaction:
    return end(
        before,
        producer,
        commit=commit,
        now_ms=2000,
        new_producer_id=lambda: NEW_ID,
        client_version=version,
    )


OPERATIONS: dict[str, Callable[[Transaction], Transaction]] = {
    "initialise": begun,
    "add": added,
    "commit": lambda before: ended(before, commit=True),
    "abort": lambda before: ended(before, commit=False),
    "commit v2": lambda before: ended(before, commit=True, version=TRANSACTIONS_V2),
    "abort v2": lambda before: ended(before, commit=False, version=TRANSACTIONS_V2),
}

# The table at the top of the module, and the same for clients of transactions v2.
TABLE = """
                 initialise               add                      commit                   abort                    commit v2                abort v2
EMPTY            EMPTY/6                  ONGOING/5                INVALID_TXN_STATE        INVALID_TXN_STATE        INVALID_TXN_STATE        PREPARE_ABORT/6
ONGOING          PREPARE_ABORT/6          ONGOING/5                PREPARE_COMMIT/5         PREPARE_ABORT/5          PREPARE_COMMIT/6         PREPARE_ABORT/6
PREPARE_COMMIT   CONCURRENT_TRANSACTIONS  CONCURRENT_TRANSACTIONS  CONCURRENT_TRANSACTIONS  INVALID_TXN_STATE        PRODUCER_FENCED          PRODUCER_FENCED
PREPARE_ABORT    CONCURRENT_TRANSACTIONS  CONCURRENT_TRANSACTIONS  INVALID_TXN_STATE        CONCURRENT_TRANSACTIONS  PRODUCER_FENCED          PRODUCER_FENCED
COMPLETE_COMMIT  EMPTY/6                  ONGOING/5                COMPLETE_COMMIT/5        INVALID_TXN_STATE        INVALID_TXN_STATE        PREPARE_ABORT/6
COMPLETE_ABORT   EMPTY/6                  ONGOING/5                INVALID_TXN_STATE        COMPLETE_ABORT/5         INVALID_TXN_STATE        PREPARE_ABORT/6
"""  # noqa: E501 - a table


def table_cases() -> list[tuple[TransactionState, str, str]]:
    heading, *rows = TABLE.strip("\n").splitlines()
    columns = [heading.index(name) for name in OPERATIONS]
    cases = []
    for row in rows:
        state = TransactionState[row.split()[0]]
        for name, column in zip(OPERATIONS, columns, strict=True):
            cases.append((state, name, row[column:].split()[0]))
    return cases


@pytest.mark.parametrize(("state", "operation", "expected"), table_cases())
def test_each_state_answers_each_operation_as_the_table_says(
    state: TransactionState, operation: str, expected: str
) -> None:
    assert outcome(lambda: OPERATIONS[operation](transaction(state))) == expected


def outcome(attempt: Callable[[], Transaction]) -> str:
    try:
        after = attempt()
    except BrokerError as error:
        return error.code.name
    return f"{after.state.name}/{after.epoch}"


@pytest.mark.parametrize(
    ("producer", "code"),
    [
        (ProducerIdentity(8, 5), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ProducerIdentity(7, 4), ErrorCode.PRODUCER_FENCED),
        (ProducerIdentity(7, 6), ErrorCode.PRODUCER_FENCED),
    ],
)
@pytest.mark.parametrize("state", list(TransactionState)[:6])
def test_another_producer_is_refused_in_every_state(
    state: TransactionState, producer: ProducerIdentity, code: ErrorCode
) -> None:
    for attempt in (
        lambda: added(transaction(state), producer),
        lambda: ended(transaction(state), commit=True, producer=producer),
        lambda: ended(transaction(state), commit=False, producer=producer),
        lambda: missing_partitions(transaction(state), producer, [ORDERS]),
    ):
        with pytest.raises(BrokerError) as caught:
            attempt()
        assert caught.value.code is code


def test_the_first_producer_of_an_id_gets_epoch_zero() -> None:
    after = begun(Transaction("bank", producer_id=7))
    assert (after.producer, after.state) == (ProducerIdentity(7, 0), TransactionState.EMPTY)
    assert (after.timeout_ms, after.update_ms) == (5000, 2000)


def test_a_producer_that_names_its_epoch_goes_on_with_the_next() -> None:
    after = begun(transaction(), PRODUCER)
    assert (after.epoch, after.last_epoch) == (6, 5)


def test_a_repeated_request_with_the_epoch_before_gets_the_same_answer() -> None:
    once = begun(transaction(), PRODUCER)
    again = begun(once, PRODUCER)
    assert again.producer == once.producer


def test_a_producer_that_names_an_epoch_of_the_past_is_fenced_by_the_newer_one() -> None:
    newer = begun(transaction())
    for epoch in (4, 5, 7):
        with pytest.raises(BrokerError) as caught:
            begun(newer, ProducerIdentity(7, epoch))
        assert caught.value.code is ErrorCode.PRODUCER_FENCED


def test_a_producer_that_names_another_id_is_fenced() -> None:
    with pytest.raises(BrokerError) as caught:
        begun(transaction(), ProducerIdentity(8, 5))
    assert caught.value.code is ErrorCode.PRODUCER_FENCED


def test_a_producer_whose_id_was_forgotten_starts_anew() -> None:
    after = begun(Transaction("bank", producer_id=12), PRODUCER)
    assert after.producer == ProducerIdentity(12, 0)


def test_a_new_producer_id_is_taken_when_the_epochs_run_out() -> None:
    after = begun(transaction(epoch=EPOCH_EXHAUSTED))
    assert after.producer == ProducerIdentity(NEW_ID, 0)
    assert (after.previous_producer_id, after.last_epoch) == (7, -1)


def test_the_producer_that_used_up_the_epochs_may_repeat_its_request() -> None:
    last = ProducerIdentity(7, EPOCH_EXHAUSTED)
    once = begun(transaction(epoch=EPOCH_EXHAUSTED), last)
    assert once.producer == ProducerIdentity(NEW_ID, 0)
    assert begun(once, last).producer == once.producer


def test_a_fenced_producer_cannot_take_the_new_id_when_the_epochs_run_out() -> None:
    with pytest.raises(BrokerError) as caught:
        begun(transaction(epoch=EPOCH_EXHAUSTED), ProducerIdentity(7, EPOCH_EXHAUSTED - 1))
    assert caught.value.code is ErrorCode.PRODUCER_FENCED


def test_fencing_can_use_the_one_epoch_no_client_gets() -> None:
    ongoing = transaction(TransactionState.ONGOING, epoch=EPOCH_EXHAUSTED)
    fenced = fence(ongoing, now_ms=2000)
    assert (fenced.epoch, fenced.state) == (EPOCH_MAX, TransactionState.PREPARE_ABORT)
    after = begun(complete(fenced, now_ms=2100))
    assert after.producer == ProducerIdentity(NEW_ID, 0)


def test_adding_what_is_there_changes_nothing() -> None:
    ongoing = transaction(TransactionState.ONGOING)
    assert add_partitions(ongoing, PRODUCER, [ORDERS], now_ms=2000) is ongoing


def test_a_transaction_starts_with_its_first_partition_and_keeps_its_start() -> None:
    first = added(transaction())
    assert (first.start_ms, first.partitions) == (2000, frozenset({BILLS}))
    second = add_partitions(first, PRODUCER, [ORDERS], now_ms=3000)
    assert (second.start_ms, second.update_ms) == (2000, 3000)
    assert second.partitions == {ORDERS, BILLS}


def test_a_partition_outside_the_transaction_is_named() -> None:
    ongoing = transaction(TransactionState.ONGOING)
    assert missing_partitions(ongoing, PRODUCER, [ORDERS, BILLS]) == {BILLS}


def test_completion_clears_the_partitions_and_keeps_the_outcome() -> None:
    prepared = ended(transaction(TransactionState.ONGOING), commit=True)
    done = complete(prepared, now_ms=2100)
    assert (done.state, done.partitions) == (TransactionState.COMPLETE_COMMIT, frozenset())
    assert ended(done, commit=True) is done


def test_a_v2_client_gets_the_next_epoch_from_every_end() -> None:
    prepared = ended(transaction(TransactionState.ONGOING), commit=True, version=TRANSACTIONS_V2)
    assert prepared.visible_producer == ProducerIdentity(7, 6)
    done = complete(prepared, now_ms=2100)
    assert done.producer == ProducerIdentity(7, 6)


@pytest.mark.parametrize("commit", [True, False])
def test_a_repeated_end_of_a_v2_client_is_known_by_the_epoch_before(commit: bool) -> None:
    ongoing = transaction(TransactionState.ONGOING)
    prepared = ended(ongoing, commit=commit, version=TRANSACTIONS_V2)
    with pytest.raises(BrokerError) as caught:
        ended(prepared, commit=commit, version=TRANSACTIONS_V2)
    assert caught.value.code is ErrorCode.CONCURRENT_TRANSACTIONS
    done = complete(prepared, now_ms=2100)
    assert ended(done, commit=commit, version=TRANSACTIONS_V2) is done
    with pytest.raises(BrokerError) as caught:
        ended(done, commit=not commit, version=TRANSACTIONS_V2)
    assert caught.value.code is ErrorCode.INVALID_TXN_STATE


def test_a_v2_client_gets_a_new_id_when_the_epochs_run_out_and_may_repeat() -> None:
    last = ProducerIdentity(7, EPOCH_EXHAUSTED)
    ongoing = transaction(TransactionState.ONGOING, epoch=EPOCH_EXHAUSTED)
    prepared = ended(ongoing, commit=True, producer=last, version=TRANSACTIONS_V2)
    assert prepared.producer == ProducerIdentity(7, EPOCH_MAX)
    assert prepared.visible_producer == ProducerIdentity(NEW_ID, 0)
    done = complete(prepared, now_ms=2100)
    assert (done.producer, done.previous_producer_id) == (ProducerIdentity(NEW_ID, 0), 7)
    assert ended(done, commit=True, producer=last, version=TRANSACTIONS_V2) is done


def test_the_time_that_is_left_is_never_more_than_the_timeout() -> None:
    ongoing = transaction(TransactionState.ONGOING)
    assert remaining_ms(ongoing, now_ms=1_000) == ongoing.timeout_ms == 60_000
    assert remaining_ms(ongoing, now_ms=61_000) == 0
    assert remaining_ms(ongoing, now_ms=61_001) == -1
    assert remaining_ms(ongoing, now_ms=-3_600_000) == 60_000


@pytest.mark.parametrize("state", list(TransactionState)[:6])
def test_an_id_expires_only_when_it_has_nothing_open(state: TransactionState) -> None:
    idle = state is TransactionState.EMPTY or state.is_complete
    assert is_expired(transaction(state), now_ms=1500, expiration_ms=500) == idle
    assert not is_expired(transaction(state), now_ms=1499, expiration_ms=500)


def test_an_expired_epoch_zero_retry_is_no_repeat_of_another_transaction() -> None:
    # An id that goes from ONGOING straight to a new transaction has no answered end to repeat.
    ongoing = replace(transaction(TransactionState.ONGOING), epoch=6)
    with pytest.raises(BrokerError) as caught:
        ended(ongoing, commit=True, version=TRANSACTIONS_V2)
    assert caught.value.code is ErrorCode.PRODUCER_FENCED


def test_states_have_the_names_that_tools_print() -> None:
    assert [state.title for state in TransactionState] == [
        "Empty", "Ongoing", "PrepareCommit", "PrepareAbort",
        "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
    ]  # fmt: skip
