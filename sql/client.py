"""SqlClient: statements and queries sent to a server that speaks ksqlDB's REST API."""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import httpx

from sql.errors import SqlError

MEDIA_TYPE = "application/vnd.ksql.v1+json"
DELIMITED = "application/vnd.ksqlapi.delimited.v1"
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 300.0
LINE_BYTES_MAX = 64 << 20
# Servers close idle connections after five seconds, as httpx does: the client must be first.
KEEPALIVE = httpx.Limits(keepalive_expiry=2.0)

# Any: JSON holds values of all kinds.
JsonObject = dict[str, Any]


class ServerFailed(SqlError):
    """An error response of a server, with ksqlDB's code (0: no code)."""

    def __init__(self, message: str, code: int = 0, *, hint: str = "") -> None:
        """The first three digits of the code are the HTTP status."""
        super().__init__(message, hint=hint)
        self.code = code


class SqlClient:
    """A client of one server. Thread-safe."""

    def __init__(
        self,
        url: str,
        *,
        user: str | None = None,
        password: str = "",
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Does not connect yet; `transport` replaces the network."""
        self.url = (url if "://" in url else f"http://{url}").rstrip("/")
        try:
            self._http = httpx.Client(
                base_url=self.url,
                auth=None if user is None else (user, password),
                timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
                limits=KEEPALIVE,
                transport=transport,
            )
        except httpx.InvalidURL as error:
            raise ServerFailed(f'"{url}" is not a valid server address: {error}') from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def info(self) -> JsonObject:
        """The server's description of itself."""
        found = self._sent("GET", "/info").get("KsqlServerInfo", {})
        return found if isinstance(found, dict) else {}

    def execute(
        self,
        text: str,
        properties: Mapping[str, object] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> list[JsonObject]:
        """Execute statements other than queries; returns their entities."""
        body = {
            "ksql": text,
            "streamsProperties": dict(properties or {}),
            "sessionVariables": dict(variables or {}),
        }
        result = self._answer("POST", "/ksql", body)
        if not isinstance(result, list) or not all(isinstance(each, dict) for each in result):
            raise ServerFailed("the server's response is not a list of entities")
        return result

    def check_property(self, name: str) -> None:
        """Refuse a setting that is unknown, or that sessions must not change."""
        self._answer("GET", f"/is_valid_property/{httpx.URL(path='/' + name).path[1:]}")

    def query(
        self,
        text: str,
        properties: Mapping[str, object] | None = None,
        variables: Mapping[str, str] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> "StreamedRows":
        """Start a query; it ends after the timeout without a row."""
        body = {
            "sql": text,
            "properties": dict(properties or {}),
            "sessionVariables": dict(variables or {}),
        }
        return StreamedRows(self, self._streamed("/query-stream", body, DELIMITED, timeout_ms))

    def print_topic(
        self,
        text: str,
        properties: Mapping[str, object] | None = None,
        variables: Mapping[str, str] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> "StreamedLines":
        """Start a PRINT."""
        body = {
            "ksql": text,
            "streamsProperties": dict(properties or {}),
            "sessionVariables": dict(variables or {}),
        }
        return StreamedLines(self._streamed("/query", body, MEDIA_TYPE, timeout_ms))

    def close_query(self, query_id: str) -> None:
        """Terminate a push query; an unknown id is ignored."""
        try:
            self._http.post("/close-query", json={"queryId": query_id})
        except httpx.HTTPError:
            return  # the server ends it when it detects that the client has disconnected

    def _sent(self, method: str, path: str) -> JsonObject:
        result = self._answer(method, path)
        if not isinstance(result, dict):
            raise ServerFailed("the server's response is not an object")
        return result

    def _answer(self, method: str, path: str, body: JsonObject | None = None) -> object:
        try:
            response = self._http.request(
                method, path, json=body, headers={"accept": f"{MEDIA_TYPE}, application/json"}
            )
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        result = parsed(response.content)
        if response.is_error:
            raise failure(result, response.status_code)
        return result

    def _streamed(
        self, path: str, body: JsonObject, media_type: str, timeout_ms: int | None
    ) -> httpx.Response:
        seconds = None if timeout_ms is None else timeout_ms / 1000
        request = self._http.build_request(
            "POST",
            path,
            json=body,
            headers={"accept": media_type},
            timeout=httpx.Timeout(seconds, connect=CONNECT_SECONDS),
        )
        try:
            response = self._http.send(request, stream=True)
            if response.is_error:
                found = parsed(response.read())
                response.close()
                raise failure(found, response.status_code)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        return response

    def _unreachable(self, error: httpx.HTTPError) -> ServerFailed:
        return ServerFailed(
            f"no response from {self.url}: {error or type(error).__name__}",
            hint="is a server running there? Without an address, the shell starts its own engine",
        )


class StreamedRows:
    """The response to a query: columns first, then rows as they arrive."""

    def __init__(self, client: SqlClient, response: httpx.Response) -> None:
        self._client = client
        self._response = response
        self._lines = lines_of(response)
        self.final_message: str | None = None
        self._ended = False
        header = parsed(next(self._lines, b"{}"))
        names, types = _listed(header, "columnNames"), _listed(header, "columnTypes")
        if names is None or types is None or len(names) != len(types):
            response.close()
            raise failure(header, response.status_code)
        query_id = header.get("queryId")
        self.query_id = query_id if isinstance(query_id, str) else None
        self.columns = tuple(zip(map(str, names), map(str, types), strict=True))

    def rows(self) -> Iterator[list[object]]:
        """The rows; ends with the query, or after the timeout without a row."""
        try:
            for line in self._lines:
                found = parsed(line)
                if isinstance(found, list):
                    yield found
                elif isinstance(found, dict):
                    self._handle_message(found)
        except httpx.ReadTimeout:
            return
        except httpx.HTTPError as error:
            raise ServerFailed(f"the server ended the response: {error}") from error
        self._ended = True

    def _handle_message(self, found: JsonObject) -> None:
        if "finalMessage" in found:
            self.final_message = str(found["finalMessage"])
        elif "message" in found:
            raise failure(found, self._response.status_code)

    def close(self) -> None:
        """Stop the query if it is still running."""
        self._response.close()
        if not self._ended and self.query_id is not None:
            self._ended = True
            self._client.close_query(self.query_id)


class StreamedLines:
    """The response to a PRINT."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    def lines(self) -> Iterator[str]:
        """The lines that are not empty."""
        try:
            for line in lines_of(self._response):
                if line.strip():
                    yield line.decode("utf-8", "replace")
        except httpx.ReadTimeout:
            return
        except httpx.HTTPError as error:
            raise ServerFailed(f"the server ended the response: {error}") from error

    def close(self) -> None:
        """Stop."""
        self._response.close()


def _listed(header: object, name: str) -> list[object] | None:
    found = header.get(name) if isinstance(header, dict) else None
    return found if isinstance(found, list) else None


def lines_of(response: httpx.Response) -> Iterator[bytes]:
    """The lines of a response, each with a limited size."""
    kept = b""
    for chunk in response.iter_bytes():
        *lines, kept = (kept + chunk).split(b"\n")
        yield from (line for line in lines if line.strip())
        if len(kept) > LINE_BYTES_MAX:
            raise ServerFailed(f"the server sent a line of more than {LINE_BYTES_MAX} bytes")
    if kept.strip():
        yield kept


def parsed(content: bytes) -> Any:  # Any: JSON holds values of all kinds
    """Parse JSON without losing digits of numbers."""
    try:
        return json.loads(content, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        shown = content[:200].decode("utf-8", "replace")
        raise ServerFailed(f"the server's response is not JSON: {shown}") from error


def failure(found: object, status: int) -> ServerFailed:
    """The error in a server's response."""
    if not isinstance(found, dict) or "message" not in found:
        return ServerFailed(f"the server responded with HTTP status {status}", status * 100)
    code = found.get("error_code", found.get("errorCode", 0))
    return ServerFailed(str(found["message"]), code if isinstance(code, int) else 0)
