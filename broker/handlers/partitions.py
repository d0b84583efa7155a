"""The errors that one part of a request may fail with, and their codes."""

from broker.errors import BrokerError, ErrorCode, StorageError

# What one part of a request may fail with, without failing the others.
REFUSED = (BrokerError, StorageError)


def error_code_of(error: BaseException) -> ErrorCode:
    """The code a client gets for an error of ours."""
    if isinstance(error, BrokerError):
        return error.code
    if isinstance(error, (StorageError, OSError)):
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.UNKNOWN_SERVER_ERROR
