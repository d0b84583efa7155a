"""HttpPeers: sends pull queries to the other servers of a service."""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal

import httpx

from sql.analyse.type_names import data_type
from sql.errors import StatementFailed
from sql.parse import parse_type
from sql.rows.row_format import Row
from sql.server.answers import DELIMITED
from sql.server.sql_request import SKIP_FORWARDING
from sql.server.typed_values import typed_value

TIMEOUT_SECONDS = 20.0
# Servers close idle connections after five seconds, as httpx does: the client must be first.
KEEPALIVE = httpx.Limits(keepalive_expiry=2.0)


class HttpPeers:
    """Queries other servers over HTTP; see PullPeers. Any thread may call it."""

    def __init__(self) -> None:
        self._client = httpx.Client(timeout=TIMEOUT_SECONDS, limits=KEEPALIVE)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def pull(self, host: str, text: str, properties: Mapping[str, object]) -> Iterator[Row]:
        """The rows of a query at another server, from its own partitions only."""
        body = {
            "sql": text,
            "properties": dict(properties),
            "requestProperties": {SKIP_FORWARDING: True},
        }
        try:
            answer = self._client.post(
                f"http://{host}/query-stream", json=body, headers={"accept": DELIMITED}
            )
            yield from _rows(host, answer)
        except (httpx.HTTPError, ValueError, KeyError) as error:
            raise StatementFailed(
                f"Unable to execute pull query. Server {host} did not respond: {error!r}"
            ) from error


def _rows(host: str, answer: httpx.Response) -> Iterator[Row]:
    lines = [json.loads(line, parse_float=Decimal) for line in answer.text.splitlines() if line]
    header = lines[0] if lines else {}
    failed = next((each for each in lines if "error_code" in each), None)
    if failed is not None:
        raise StatementFailed(
            f"Unable to execute pull query. Server {host} refused: {failed.get('message')}"
        )
    types = [data_type(parse_type(each), {}) for each in header["columnTypes"]]
    for row in lines[1:]:
        yield tuple(typed_value(value, type_) for value, type_ in zip(row, types, strict=True))
