"""Error codes of responses, turned into exceptions."""

from broker.errors import BrokerError, ErrorCode


def code_of(value: int) -> ErrorCode:
    """The error code of a number; an unknown number becomes UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(value)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def check(value: int, what: str, *, message: str | None = None, hint: str = "") -> None:
    """Raise BrokerError unless the code is NONE; `what` describes the request."""
    if value != ErrorCode.NONE:
        code = code_of(value)
        reason = message or code.name.lower().replace("_", " ")
        raise BrokerError(code, f"{what}: {reason}", hint=hint)
