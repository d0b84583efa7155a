"""SqlApplication: requests find their endpoints, errors become answers.

POST /ksql  /query  /query-stream  /close-query  /inserts-stream  /ksql/terminate  /heartbeat  /lag
GET  /info  /healthcheck  /status[/{type}/{entity}/{action}]  /clusterStatus
     /is_valid_property/{name}  /v1/metadata[/id]  /chc/ready  /chc/live  /metrics  /
     /ws/query  (a WebSocket)
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from broker.exposition import Exposition
from sql.engine.asserting import AssertionFailed, wait_until_holds
from sql.engine.engine import Engine
from sql.engine.messages import entity_json
from sql.server.answers import (
    COMMANDS_BEHIND,
    NOT_FOUND,
    TERMINATED,
    Json,
    Refused,
    respond,
    respond_with,
)
from sql.server.cluster import Cluster
from sql.server.inserts import Inserts
from sql.server.query_service import QueryService
from sql.server.server_info import ServerInfo
from sql.server.sockets import Sockets
from sql.server.sql_request import SqlRequest, json_object, read_body, sql_request
from sql.server.streamed_response import StreamedResponse

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
NOT_ALLOWED = 40500

# What an endpoint gives: a whole response, or content to be answered as JSON.
Answer = Response | StreamedResponse | Json
Handler = Callable[[Request, Mapping[str, str]], Awaitable[Answer]]


class Resource(NamedTuple):
    """A path with what answers its methods."""

    template: str
    pattern: re.Pattern[str]
    methods: Mapping[str, Handler]


class SqlApplication:
    """The ASGI application in front of an engine."""

    def __init__(self, engine: Engine, *, cluster_id: str = "") -> None:
        """`cluster_id` is only used for responses."""
        self._engine = engine
        engine.runs_scripts = False
        self._queries = QueryService(engine)
        self._sockets = Sockets(self._queries)
        self._inserts = Inserts(engine)
        self._server_info = ServerInfo(engine, cluster_id=cluster_id)
        self._cluster = Cluster(engine)
        self._counts: Counter[tuple[str, str, int]] = Counter()
        self._terminated = False
        self._resources = [
            Resource(template, compile_path(template)[0], methods)
            for template, methods in self._endpoints().items()
        ]
        self._cluster.start()

    def close(self) -> None:
        """End running queries and stop sending heartbeats."""
        self._cluster.close()
        self._queries.close()

    def _endpoints(self) -> Mapping[str, Mapping[str, Handler]]:
        server_info = self._server_info
        ready = {"GET": _endpoint(lambda _: {})}
        return {
            "/ksql": {"POST": self._while_running(self._statements)},
            "/ksql/terminate": {"POST": self._while_running(self._terminate)},
            "/query": {"POST": self._while_running(self._queries.query)},
            "/query-stream": {"POST": self._while_running(self._queries.query_stream)},
            "/close-query": {"POST": self._while_running(self._queries.close_query)},
            "/inserts-stream": {"POST": self._while_running(self._inserts.insert)},
            "/": {"GET": _redirect_to_info},
            "/info": {"GET": _endpoint(lambda _: server_info.info())},
            "/healthcheck": {"GET": _endpoint(lambda _: server_info.healthcheck())},
            "/status": {"GET": _endpoint(lambda _: server_info.statuses())},
            "/status/{id:path}": {"GET": _endpoint(lambda found: server_info.status(found["id"]))},
            "/clusterStatus": {"GET": _endpoint(lambda _: self._cluster.status())},
            "/heartbeat": {"POST": _message_endpoint(self._cluster.heartbeat)},
            "/lag": {"POST": _message_endpoint(self._cluster.lag)},
            "/is_valid_property/{name}": {
                "GET": _endpoint(lambda found: server_info.is_valid_property(found["name"]))
            },
            "/v1/metadata": {"GET": _endpoint(lambda _: server_info.metadata())},
            "/v1/metadata/id": {"GET": _endpoint(lambda _: server_info.metadata_id())},
            "/chc/ready": ready,
            "/chc/live": ready,
            "/metrics": {"GET": _endpoint(lambda _: self._metrics())},
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and count it."""
        if scope["type"] == "websocket":
            await self._sockets.answer(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        method = request.method if request.method in METHODS else "other"
        try:
            template, response = await self._answer(request)
        except ClientDisconnect:
            return
        self._counts[method, template, response.status_code] += 1
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> tuple[str, Response | StreamedResponse]:
        template = "unknown"
        try:
            resource, variables = self._find(request.scope["path"].rstrip("/") or "/")
            template = resource.template
            handler = resource.methods.get(request.method.replace("HEAD", "GET"))
            if handler is None:
                return template, _not_allowed(resource)
            answer = await handler(request, variables)
            if isinstance(answer, Response | StreamedResponse):
                return template, answer
            return template, respond(answer)
        except ClientDisconnect:
            raise
        except Exception as error:
            return template, respond_with(error)

    def _find(self, path: str) -> tuple[Resource, dict[str, str]]:
        for resource in self._resources:
            if found := resource.pattern.match(path):
                return resource, found.groupdict()
        raise Refused(NOT_FOUND, f"Path not found: {path}")

    def _while_running(self, handler: Callable[[Request], Awaitable[Answer]]) -> Handler:
        """An endpoint that has nothing to work with after /ksql/terminate."""

        async def handle(request: Request, variables: Mapping[str, str]) -> Answer:
            if self._terminated:
                raise Refused(TERMINATED, "The cluster has been terminated.")
            return await handler(request)

        return handle

    # --- /ksql ------------------------------------------------------------------------------

    async def _statements(self, request: Request) -> Answer:
        asked = sql_request(json_object(await read_body(request)))
        try:
            return await run_in_threadpool(self._execute, asked)
        except Exception as error:
            return respond_with(error, asked.text)

    def _execute(self, asked: SqlRequest) -> Json:
        if asked.sequence_number is not None:
            self._wait_for(asked.sequence_number)
        entities = self._engine.execute(asked.text, asked.properties, asked.variables)
        return [entity_json(each) for each in entities]

    def _wait_for(self, sequence_number: int) -> None:
        """Wait until a command of another request, maybe another server's, is executed."""
        commands, config = self._engine.commands, self._engine.config
        if commands.log is None:
            return
        log = commands.log

        def problem() -> str | None:
            if log.next_offset <= sequence_number:
                commands.follow()
            if log.next_offset > sequence_number:
                return None
            return (
                "Timeout reached while waiting for command sequence number of "
                f"{sequence_number}. Last seen: {log.next_offset - 1}"
            )

        timeout_ms = config.whole("ksql.server.command.response.timeout.ms")
        try:
            wait_until_holds(problem, self._engine.clock, timeout_ms)
        except AssertionFailed as error:
            raise Refused(COMMANDS_BEHIND, error.message) from error

    async def _terminate(self, request: Request) -> Answer:
        body = await read_body(request)
        content = json_object(body) if body.strip() else {}
        answer = await run_in_threadpool(
            self._server_info.terminate, content.get("deleteTopicList")
        )
        self._terminated = True
        return answer

    def _metrics(self) -> Response:
        out = Exposition()
        name = "millstream_sql_requests_total"
        out.family(name, "counter", "Requests answered.")
        counts = dict(self._counts)  # at once: requests are counted meanwhile
        for (method, path, status), count in sorted(counts.items()):
            out.sample(name, count, method=method, path=path, status=status)
        self._server_info.measured(out, open_answers=self._queries.open_count)
        return Response(out.text(), media_type=METRICS_TYPE)


def _endpoint(answer: Callable[[Mapping[str, str]], Answer]) -> Handler:
    """An endpoint without a body."""

    async def handle(request: Request, variables: Mapping[str, str]) -> Answer:
        return await run_in_threadpool(answer, variables)

    return handle


def _message_endpoint(receive: Callable[[Mapping[str, object]], Json]) -> Handler:
    """An endpoint for messages of other servers."""

    async def handle(request: Request, variables: Mapping[str, str]) -> Answer:
        content = json_object(await read_body(request))
        return await run_in_threadpool(receive, content)

    return handle


async def _redirect_to_info(request: Request, variables: Mapping[str, str]) -> Answer:
    return RedirectResponse("/info", status_code=307)


def _not_allowed(resource: Resource) -> Response:
    response = respond_with(Refused(NOT_ALLOWED, "Method Not Allowed"))
    response.headers["Allow"] = ", ".join(sorted(resource.methods))
    return response
