"""RestRequest: one request; its parts are limited in size, and decoded on demand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, unquote

import orjson
from starlette.requests import Request
from starlette.types import Scope

from broker.rest.errors import HttpError, InvalidJson
from broker.rest.reply import Json

PARAMETERS_MAX = 100
TRUE = "true"

Query = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class RestRequest:
    """One request: the variables of its path, still encoded, its query and its body.

    A service may add its own accessors in a subclass.
    """

    http: Request
    path: Mapping[str, str]
    query: Query
    body: bytes = b""

    def variable(self, name: str) -> str:
        """A variable of the path, decoded; it may contain slashes."""
        return unquote(self.path[name], errors="replace")

    def text(self, name: str, default: str = "") -> str:
        """The first value of a parameter."""
        return next(iter(self.query.get(name, ())), default)

    def texts(self, name: str) -> list[str]:
        """All values of a parameter."""
        return list(self.query.get(name, ()))

    def flag(self, name: str, default: bool = False) -> bool:
        """Whether a parameter is true: "true" in any case; everything else is false."""
        return self.text(name).lower() == TRUE if name in self.query else default

    def header(self, name: str) -> str:
        """A header, or an empty string."""
        return self.http.headers.get(name, "")

    @property
    def base_url(self) -> str:
        """The URL to which the request was sent."""
        host = self.header("host")
        return f"{self.http.url.scheme}://{host}" if host else ""

    def json_object(self) -> dict[str, Json]:
        """The body as a JSON object."""
        return json_object(self.body)


def json_object(text: bytes) -> dict[str, Json]:
    """A JSON object; InvalidJson for anything else."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidJson(str(error)) from error
    if not isinstance(found, dict):
        raise InvalidJson(is_null=found is None)
    return found


async def read_body(request: Request, *, bytes_max: int) -> bytes:
    """The body; 413 as soon as it exceeds the limit."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > bytes_max:
        raise HttpError(413)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > bytes_max:
            raise HttpError(413)
    return bytes(body)


def read_path(scope: Scope) -> str:
    """The path, still encoded and without a trailing slash."""
    raw = scope.get("raw_path") or quote(scope["path"]).encode()
    path: str = raw.decode("utf-8", errors="replace")
    return path.rstrip("/") or "/"


def read_query(scope: Scope, *, errors: str) -> dict[str, list[str]]:
    """The parameters of the query; `errors` handles bytes that are not valid UTF-8."""
    text = scope["query_string"].decode("utf-8", errors=errors)
    if not text:
        return {}
    try:
        return parse_qs(text, keep_blank_values=True, errors=errors, max_num_fields=PARAMETERS_MAX)
    except ValueError as error:
        raise HttpError(400, f"more than {PARAMETERS_MAX} parameters") from error
