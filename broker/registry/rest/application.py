"""RestApplication: requests find their endpoints, refusals become answers.

GET    /subjects                                    names
POST   /subjects/{subject}                          find a schema        DELETE
GET    /subjects/{subject}/versions                 numbers              POST registers
GET    /subjects/{subject}/versions/{version}       one version          DELETE
       .../schema  .../referencedby
GET    /subjects/{subject}/metadata                 the latest version with properties
GET    /schemas  /schemas/types  /schemas/ids/{id}[/schema|/subjects|/versions]
       /schemas/guids/{guid}[/ids]
POST   /compatibility/subjects/{subject}/versions[/{version}]
GET    /config[/{subject}]  /mode[/{subject}]       PUT, DELETE
GET    /contexts  /v1/metadata/id  /v1/metadata/version  /metrics  /
"""

from collections import Counter
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from re import Pattern
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from broker.errors import RegistryError
from broker.exposition import Exposition
from broker.registry.registry import Registry
from broker.registry.rest import compatibility, schemas, settings, subjects
from broker.registry.rest.answers import (
    V1_JSON,
    Json,
    PlainText,
    http_refusal,
    respond,
    respond_with,
)
from broker.registry.rest.context_paths import Query, within_context
from broker.registry.rest.endpoint import Endpoint, Endpoints, short
from broker.registry.rest.negotiation import answer_type, check_content_type
from broker.registry.rest.requests import RestRequest
from broker.registry.subject_names import ALL_CONTEXTS
from broker.server.http_request import TooLarge, read_body, read_path, read_query

BODY_BYTES_MAX = 10 * 1024 * 1024
CLUSTER_NAME = "schema-registry"
METRICS_PATH = "/metrics"
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
WITH_BODY = frozenset({"POST", "PUT"})


class Resource(NamedTuple):
    """A path with what answers its methods."""

    template: str
    pattern: Pattern[str]
    methods: Mapping[str, Endpoint]


class RestApplication:
    """The ASGI application in front of a registry."""

    def __init__(self, registry: Registry, *, cluster_id: str = "") -> None:
        """The cluster id is returned by the endpoint that reports where the schemas are stored."""
        self._registry = registry
        self._cluster_id = cluster_id
        self._counts: Counter[tuple[str, str, int]] = Counter()
        families: tuple[Endpoints, ...] = (
            subjects.ENDPOINTS,
            schemas.ENDPOINTS,
            compatibility.ENDPOINTS,
            settings.ENDPOINTS,
            self._own_endpoints(),
        )
        self._resources = [
            Resource(template, compile_path(template)[0], methods)
            for family in families
            for template, methods in family.items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and count it."""
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

    async def _answer(self, request: Request) -> tuple[str, Response]:
        template, media_type = "unknown", V1_JSON
        try:
            path, query = _address(request.scope)
            resource, variables = self._find(path)
            template = resource.template
            endpoint = resource.methods.get(request.method.replace("HEAD", "GET"))
            if endpoint is None:
                return template, _not_allowed(resource)
            if request.method in WITH_BODY:
                check_content_type(request.headers.get("content-type", ""))
            if template == METRICS_PATH:
                media_type = METRICS_TYPE
            else:
                media_type = answer_type(request.headers.get("accept", ""))
            body = await _body(request) if request.method in WITH_BODY else b""
            content = await self._call(endpoint, RestRequest(variables, query, body))
            return template, respond(content, media_type=media_type)
        except ClientDisconnect:
            raise
        except Exception as error:
            return template, respond_with(error, media_type=media_type)

    def _find(self, path: str) -> tuple[Resource, dict[str, str]]:
        for resource in self._resources:
            if found := resource.pattern.match(path):
                return resource, found.groupdict()
        raise http_refusal(404)

    async def _call(self, endpoint: Endpoint, asked: RestRequest) -> Json:
        if endpoint.is_short(asked):
            return endpoint.handler(self._registry, asked)
        return await run_in_threadpool(endpoint.handler, self._registry, asked)

    # --- what is not about schemas ----------------------------------------------------------

    def _own_endpoints(self) -> Endpoints:
        return {
            "/": {"GET": short(lambda _, __: {})},
            "/v1/metadata/id": {"GET": short(self._metadata_id)},
            "/v1/metadata/version": {"GET": short(_metadata_version)},
            METRICS_PATH: {"GET": Endpoint(self._metrics)},
        }

    def _metadata_id(self, registry: Registry, asked: RestRequest) -> Json:
        del registry, asked
        clusters = {"kafka-cluster": self._cluster_id, "schema-registry-cluster": CLUSTER_NAME}
        return {"id": "", "scope": {"path": [], "clusters": clusters}}

    def _metrics(self, registry: Registry, asked: RestRequest) -> Json:
        del asked
        out = Exposition()
        name = "millstream_registry_requests_total"
        out.family(name, "counter", "Requests answered.")
        counts = dict(self._counts)  # at once: requests are counted meanwhile
        for (method, path, status), count in sorted(counts.items()):
            out.sample(name, count, method=method, path=path, status=status)
        everything = registry.all_schemas(prefix=ALL_CONTEXTS)
        for what, text, count in (
            ("subjects", "Subjects.", len({stored.subject for stored in everything})),
            ("versions", "Versions of all subjects.", len(everything)),
            ("schemas", "Different schemas.", len({stored.guid for stored in everything})),
        ):
            out.single(f"millstream_registry_{what}", "gauge", text, count)
        return PlainText(out.text())


def _metadata_version(registry: Registry, asked: RestRequest) -> Json:
    del registry, asked
    try:
        number = version("millstream")
    except PackageNotFoundError:
        number = ""
    return {"version": number, "commitId": ""}


def _address(scope: Scope) -> tuple[str, Query]:
    """The path, still encoded, and the query."""
    try:
        query = read_query(scope)
    except TooLarge as error:
        raise RegistryError(400, str(error)) from error
    return within_context(read_path(scope), query)


def _not_allowed(resource: Resource) -> Response:
    response = respond_with(http_refusal(405))
    response.headers["Allow"] = ", ".join(sorted(resource.methods))
    return response


async def _body(request: Request) -> bytes:
    """The body, unless there is too much of it."""
    try:
        return await read_body(request, bytes_max=BODY_BYTES_MAX)
    except TooLarge as error:
        raise http_refusal(413) from error
