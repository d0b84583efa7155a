"""The errors that affect one part of a request, and their codes."""

from broker.errors import BrokerError, ErrorCode, StorageError

# Errors that fail one part of a request without failing the others.
REFUSED = (BrokerError, StorageError)


def error_code_of(error: BaseException) -> ErrorCode:
    """The error code that a client receives for an exception."""
    if isinstance(error, BrokerError):
        return error.code
    if isinstance(error, (StorageError, OSError)):
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.UNKNOWN_SERVER_ERROR
