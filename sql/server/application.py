"""ksqlDB's REST API: one table of routes.

POST /ksql  /query  /query-stream  /close-query  /inserts-stream  /ksql/terminate  /heartbeat  /lag
GET  /info  /healthcheck  /status[/{type}/{entity}/{action}]  /clusterStatus
     /is_valid_property/{name}  /v1/metadata[/id]  /chc/ready  /chc/live  /metrics  /
     /ws/query  (a WebSocket)
"""

from collections.abc import Mapping

from broker.exposition import METRICS_TYPE, Exposition
from broker.rest import (
    Json,
    PlainText,
    Reply,
    RequestCounts,
    RestApplication,
    RestRequest,
    RestService,
    Route,
    StreamedReply,
)
from sql.engine.asserting import AssertionFailed, wait_until_holds
from sql.engine.engine import Engine
from sql.engine.messages import entity_json
from sql.server.answers import COMMANDS_BEHIND, TERMINATED, V1_JSON, Refused, error_reply
from sql.server.cluster import ServerCluster
from sql.server.inserts import Inserts
from sql.server.query_service import QueryService
from sql.server.server_info import ServerInfo
from sql.server.sockets import WebSockets
from sql.server.sql_request import JSON_BODY, SqlRequest, sql_request

# Endpoints that are not available after /ksql/terminate.
WORKING = frozenset(
    {"/ksql", "/ksql/terminate", "/query", "/query-stream", "/close-query", "/inserts-stream"}
)


class SqlEndpoints:
    """The handlers of requests to an engine."""

    def __init__(self, engine: Engine, *, cluster_id: str = "") -> None:
        """`cluster_id` is only used for responses."""
        self._engine = engine
        engine.runs_scripts = False
        self.queries = QueryService(engine)
        self.inserts = Inserts(engine)
        self.server_info = ServerInfo(engine, cluster_id=cluster_id)
        self.cluster = ServerCluster(engine)
        self.counts = RequestCounts()
        self._terminated = False
        self.cluster.start()

    def close(self) -> None:
        """End running queries and stop sending heartbeats."""
        self.cluster.close()
        self.queries.close()

    def admit(self, route: "SqlRoute", headers: Mapping[str, str]) -> None:
        """Refuse statements after /ksql/terminate."""
        del headers
        if self._terminated and route.path in WORKING:
            raise Refused(TERMINATED, "The cluster has been terminated.")

    def terminate(self, request: RestRequest) -> Json:
        """POST /ksql/terminate."""
        content = request.json_object() if request.body.strip() else {}
        answer = self.server_info.terminate(content.get("deleteTopicList"))
        self._terminated = True
        return answer

    def metrics(self) -> Json:
        """GET /metrics."""
        out = Exposition()
        self.counts.expose(out, "millstream_sql_requests_total")
        self.server_info.measured(out, open_answers=self.queries.open_count)
        return PlainText(out.text())

    # --- /ksql ------------------------------------------------------------------------------

    def statements(self, request: RestRequest) -> Json:
        """POST /ksql."""
        asked = sql_request(request.json_object())
        try:
            return self._execute(asked)
        except Exception as error:
            return error_reply(error, asked.text)

    def _execute(self, asked: SqlRequest) -> Json:
        if asked.sequence_number is not None:
            self._wait_for(asked.sequence_number)
        entities = self._engine.execute(asked.text, asked.properties, asked.variables)
        return [entity_json(each) for each in entities]

    def _wait_for(self, sequence_number: int) -> None:
        """Wait until a command of another request, possibly at another server, is executed."""
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


async def _query(sql: SqlEndpoints, request: RestRequest) -> StreamedReply | Reply:
    return await sql.queries.query(request)


async def _query_stream(sql: SqlEndpoints, request: RestRequest) -> StreamedReply | Reply:
    return await sql.queries.query_stream(request)


async def _insert(sql: SqlEndpoints, request: RestRequest) -> StreamedReply:
    return await sql.inserts.insert(request)


SqlRoute = Route[SqlEndpoints, RestRequest]
ROUTES = (
    SqlRoute("POST", "/ksql", SqlEndpoints.statements, body=JSON_BODY),
    SqlRoute("POST", "/ksql/terminate", SqlEndpoints.terminate, body=JSON_BODY),
    SqlRoute("POST", "/query", _query, body=JSON_BODY),
    SqlRoute("POST", "/query-stream", _query_stream, body=JSON_BODY),
    SqlRoute(
        "POST", "/close-query", lambda sql, asked: sql.queries.close_query(asked), body=JSON_BODY
    ),
    SqlRoute("POST", "/inserts-stream", _insert),
    SqlRoute("GET", "/", lambda _, __: Reply(status=307, headers={"location": "/info"})),
    SqlRoute("GET", "/info", lambda sql, _: sql.server_info.info()),
    SqlRoute("GET", "/healthcheck", lambda sql, _: sql.server_info.healthcheck()),
    SqlRoute("GET", "/status", lambda sql, _: sql.server_info.statuses()),
    SqlRoute(
        "GET", "/status/{id:path}", lambda sql, asked: sql.server_info.status(asked.variable("id"))
    ),
    SqlRoute("GET", "/clusterStatus", lambda sql, _: sql.cluster.status()),
    SqlRoute(
        "POST",
        "/heartbeat",
        lambda sql, asked: sql.cluster.heartbeat(asked.json_object()),
        body=JSON_BODY,
    ),
    SqlRoute(
        "POST", "/lag", lambda sql, asked: sql.cluster.lag(asked.json_object()), body=JSON_BODY
    ),
    SqlRoute(
        "GET",
        "/is_valid_property/{name}",
        lambda sql, asked: sql.server_info.is_valid_property(asked.variable("name")),
    ),
    SqlRoute("GET", "/v1/metadata", lambda sql, _: sql.server_info.metadata()),
    SqlRoute("GET", "/v1/metadata/id", lambda sql, _: sql.server_info.metadata_id()),
    SqlRoute("GET", "/chc/ready", lambda _, __: {}),
    SqlRoute("GET", "/chc/live", lambda _, __: {}),
    SqlRoute("GET", "/metrics", lambda sql, _: sql.metrics(), media_type=METRICS_TYPE),
)
SERVICE = RestService(
    ROUTES, error_reply, RestRequest, media_types=(V1_JSON,), admit=SqlEndpoints.admit
)


def sql_application(endpoints: SqlEndpoints) -> RestApplication[SqlEndpoints, RestRequest]:
    """The application, with queries over WebSockets."""
    return RestApplication(
        SERVICE,
        endpoints,
        counts=endpoints.counts,
        websockets=WebSockets(endpoints.queries).answer,
    )
