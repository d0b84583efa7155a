"""Parts of HTTP requests, read and bounded, for all services that answer them."""

from urllib.parse import parse_qs, quote

from starlette.requests import Request
from starlette.types import Scope

PARAMETERS_MAX = 100


class TooLarge(Exception):
    """A request has more of something than it may have; the text says of what."""


async def read_body(request: Request, *, bytes_max: int) -> bytes:
    """The body; TooLarge as soon as there is more of it."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > bytes_max:
        raise TooLarge(f"more than {bytes_max} bytes")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > bytes_max:
            raise TooLarge(f"more than {bytes_max} bytes")
    return bytes(body)


def read_path(scope: Scope) -> str:
    """The path, still encoded and without a slash at its end."""
    raw = scope.get("raw_path") or quote(scope["path"]).encode()
    path: str = raw.decode("utf-8", errors="replace")
    return path.rstrip("/") or "/"


def read_query(scope: Scope) -> dict[str, list[str]]:
    """The parameters of the query; TooLarge if there are too many."""
    text = scope["query_string"].decode("utf-8", errors="replace")
    try:
        return parse_qs(
            text, keep_blank_values=True, errors="replace", max_num_fields=PARAMETERS_MAX
        )
    except ValueError as error:
        raise TooLarge(f"more than {PARAMETERS_MAX} parameters") from error
