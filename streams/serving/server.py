"""QueryServer: the stores of an application over HTTP.

    GET /                          the application, its state, its stores and instances
    GET /stores                    all stores: kind, and partitions by instance
    GET /stores/{name}/get         ?key=  (window: &from=start; session: &from=&to=; &as_of=)
    GET /stores/{name}/range       ?from=&to=&limit=&reverse=true
    GET /stores/{name}/prefix      ?prefix=
    GET /stores/{name}/all         ?limit=
    GET /stores/{name}/windows     ?key=&from=&to=      without a key: of all keys
    GET /stores/{name}/sessions    ?key=&from=&to=
    GET /stores/{name}/versions    ?key=&from=&to=
    GET /topology  /metrics  /lags

A query about a key is answered by the instance whose task has its partition; any other instance
forwards it. A query about many keys is sent to all instances, and their responses are merged.
`local=true` queries only this instance; `stale=true` includes standbys and restoring stores.
"""

import logging
from collections.abc import Callable, Iterable
from heapq import merge
from typing import Any, Self, cast

from broker.errors import ConfigError, ConnectionFailed, MillstreamError, RequestTimeout
from broker.rest import (
    HttpError,
    HttpServer,
    Json,
    PlainText,
    Reply,
    RestApplication,
    RestRequest,
    RestService,
    Route,
)
from broker.rest.http_server import parse_listen
from streams.app import StreamsApp
from streams.errors import StoreNotFound, StoreNotReady, StreamsError
from streams.serving.queries import (
    BadQuery,
    Entry,
    StoreQuery,
    answer_many,
    answer_one,
    parse_query,
    to_json,
)
from streams.serving.routing import HostUnreachable, holders, query_instance
from streams.state.store import StoreKind, StoreSpec

logger = logging.getLogger(__name__)

PLAIN = "text/plain; charset=utf-8"
FORMS = ("get", "range", "prefix", "all", "windows", "sessions", "versions")
STATUS: tuple[tuple[type[MillstreamError], int], ...] = (
    (BadQuery, 400),
    (StoreNotFound, 404),
    (StoreNotReady, 503),
    (HostUnreachable, 502),
    (ConnectionFailed, 503),
    (RequestTimeout, 503),
)


class StorePages:
    """Answers requests about an application and its stores."""

    def __init__(self, app: StreamsApp) -> None:
        self._app = app

    # --- metadata -----------------------------------------------------------------------------

    def overview(self, request: RestRequest) -> Json:
        """GET /."""
        app = self._app
        return {
            "application_id": app.config.application_id,
            "state": app.state.value,
            "stores": sorted({*app.topology.stores, *app.topology.global_stores}),
            "instances": sorted({host.host for host in app.metadata()}),
        }

    def stores(self, request: RestRequest) -> Json:
        """GET /stores."""
        topology = self._app.topology
        stores: list[dict[str, object]] = [
            {
                "name": name,
                "kind": spec.kind.value,
                "active": {host.host: host.active[name] for host in hosts if name in host.active},
                "standby": {
                    host.host: host.standby[name] for host in hosts if name in host.standby
                },
            }
            for name, spec in topology.stores.items()
            for hosts in [self._app.metadata(name)]
        ]
        stores += [
            {"name": name, "kind": store.spec.kind.value, "global": True}
            for name, store in topology.global_stores.items()
        ]
        return stores

    def lags(self, request: RestRequest) -> Json:
        """GET /lags."""
        return [
            {"store": each.store, "partition": each.partition, "lag": each.lag}
            for each in self._app.lags()
        ]

    def topology(self, request: RestRequest) -> Json:
        """GET /topology."""
        return PlainText(self._app.topology.describe())

    def metrics(self, request: RestRequest) -> Json:
        """GET /metrics."""
        return PlainText(self._app.metrics_text())

    # --- queries ----------------------------------------------------------------------------

    def query(self, request: RestRequest) -> Json:
        """GET /stores/{name}/{form}."""
        name, form = request.variable("name"), request.variable("form")
        if form not in FORMS:
            raise BadQuery(f'unknown query "{form}"', hint=f"queries are {', '.join(FORMS)}")
        spec = self._app.topology.store_spec(name)
        parameters = {each: values[-1] for each, values in request.query.items()}
        serde = spec.key_serde or self._app.config.default_key_serde
        query = parse_query(form, parameters, serde)
        local = parameters.pop("local", "false") == "true"
        stale = parameters.get("stale", "false") == "true"
        if local or name in self._app.topology.global_stores:
            return self._query_here(query, spec, stale=stale)
        if query.is_for_one_key:
            return self._query_by_key(query, spec, parameters, stale=stale)
        return self._query_everywhere(query, spec, parameters, stale=stale)

    def _query_here(self, query: StoreQuery, spec: StoreSpec, *, stale: bool) -> Json:
        store = self._app.store(spec.name, stale=stale, timestamped=True)
        if query.form != "get":
            return {"entries": answer_many(query, spec, store)}
        entry = answer_one(query, spec, store)
        if entry is None:
            return Reply({"error": "there is no such entry", "store": spec.name}, 404)
        return entry

    def _query_by_key(
        self, query: StoreQuery, spec: StoreSpec, parameters: dict[str, str], *, stale: bool
    ) -> Json:
        _, partition = self._app.metadata_for_key(spec.name, query.key)
        hosts = holders(self._app.metadata(spec.name), spec.name, partition, stale=stale)
        failure: StreamsError = StoreNotReady(
            f'no instance has partition {partition} of store "{spec.name}" at the moment',
            hint="tasks are being moved or restored; retry later",
        )
        for host in hosts:
            if host == self._app.config.application_server:
                return self._query_here(query, spec, stale=stale)
            try:
                status, response = query_instance(host, spec.name, query.form, parameters)
            except HostUnreachable as error:
                failure = error
                continue
            return Reply(response, status)
        raise failure

    def _query_everywhere(
        self, query: StoreQuery, spec: StoreSpec, parameters: dict[str, str], *, stale: bool
    ) -> Json:
        answers: list[list[Entry]] = []
        missing: list[str] = []
        for host in self._app.metadata(spec.name):
            if not host.active.get(spec.name):
                continue
            if host.host == self._app.config.application_server:
                store = self._app.store(spec.name, stale=stale, timestamped=True)
                answers.append(answer_many(query, spec, store))
                continue
            try:
                status, response = query_instance(host.host, spec.name, query.form, parameters)
            except HostUnreachable:
                missing.append(host.host)
                continue
            if status != 200:
                missing.append(host.host)
            else:
                answers.append(cast("dict[str, list[Entry]]", response)["entries"])
        order = self._order(spec, query)
        backwards = query.is_backwards(spec.kind)
        merged = list(merge(*answers, key=order, reverse=backwards))[: query.limit]
        return {"entries": merged, "missing": missing}

    def _order(self, spec: StoreSpec, query: StoreQuery) -> Callable[[Entry], tuple[Any, ...]]:
        """The sort key of the entries of all instances: the serialised key; windows: the time."""
        serde = spec.key_serde or self._app.config.default_key_serde
        by_time = query.form in ("windows", "sessions")

        def sort_key(entry: Entry) -> tuple[Any, ...]:
            key = entry["key"]
            try:
                raw = serde.serialize(spec.name, key)
            except (MillstreamError, ValueError, TypeError):
                raw = to_json(key)  # JSON from another instance has lost the type of the key
            start_ms, end_ms = entry.get("start_ms", 0), entry.get("end_ms", 0)
            time = (end_ms, start_ms) if spec.kind is StoreKind.SESSION else (start_ms, end_ms)
            return (*time, raw) if by_time else (raw, *time)

        return sort_key


