"""Settings of ksqlDB that have one value here: others would have no effect, and why.

A server logs a warning about other values when it starts, and SET rejects them. SATISFIED are
settings whose every value holds, so that clients of ksqlDB may send them with requests.
"""

from collections.abc import Mapping

_ALLOWED = "statements may always use them"
_NO_LIMIT = "there is no such limit"
_FIXED = "it cannot be changed"

UNUSED: Mapping[str, str] = {
    "ksql.headers.columns.enabled": _ALLOWED,
    "ksql.lambdas.enabled": _ALLOWED,
    "ksql.suppress.enabled": _ALLOWED,
    "ksql.rowpartition.rowoffset.enabled": _ALLOWED,
    "ksql.query.pull.stream.enabled": _ALLOWED,
    "ksql.query.pull.limit.clause.enabled": _ALLOWED,
    "ksql.stream.stream.within.enabled": _ALLOWED,
    "ksql.suppress.buffer.size.bytes": _NO_LIMIT,
    "ksql.query.pull.forwarding.timeout.ms": _FIXED,
    "ksql.query.pull.consistency.token.enabled": "there are no consistency tokens",
    "ksql.query.pull.max.qps": _NO_LIMIT,
    "ksql.query.pull.max.concurrent.requests": _NO_LIMIT,
    "ksql.query.pull.max.hourly.bandwidth.megabytes": _NO_LIMIT,
    "ksql.query.push.v2.max.hourly.bandwidth.megabytes": _NO_LIMIT,
    "ksql.query.push.v2.alos.enabled": _FIXED,
    "ksql.query.push.v2.continuation.tokens.enabled": "there are no continuation tokens",
    "ksql.query.push.v2.new.latest.delay.ms": _FIXED,
    "ksql.query.push.v2.registry.installed": "set ksql.query.push.v2.enabled",
    "ksql.nested.error.set.null": _FIXED,
    "ksql.json_sr.converter.deserializer.enabled": _FIXED,
    "ksql.internal.topic.replicas": "internal topics have the broker's default",
    "ksql.internal.topic.min.insync.replicas": "internal topics have the broker's default",
    "ksql.logging.processing.topic.replication.factor": "the topic has the broker's default",
    "ksql.udf.collect.metrics": "functions have no metrics",
    "ksql.query.cleanup.shutdown.timeout.ms": "a query is dropped together with its state",
    "ksql.shutdown.timeout.ms": "a server stops when its queries have stopped",
    "ksql.idle.connection.timeout.seconds": "connections are closed after 600 idle seconds",
    "ksql.websocket.connection.max.timeout.ms": _NO_LIMIT,
    "ksql.metastore.backup.location": "copy the command topic",
    "ksql.server.error.messages": "messages cannot be replaced",
}

# They permit something (stale reads), or choose how the same result is computed.
SATISFIED = frozenset(
    {
        "ksql.new.query.planner.enabled",
        "ksql.query.pull.enable.standby.reads",
        "ksql.query.pull.interpreter.enabled",
        "ksql.query.pull.max.allowed.offset.lag",
        "ksql.query.push.v2.interpreter.enabled",
    }
)
