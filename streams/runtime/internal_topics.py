"""Internal topics: repartition topics and changelogs, created before the first task starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker import concurrency
from broker.client.administration.values import NewTopic
from broker.client.cluster_admin import Admin
from broker.clock import Clock
from broker.errors import BrokerError, ErrorCode
from streams.config import StreamsConfig
from streams.errors import StreamsError, TopologyError
from streams.runtime.partitions import Layout, changelog_topic, lay_out
from streams.state.changelog import changelog_config
from streams.topology import Topology

VISIBLE_MS = 30_000
VISIBLE_RETRY_MS = 100
REPARTITION_CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",  # the application deletes records after it has committed them
    "segment.bytes": str(50 * 1024 * 1024),
    "message.timestamp.type": "CreateTime",
}


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """Settings of new internal topics; settings of a store take precedence over `config`."""

    window_retention_extra_ms: int
    replication_factor: int = -1
    config: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, config: StreamsConfig) -> "TopicSettings":
        """The settings of an application."""
        return cls(
            config.windowstore_changelog_additional_retention_ms,
            config.replication_factor,
            config.topic_config,
        )


def existing_topics(admin: Admin) -> dict[str, int]:
    """The partition counts of all topics."""
    return {name: topic.partitions for name, topic in admin.list_topics().items()}


def prepare_topics(
    admin: Admin,
    topology: Topology,
    application_id: str,
    settings: TopicSettings,
    clock: Clock,
) -> Layout:
    """Compute the layout and create internal topics; existing ones must match it."""
    existing = existing_topics(admin)
    layout = lay_out(topology, application_id, existing)
    required = _required_topics(layout, settings.window_retention_extra_ms, settings.config)
    _check_existing({name: count for name, (count, _) in required.items()}, existing)
    missing = [
        NewTopic(name, count, settings.replication_factor, configs)
        for name, (count, configs) in required.items()
        if name not in existing
    ]
    if missing:
        _create(admin, missing, clock)
    return layout


def _required_topics(
    layout: Layout, window_extra_ms: int, topic_config: Mapping[str, str]
) -> dict[str, tuple[int, Mapping[str, str]]]:
    """The partition count and the settings of each internal topic."""
    topology = layout.topology
    required: dict[str, tuple[int, Mapping[str, str]]] = {
        name: (count, {**REPARTITION_CONFIG, **topic_config})
        for name, count in layout.repartition_topics.items()
    }
    for store, spec in topology.stores.items():
        if store not in topology.changelogs or store in topology.source_changelogs:
            continue
        name = changelog_topic(topology, layout.application_id, store)
        if name in layout.changelog_topics:
            configs = changelog_config(spec, window_extra_ms, topic_config)
            required[name] = (layout.changelog_topics[name], configs)
    return required


def _check_existing(required: Mapping[str, int], existing: Mapping[str, int]) -> None:
    for name, count in required.items():
        if name in existing and existing[name] != count:
            raise TopologyError(
                f'internal topic "{name}" has {existing[name]} partitions, not {count}',
                hint="the partitions of a source topic have changed: reset the application",
            )


def _create(admin: Admin, topics: list[NewTopic], clock: Clock) -> None:
    """Create topics, unless another instance of the application has just created them."""
    errors = admin.create_topics(topics).errors
    for name, error in errors.items():
        if not isinstance(error, BrokerError) or error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise StreamsError(f'cannot create internal topic "{name}": {error}') from error
    _await_topics(admin, {topic.name: topic.partitions for topic in topics}, clock)


def _await_topics(admin: Admin, created: Mapping[str, int], clock: Clock) -> None:
    """Wait until the cluster lists new topics, which may take a moment."""
    deadline_ms = clock.monotonic_ms() + VISIBLE_MS
    pause = concurrency.Condition()
    while missing := created.keys() - (existing := existing_topics(admin)).keys():
        if clock.monotonic_ms() >= deadline_ms:
            raise StreamsError(
                f'internal topic "{min(missing)}" was created {VISIBLE_MS // 1000} s ago, but the '
                "cluster does not list it",
                hint="check the controller and the brokers",
            )
        with pause:
            clock.wait(pause, VISIBLE_RETRY_MS)
    _check_existing(created, existing)
