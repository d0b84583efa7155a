"""Kafka Connect's REST API: one table of routes.

GET  /connectors                    names; ?expand=info&expand=status      POST creates one
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

from broker.exposition import METRICS_TYPE
from broker.rest import (
    HttpError,
    PlainText,
    Query,
    Reply,
    RestApplication,
    RestService,
    own_version,
)
from connect.herder import Herder
from connect.rest import connectors, plugins
from connect.rest.connect_request import ConnectRequest, ConnectRoute
from connect.rest.replies import error_reply

# Requests may wait for connectors, which are user code: a few slow ones must not block others.
THREADS_MAX = 200
# Available while the worker is still starting.
ALWAYS = ("/", "/health", "/metrics")
STARTED = "Worker has completed startup and is ready to handle requests."
STARTING = "Worker is still starting up."

ConnectApplication = RestApplication[Herder, ConnectRequest]


def connect_application(
    herder: Herder, *, cluster_id: Callable[[], str], metrics: Callable[[], str]
) -> ConnectApplication:
    """The application; the cluster's id and the metrics are computed on request."""
    routes = (
        *connectors.ROUTES,
        *plugins.ROUTES,
        ConnectRoute("GET", "/", lambda _, __: _root(cluster_id())),
        ConnectRoute("GET", "/health", _health),
        ConnectRoute(
            "GET", "/metrics", lambda _, __: PlainText(metrics()), media_type=METRICS_TYPE
        ),
    )
    service = RestService(
        routes,
        error_reply,
        ConnectRequest,
        negotiates=True,
        answers_options=True,
        threads_max=THREADS_MAX,
        admit=_admit,
        rewrite=_checked_path,
    )
    return RestApplication(service, herder)


def _admit(herder: Herder, route: ConnectRoute, headers: Mapping[str, str]) -> None:
    del headers
    if not herder.ready.is_set() and route.path not in ALWAYS:
        raise HttpError(503, STARTING)


def _checked_path(path: str, query: Query) -> tuple[str, Query]:
    if "//" in path:
        raise HttpError(400, "Ambiguous URI empty segment")
    return path, query


def _root(cluster_id: str) -> Reply:
    return Reply(
        {"version": own_version("unknown"), "commit": "unknown", "kafka_cluster_id": cluster_id}
    )


def _health(herder: Herder, request: ConnectRequest) -> Reply:
    del request
    if herder.ready.is_set():
        return Reply({"status": "healthy", "message": STARTED})
    return Reply({"status": "starting", "message": STARTING}, 503)
