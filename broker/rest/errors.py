"""What the REST layer refuses by itself; each service words it with its own errors."""

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
    """A request that is refused before it reaches its handler, or by it, with an HTTP status."""

    def __init__(
        self, status: int, message: str = "", *, path: str = "", allow: Sequence[str] = ()
    ) -> None:
        """`path` is the unknown one (404), `allow` are the methods that there are (405)."""
        super().__init__(message or PHRASES[status])
        self.status = status
        self.message = message
        self.path = path
        self.allow = allow

    @property
    def phrase(self) -> str:
        """What HTTP calls the status."""
        return PHRASES[self.status]


class InvalidJson(Exception):
    """A body that is not a JSON object."""

    def __init__(self, reason: str = "", *, is_null: bool = False) -> None:
        """`reason` is why it is not JSON; without one it is JSON, but not an object."""
        super().__init__(reason)
        self.reason = reason
        self.is_null = is_null
