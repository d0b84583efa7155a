"""RestApplication: routes requests to handlers, and converts errors to responses."""

from dataclasses import replace
from typing import Generic

import anyio
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from broker.exposition import METRICS_TYPE
from broker.rest.errors import HttpError
from broker.rest.negotiation import answer_type
from broker.rest.reply import PlainText, Reply
from broker.rest.request import read_body, read_path, read_query
from broker.rest.request_counts import UNKNOWN_PATH, RequestCounts
from broker.rest.routes import Body, RequestT, Resource, Route, RouteTable, Served
from broker.rest.service import RestService
from broker.rest.streamed_reply import StreamedReply


class RestApplication(Generic[Served, RequestT]):
    """The ASGI application of a service; `served` is the object that handlers use."""

    def __init__(
        self,
        service: RestService[Served, RequestT],
        served: Served,
        *,
        counts: RequestCounts | None = None,
        websockets: ASGIApp | None = None,
    ) -> None:
        """`counts` are also used by a metrics page; `websockets` handles WebSockets."""
        self._service = service
        self._served = served
        self._table = RouteTable(service.routes)
        self._counts = counts or RequestCounts()
        self._websockets = websockets
        # One per event loop: an application may be served by several.
        self._threads: RunVar[anyio.CapacityLimiter] = RunVar("threads")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, and count it."""
        if scope["type"] == "websocket" and self._websockets is not None:
            await self._websockets(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        http = Request(scope, receive)
        exchange = RequestInfo(self._service.media_types[0])
        try:
            response = await self._answer(http, exchange)
        except ClientDisconnect:
            return
        self._counts.add(http.method, exchange.path, response.status_code)
        await response(scope, receive, send)

    def refusal(self, status: int, message: str) -> Reply:
        """The response to a request that RequestGuard refuses."""
        return self._service.error_reply(HttpError(status, message))

    async def _answer(self, http: Request, exchange: "RequestInfo") -> Response | StreamedReply:
        try:
            return self._response(await self._handle(http, exchange), exchange)
        except ClientDisconnect:
            raise
        except Exception as error:
            reply = self._service.error_reply(error)
            if isinstance(error, HttpError) and error.allow:
                reply = replace(reply, headers={"Allow": ", ".join(error.allow)})
            return self._response(reply, exchange)

    def _response(self, answer: object, exchange: "RequestInfo") -> Response | StreamedReply:
        if isinstance(answer, StreamedReply):
            return answer
        reply = answer if isinstance(answer, Reply) else Reply(answer)
        return reply.response(exchange.media_type, self._service.encode)

    async def _handle(self, http: Request, exchange: "RequestInfo") -> object:
        service, served = self._service, self._served
        path, query = service.rewrite(
            read_path(http.scope), read_query(http.scope, errors=service.query_errors)
        )
        resource, variables = self._table.find(path)
        exchange.path = resource.path
        route = self._route(resource, http.method)
        if route is None:
            allowed = ", ".join(resource.allowed(with_options=True))
            return Reply(PlainText(allowed), headers={"Allow": allowed}, media_type=METRICS_TYPE)
        if service.admit is not None:
            service.admit(served, route, http.headers)
        body = route.body
        if body is not None and not body.empty_of_any_type:
            _check_content_type(http, body)
        if service.negotiates and not route.media_type:
            accept = http.headers.get("accept", "")
            exchange.media_type = answer_type(accept, service.media_types)
        content = b""
        if body is not None:
            content = await read_body(http, bytes_max=body.bytes_max)
            if content and body.empty_of_any_type:
                _check_content_type(http, body)
        answer = await self._call(route, service.request(http, variables, query, content))
        exchange.media_type = route.media_type or exchange.media_type
        return answer

    def _route(
        self, resource: Resource[Served, RequestT], method: str
    ) -> Route[Served, RequestT] | None:
        """The route of a method; None for OPTIONS, 405 for an unsupported method."""
        with_options = self._service.answers_options
        if with_options and method == "OPTIONS":
            return None
        route = resource.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            raise HttpError(405, allow=resource.allowed(with_options=with_options))
        return route

    async def _call(self, route: Route[Served, RequestT], request: RequestT) -> object:
        if route.is_async:
            return await route.handler(self._served, request)  # type: ignore[misc]
        if route.at_once is not None and route.at_once(request):
            return route.handler(self._served, request)
        return await run_sync(route.handler, self._served, request, limiter=self._limiter())

    def _limiter(self) -> anyio.CapacityLimiter:
        result = self._threads.get(None)
        if result is None:
            result = anyio.CapacityLimiter(self._service.threads_max)
            self._threads.set(result)
        return result


class RequestInfo:
    """The state of a request before its response."""

    __slots__ = ("media_type", "path")

    def __init__(self, media_type: str) -> None:
        self.path = UNKNOWN_PATH
        self.media_type = media_type  # of the response


def _check_content_type(http: Request, body: Body) -> None:
    if not body.accepts(http.headers.get("content-type", "")):
        raise HttpError(415)