def _error_reply(error: Exception) -> Reply:
    match error:
        case HttpError():
            return Reply({"error": error.message or error.phrase}, error.status)
        case MillstreamError():
            status = next((code for kind, code in STATUS if isinstance(error, kind)), 500)
            body = {"error": error.message, "at": error.at, "hint": error.hint}
            return Reply({name: text for name, text in body.items() if text}, status)
        case _:
            logger.error("a query failed", exc_info=error)
            return Reply(PlainText("Internal Server Error"), 500, media_type=PLAIN)


ROUTES: tuple[Route[StorePages, RestRequest], ...] = (
    Route("GET", "/", StorePages.overview),
    Route("GET", "/stores", StorePages.stores),
    Route("GET", "/stores/{name}/{form}", StorePages.query),
    Route("GET", "/topology", StorePages.topology, media_type=PLAIN),
    Route("GET", "/metrics", StorePages.metrics, media_type=PLAIN),
    Route("GET", "/lags", StorePages.lags),
)
SERVICE = RestService(
    ROUTES,
    _error_reply,
    RestRequest,
    # Bytes that are not UTF-8 are preserved: keys can be any bytes.
    query_errors="surrogateescape",
    encode=to_json,
)


class QueryServer(HttpServer):
    """Serves the stores of an application on its application_server address, in a thread.

    >>> app = StreamsApp(topology, ..., application_server="localhost:7070")
    >>> with app, QueryServer(app):
    ...     app.wait()
    """

    def __init__(
        self, app: StreamsApp, *, listen: str | None = None, allowed_hosts: Iterable[str] = ()
    ) -> None:
        """Serve on `listen`, "host:port", or by default on the application_server address.

        `allowed_hosts` are additional host names under which clients may send requests.
        """
        address = listen or app.config.application_server
        try:
            parse_listen(address)
        except ConfigError as error:
            raise StreamsError(
                f'the address for queries is "{address}"',
                hint='set application_server="host:port" in the application',
            ) from error
        if app.config.processes:
            raise StreamsError(
                "queries cannot be served by an application that runs in processes",
                hint="its stores are in child processes; use threads, or start several instances",
            )
        own_host, _, _ = app.config.application_server.rpartition(":")
        application = RestApplication(SERVICE, StorePages(app))
        super().__init__(
            application,
            listen=address,
            name="queries",
            allowed_hosts=[*allowed_hosts, own_host],
            refusal=application.refusal,
        )

    def start(self) -> Self:
        """Start to listen; returns when queries are accepted."""
        try:
            return super().start()
        except ConfigError as error:
            raise StreamsError(
                error.message.replace("cannot listen", "cannot serve queries"),
                at=error.at,
                hint='another program may use the port; choose another "application_server"',
            ) from error
