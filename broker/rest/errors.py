"""Errors of the REST layer; each service converts them to its own error responses."""

from collections.abc import Sequence

PHRASES = {
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    413: "Request Entity Too Large",
    415: "Unsupported Media Type",
    503: "Service Unavailable",
}


class HttpError(Exception):
    """A request that is refused with an HTTP status."""

    def __init__(
        self, status: int, message: str = "", *, path: str = "", allow: Sequence[str] = ()
    ) -> None:
        """`path` is the unknown path (404), `allow` are the supported methods (405)."""
        super().__init__(message or PHRASES[status])
        self.status = status
        self.message = message
        self.path = path
        self.allow = allow

    @property
    def phrase(self) -> str:
        """The HTTP reason phrase of the status."""
        return PHRASES[self.status]


class InvalidJson(Exception):
    """A body that is not a JSON object."""

    def __init__(self, reason: str = "", *, is_null: bool = False) -> None:
        """`reason` is why it is not valid JSON; without one it is valid, but not an object."""
        super().__init__(reason)
        self.reason = reason
        self.is_null = is_null
