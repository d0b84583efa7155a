"""RestService: what a service declares about its REST API."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

import orjson

from broker.rest.reply import Json, Reply
from broker.rest.request import Query
from broker.rest.routes import RequestT, Route, Served

JSON = "application/json"
THREADS_MAX = 40


def _same(path: str, query: Query) -> tuple[str, Query]:
    return path, query


@dataclass(frozen=True)
class RestService(Generic[Served, RequestT]):
    """A table of routes, the error responses, and other properties of a service."""

    routes: Sequence[Route[Served, RequestT]]
    # The response to any error: HttpError and InvalidJson of the layer, and those of handlers. It
    # logs unexpected errors, and does not return them.
    error_reply: Callable[[Exception], Reply]
    # Makes requests: RestRequest, or a subclass with more accessors.
    request: Callable[..., RequestT]
    media_types: Sequence[str] = (JSON,)  # of responses, the default one first
    negotiates: bool = False  # the Accept header chooses among them
    answers_options: bool = False
    threads_max: int = THREADS_MAX  # handlers that run at a time
    # Raises if a request with these headers is not admitted; the place to check a service's state
    # and, once there is any, authentication. The body has not been read yet.
    admit: Callable[[Served, Route[Served, RequestT], Mapping[str, str]], None] | None = None
    # Rewrites the path, still encoded, and the query, before the route is looked for.
    rewrite: Callable[[str, Query], tuple[str, Query]] = _same
    query_errors: str = "replace"  # what becomes of bytes in a query that are not UTF-8
    encode: Callable[[Json], bytes] = orjson.dumps
