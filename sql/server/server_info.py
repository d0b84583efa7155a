"""Information about the server: /info, /healthcheck, /status, /v1/metadata."""

import re

from broker.errors import MillstreamError
from broker.exposition import Exposition
from broker.linear_patterns import compile_pattern
from broker.rest import Json, own_version
from sql.engine.engine import Engine
from sql.engine.settings import plain_name
from sql.errors import SqlError
from sql.server.answers import BAD_REQUEST, NOT_FOUND, Refused
from sql.syntax.statements import SourceKind

# The maximum number and length of patterns for topics to delete.
PATTERNS_MAX = 100
PATTERN_CHARACTERS_MAX = 250


class ServerInfo:
    """Handles requests for information about the server. Thread-safe."""

    def __init__(self, engine: Engine, *, cluster_id: str) -> None:
        """`cluster_id` is only used for responses."""
        self._engine = engine
        self._cluster_id = cluster_id

    @property
    def _service_id(self) -> str:
        return self._engine.config.text("ksql.service.id")

    def info(self) -> Json:
        """GET /info."""
        return {
            "KsqlServerInfo": {
                "version": own_version(),
                "kafkaClusterId": self._cluster_id,
                "ksqlServiceId": self._service_id,
                "serverStatus": "RUNNING" if self._engine.status.is_healthy else "DEGRADED",
            }
        }

    def healthcheck(self) -> Json:
        """GET /healthcheck."""
        try:
            self._engine.execute("SHOW TOPICS;")
            kafka = True
        except MillstreamError:
            kafka = False
        commands = self._engine.status.is_healthy
        details = {"metastore": True, "kafka": kafka, "commandRunner": commands}
        return {
            "isHealthy": kafka and commands,
            "details": {name: {"isHealthy": healthy} for name, healthy in details.items()},
            "serverState": "READY",
        }

    def statuses(self) -> Json:
        """GET /status."""
        found = dict(self._engine.commands.statuses)
        return {"commandStatuses": {name: status.status for name, status in found.items()}}

    def status(self, command_id: str) -> Json:
        """GET /status/{type}/{entity}/{action}."""
        found = self._engine.commands.statuses.get(command_id)
        if found is None:
            kind, _, rest = command_id.partition("/")
            entity, _, action = rest.rpartition("/")
            quoted = f"{kind}/`{entity}`/{action}"
            found = self._engine.commands.statuses.get(quoted)
        if found is None:
            raise Refused(NOT_FOUND, "Command not found")
        return {"status": found.status, "message": found.message, "queryId": found.query_id}

    def is_valid_property(self, name: str) -> Json:
        """GET /is_valid_property/{name}."""
        try:
            plain_name(name)
            self._engine.config.check_override(name)
        except SqlError as error:
            raise Refused(BAD_REQUEST, error.message) from error
        return True

    def metadata(self) -> Json:
        """GET /v1/metadata."""
        return {"version": own_version(), "clusterId": self.metadata_id()}

    def metadata_id(self) -> Json:
        """GET /v1/metadata/id."""
        clusters = {"kafka-cluster": self._cluster_id, "ksql-cluster": self._service_id}
        return {"id": "", "scope": {"path": [], "clusters": clusters}}

    def measured(self, out: Exposition, *, open_answers: int) -> None:
        """Metrics of queries, for /metrics."""
        state = self._engine.state
        kinds = [each.kind for each in list(state.catalog.sources.values())]
        running = [
            each.runtime.state.value for each in list(self._engine.commands.running.values())
        ]
        for what, text, count in (
            ("streams", "Streams.", kinds.count(SourceKind.STREAM)),
            ("tables", "Tables.", kinds.count(SourceKind.TABLE)),
            (
                "push_queries",
                "Running push queries.",
                len(self._engine.transient_queries.push_queries),
            ),
            ("open_answers", "Query responses that are being sent.", open_answers),
        ):
            out.single(f"millstream_sql_{what}", "gauge", text, count)
        name = "millstream_sql_persistent_queries"
        out.family(name, "gauge", "Persistent queries by state.")
        for state_name in sorted(set(running)):
            out.sample(name, running.count(state_name), state=state_name)

    # --- /ksql/terminate --------------------------------------------------------------------

    def terminate(self, patterns: object) -> Json:
        """POST /ksql/terminate: drops all queries and sources, and deletes matching topics."""
        wanted = _patterns(patterns)
        self._engine.transient_queries.close()
        self._engine.commands.terminate_cluster(wanted)
        return {"message": "Cluster terminated"}


def _patterns(patterns: object) -> list[str]:
    if patterns is None:
        return []
    if not isinstance(patterns, list) or len(patterns) > PATTERNS_MAX:
        raise Refused(BAD_REQUEST, '"deleteTopicList" must be a list of patterns')
    for each in patterns:
        if not isinstance(each, str) or len(each) > PATTERN_CHARACTERS_MAX:
            raise Refused(BAD_REQUEST, '"deleteTopicList" must be a list of patterns')
        try:
            compile_pattern(each)
        except (re.error, OverflowError, RecursionError) as error:
            raise Refused(BAD_REQUEST, f"Invalid pattern: {each}") from error
        if "," in each:  # it separates patterns
            raise Refused(BAD_REQUEST, f"Invalid pattern: {each}")
    return patterns
