"""Settings of streams and their clients: those that queries use, and those without effect.

A client setting without a prefix applies to all clients that have it, as in Kafka Streams.
"""

from collections.abc import Mapping
from dataclasses import fields

from broker.client.config import ClusterConfig, NetworkConfig, ProducerConfig
from broker.client.consumer_config import ConsumerConfig
from streams.config import StreamsConfig

STREAMS_NAMES = frozenset(each.name for each in fields(StreamsConfig)) - {"extra"}
OLD_NAMES = frozenset({"cache.max.bytes.buffering"})
CLIENT_PREFIXES = ("consumer.", "producer.", "main.consumer.", "restore.consumer.")
CLIENT_NAMES = frozenset(
    {
        "acks",
        "allow.auto.create.topics",
        "batch.size",
        "buffer.memory",
        "compression.type",
        "delivery.timeout.ms",
        "enable.idempotence",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "isolation.level",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.request.size",
        "request.timeout.ms",
        "retries",
        "retry.backoff.ms",
    }
)
# Known settings without effect, and alternatives.
WITHOUT_EFFECT: Mapping[str, str] = {
    "application.id": "each query has its own, prefixed with ksql.service.id",
    "application.server": "set ksql.advertised.listener",
    "bootstrap.servers": "set the cluster when you start the server, for example with --bootstrap",
    "processes": "queries run in threads of the server, see ksql.runtime.threads",
    "default.key.serde": "set KEY_FORMAT of a stream or table",
    "default.value.serde": "set VALUE_FORMAT of a stream or table",
    "deserialization.exception.handler": "set ksql.fail.on.deserialization.error",
    "production.exception.handler": "set ksql.fail.on.production.error",
    "topology.optimization": "topologies of queries are not optimized again",
    "ensure.explicit.internal.resource.naming": "internal topics are named after their queries",
    "upgrade.from": "there is no earlier protocol to upgrade from",
    "allow.auto.create.topics": "a statement creates the topics that its query needs",
    "producer.allow.auto.create.topics": "a statement creates the topics that its query needs",
    "enable.idempotence": "processing.guarantee decides it",
    "isolation.level": "processing.guarantee decides it",
    "max.poll.records": "set buffered.records.per.partition: batches are read whole",
    "max.poll.interval.ms": "members stay in their group as long as they send heartbeats",
}


def _names(*classes: type[object]) -> frozenset[str]:
    # Each class is a dataclass, which mypy does not know for type[object].
    return frozenset(
        item.name.replace("_", ".")
        for each in classes
        for item in fields(each)  # type: ignore[arg-type]
    )


SCOPES = {
    "consumer.": _names(NetworkConfig, ClusterConfig, ConsumerConfig),
    "producer.": _names(NetworkConfig, ClusterConfig, ProducerConfig),
}


def is_of_streams(name: str) -> bool:
    """Whether a setting is for streams or their clients; the name is without ksql.streams."""
    snake = name.replace(".", "_")
    return snake in STREAMS_NAMES or name in CLIENT_NAMES or name.startswith(CLIENT_PREFIXES)


def for_streams(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings for a StreamsApp."""
    result: dict[str, object] = {}
    for name, value in settings.items():
        if name in WITHOUT_EFFECT:
            continue
        if name in CLIENT_NAMES:
            for prefix, names in SCOPES.items():
                if name in names:
                    result.setdefault(f"{prefix}{name}", value)
        elif name.startswith(CLIENT_PREFIXES):
            result[name] = value
        elif name.replace(".", "_") in STREAMS_NAMES or name in OLD_NAMES:
            result[name.replace(".", "_")] = value
    return result
