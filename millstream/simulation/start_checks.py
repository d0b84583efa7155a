"""Start checks: a broker must have all acknowledged data when it has started.

Clients hide a loss of data: they commit later offsets, and end later transactions. So the broker
is checked after it has read its logs and before clients connect.
"""

from broker.broker import Broker
from broker.coordinator.transaction import TransactionState
from millstream.simulation.observations import Observations, Violation

OPEN_STATES = frozenset(
    {
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
    }
)


def check_started_broker(observations: Observations, broker: Broker) -> None:
    """Raise a Violation if something acknowledged is lost."""
    with broker.lock:
        _check_ends(observations, broker)
        _check_offsets(observations, broker)
        _check_open_transactions(broker)


def _check_ends(observations: Observations, broker: Broker) -> None:
    """Check the ends of logs; the checker reads the records themselves."""
    for tp, acknowledged in observations.acknowledged.items():
        log = broker.state.storage.get(tp)
        end_offset = 0 if log is None else log.end_offset
        last = max(acknowledged, default=-1)
        if last >= end_offset:
            raise Violation(
                "no acknowledged record is lost",
                f"{tp} ends at {end_offset} after a start, and {last} was acknowledged",
            )


def _check_offsets(observations: Observations, broker: Broker) -> None:
    offsets = broker.state.groups._store  # noqa: SLF001 - a request would have to wait
    for (group, tp), end in observations.committed.items():
        committed = offsets.get(group, tp)
        if committed is None or committed.offset < end:
            raise Violation(
                "no committed offset is lost",
                f"{group} has committed {end} for {tp}, and {committed} exists after a start",
            )


def _check_open_transactions(broker: Broker) -> None:
    """Check that coordinators know all transactions that are open in partitions."""
    known = {
        (each.producer_id, tp)
        for each in broker.state.transactions.transactions()
        if each.state in OPEN_STATES
        for tp in each.partitions
    }
    for log in broker.state.storage.logs():
        for producer_id in log.producers.open_transactions:
            if (producer_id, log.topic_partition) not in known:
                raise Violation(
                    "transactions end in time",
                    f"{log.topic_partition} has an open one of producer {producer_id} after a "
                    "start, which is unknown to the coordinator",
                )
