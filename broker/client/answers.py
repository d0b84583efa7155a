"""Error codes in answers, turned into errors."""

from broker.errors import BrokerError, ErrorCode


def code_of(value: int) -> ErrorCode:
    """The error code by its number; one we never heard of counts as an unknown server error."""
    try:
        return ErrorCode(value)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def check(value: int, what: str, *, message: str | None = None, hint: str = "") -> None:
    """Raise BrokerError unless the code is NONE; `what` says what was asked of whom."""
    if value != ErrorCode.NONE:
        code = code_of(value)
        reason = message or code.name.lower().replace("_", " ")
        raise BrokerError(code, f"{what}: {reason}", hint=hint)
