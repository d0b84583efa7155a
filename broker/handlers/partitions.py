"""Finding the log behind a topic's name or id, with the error a client gets when there is none."""

from broker.errors import BrokerError, ErrorCode, StorageError
from broker.handlers.state import BrokerState
from broker.model import TopicPartition
from broker.storage.partition_log import PartitionLog

# What one part of a request may fail with, without failing the others.
REFUSED = (BrokerError, StorageError)


def find_log(state: BrokerState, topic_partition: TopicPartition) -> PartitionLog:
    """The log of a partition, or UNKNOWN_TOPIC_OR_PARTITION."""
    log = state.storage.get(topic_partition)
    if log is None:
        raise BrokerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f'partition "{topic_partition}" does not exist'
        )
    return log


def check_leader_epoch(log: PartitionLog, epoch: int) -> None:
    """Refuse a client whose view of the leader is older or newer than ours; -1 means unknown."""
    if epoch < 0 or epoch == log.leader_epoch:
        return
    if epoch < log.leader_epoch:
        raise BrokerError(ErrorCode.FENCED_LEADER_EPOCH)
    raise BrokerError(ErrorCode.UNKNOWN_LEADER_EPOCH)


def error_code_of(error: BaseException) -> ErrorCode:
    """The code a client gets for an error of ours."""
    if isinstance(error, BrokerError):
        return error.code
    if isinstance(error, (StorageError, OSError)):
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.UNKNOWN_SERVER_ERROR
