"""RestApplication: requests find their endpoints, refusals become answers.

GET  /connectors                    names; ?expand=info&expand=status      POST makes one
GET  /connectors/{c}                DELETE
GET  /connectors/{c}/config         PUT, PATCH
GET  /connectors/{c}/status  /tasks  /tasks/{n}/status  /topics
POST /connectors/{c}/restart  /tasks/{n}/restart
PUT  /connectors/{c}/pause  /resume  /stop  /topics/reset
GET  /connectors/{c}/offsets        PATCH, DELETE
GET  /connector-plugins  /connector-plugins/{p}/config    PUT .../config/validate
GET  /admin/loggers[/{l}]           PUT
GET  /  /health  /metrics
"""

from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from re import Pattern
from typing import NamedTuple

import anyio
from anyio.to_thread import run_sync
from starlette.requests import ClientDisconnect, Request
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from broker.server.http_request import TooLarge, read_body, read_path, read_query
from connect.errors import BadRequest
from connect.herder import Herder
from connect.rest import connectors, plugins
from connect.rest.answers import JSON, PLAIN, HttpError, Reply, refusal
from connect.rest.endpoint import Endpoint, Endpoints
from connect.rest.http_request import HttpRequest

BODY_BYTES_MAX = 1_000_000  # below the default limit of brokers for one batch
# Requests may wait for connectors, which are user code: a few slow ones must not block others.
THREADS_MAX = 200
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
METRICS = "/metrics"
# Answered while the worker is still starting.
ALWAYS = ("/", "/health", METRICS)
STARTED = "Worker has completed startup and is ready to handle requests."
STARTING = "Worker is still starting up."


class Resource(NamedTuple):
    """A path with what answers its methods."""

    pattern: Pattern[str]
    methods: Mapping[str, Endpoint]


class RestApplication:
    """The ASGI application in front of a herder."""

    def __init__(
        self, herder: Herder, *, cluster_id: Callable[[], str], metrics: Callable[[], str]
    ) -> None:
        """The cluster's id and the metrics are computed on request."""
        self._herder = herder
        self._cluster_id = cluster_id
        self._metrics = metrics
        self._limiter: anyio.CapacityLimiter | None = None
        families = (connectors.ENDPOINTS, plugins.ENDPOINTS, self._own_endpoints())
        self._resources = [
            Resource(compile_path(template)[0], methods)
            for family in families
            for template, methods in family.items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            reply = await self._answer(request)
        except ClientDisconnect:
            return
        await reply.response()(scope, receive, send)

    async def _answer(self, request: Request) -> Reply:
        try:
            path, query = _address(request.scope)
            resource, variables = self._find(path)
            if request.method == "OPTIONS":
                return _options(resource)
            endpoint = resource.methods.get(request.method.replace("HEAD", "GET"))
            if endpoint is None:
                raise HttpError(405, allow=_allowed(resource))
            if path != METRICS:
                _check_accepted(request.headers.get("accept", ""))
            body = await _body(request) if request.method in WITH_BODY else b""
            if body:
                _check_content_type(request.headers.get("content-type", ""))
            if not self._herder.ready.is_set() and path not in ALWAYS:
                return Reply({"error_code": 503, "message": STARTING}, 503)
            parsed = HttpRequest(variables, query, body, _base_url(request))
            return await run_sync(endpoint, self._herder, parsed, limiter=self._threads())
        except ClientDisconnect:
            raise
        except Exception as error:
            return refusal(error)

    def _find(self, path: str) -> tuple[Resource, dict[str, str]]:
        for resource in self._resources:
            if found := resource.pattern.match(path):
                return resource, found.groupdict()
        raise HttpError(404)

    def _threads(self) -> anyio.CapacityLimiter:
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(THREADS_MAX)
        return self._limiter

    # --- what is not about connectors ---------------------------------------------------------

    def _own_endpoints(self) -> Endpoints:
        return {
            "/": {"GET": self._root},
            "/health": {"GET": self._health},
            METRICS: {"GET": self._metrics_text},
        }

    def _root(self, herder: Herder, request: HttpRequest) -> Reply:
        del herder, request
        return Reply(
            {
                "version": own_version(),
                "commit": "unknown",
                "kafka_cluster_id": self._cluster_id(),
            }
        )

    def _health(self, herder: Herder, request: HttpRequest) -> Reply:
        del request
        if herder.ready.is_set():
            return Reply({"status": "healthy", "message": STARTED})
        return Reply({"status": "starting", "message": STARTING}, 503)

    def _metrics_text(self, herder: Herder, request: HttpRequest) -> Reply:
        del herder, request
        return Reply(self._metrics(), media_type=PLAIN)


def own_version() -> str:
    """The version of this package."""
    try:
        return version("millstream")
    except PackageNotFoundError:
        return "unknown"


def _address(scope: Scope) -> tuple[str, dict[str, list[str]]]:
    """The path, still encoded, and the query."""
    path = read_path(scope)
    if "//" in path:
        raise HttpError(400, "Ambiguous URI empty segment")
    try:
        return path, read_query(scope)
    except TooLarge as error:
        raise BadRequest(str(error)) from error


def _base_url(request: Request) -> str:
    host = request.headers.get("host", "")
    return f"{request.url.scheme}://{host}" if host else ""


def _allowed(resource: Resource) -> str:
    head = {"HEAD"} if "GET" in resource.methods else set()
    return ", ".join(sorted({*resource.methods, *head, "OPTIONS"}))


def _options(resource: Resource) -> Reply:
    allowed = _allowed(resource)
    return Reply(allowed, headers={"Allow": allowed}, media_type=PLAIN)


def _check_content_type(content_type: str) -> None:
    if content_type.partition(";")[0].strip().lower() != JSON:
        raise HttpError(415)


def _check_accepted(accept: str) -> None:
    """406 for those who take no JSON; what is hard to read counts as no wish."""
    wanted = [each.partition(";")[0].strip().lower() for each in accept.split(",")]
    if accept.strip() and not {JSON, "application/*", "*/*", "*"}.intersection(wanted):
        raise HttpError(406)


async def _body(request: Request) -> bytes:
    """The body, unless there is too much of it."""
    try:
        return await read_body(request, bytes_max=BODY_BYTES_MAX)
    except TooLarge as error:
        raise HttpError(413) from error
