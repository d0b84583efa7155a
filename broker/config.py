"""BrokerConfig and TopicConfig: every limit and default, under Kafka's own names.

A field's name is Kafka's with dots turned into underscores: `log_segment_bytes` is
`log.segment.bytes`. Values are validated when the configuration is created; an unknown or
invalid setting is named in the error.
"""

import difflib
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from broker.errors import ConfigError

LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1
HOUR_MS = 3_600_000
MINUTE_MS = 60_000

CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
CLEANUP_POLICIES = ("delete", "compact")

NOT_PREALLOCATED = "a segment's file grows with its records"
ONE_REPLICA = "there is one broker: a partition has one replica, which leads it"

C = TypeVar("C", "BrokerConfig", "TopicConfig")


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of one setting."""

    name: str
    kind: type[object]
    nullable: bool
    default: object
    low: float | None
    high: float | None
    choices: tuple[str, ...]
    broker_name: str | None
    fixed: str  # why only the default is supported; empty if other values are


def setting(
    default: object,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    broker_name: str | None = None,
    fixed: str = "",
) -> Any:  # Any: stands for a value of the field's annotated type
    """Declare a setting: default, bounds, and for topics the broker setting it inherits from.

    A fixed setting has one supported value; errors contain the reason.
    """
    details = {
        "low": low,
        "high": high,
        "choices": choices,
        "broker_name": broker_name,
        "fixed": fixed,
    }
    return field(default=default, metadata=details)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """Settings of one topic; settings that the topic does not override come from the broker."""

    cleanup_policy: tuple[str, ...] = setting(
        ("delete",), choices=CLEANUP_POLICIES, broker_name="log.cleanup.policy"
    )
    compression_type: str = setting("producer", choices=CODECS, broker_name="compression.type")
    compression_gzip_level: int = setting(-1, low=-1, high=9, broker_name="compression.gzip.level")
    compression_lz4_level: int = setting(9, low=1, high=17, broker_name="compression.lz4.level")
    compression_zstd_level: int = setting(
        3, low=-131072, high=22, broker_name="compression.zstd.level"
    )
    delete_retention_ms: int = setting(
        86_400_000, low=0, broker_name="log.cleaner.delete.retention.ms"
    )
    file_delete_delay_ms: int = setting(60_000, low=0, broker_name="log.segment.delete.delay.ms")
    flush_messages: int = setting(LONG_MAX, low=1, broker_name="log.flush.interval.messages")
    flush_ms: int = setting(LONG_MAX, low=0, broker_name="log.flush.interval.ms")
    index_interval_bytes: int = setting(4096, low=0, broker_name="log.index.interval.bytes")
    max_compaction_lag_ms: int = setting(
        LONG_MAX, low=1, broker_name="log.cleaner.max.compaction.lag.ms"
    )
    max_message_bytes: int = setting(1_048_588, low=0, broker_name="message.max.bytes")
    message_timestamp_after_max_ms: int = setting(
        HOUR_MS, low=0, broker_name="log.message.timestamp.after.max.ms"
    )
    message_timestamp_before_max_ms: int = setting(
        LONG_MAX, low=0, broker_name="log.message.timestamp.before.max.ms"
    )
    message_timestamp_type: str = setting(
        "CreateTime", choices=TIMESTAMP_TYPES, broker_name="log.message.timestamp.type"
    )
    min_cleanable_dirty_ratio: float = setting(
        0.5, low=0, high=1, broker_name="log.cleaner.min.cleanable.ratio"
    )
    min_compaction_lag_ms: int = setting(0, low=0, broker_name="log.cleaner.min.compaction.lag.ms")
    min_insync_replicas: int = setting(1, low=1, broker_name="min.insync.replicas")
    preallocate: bool = setting(False, broker_name="log.preallocate", fixed=NOT_PREALLOCATED)
    retention_bytes: int = setting(-1, low=-1, broker_name="log.retention.bytes")
    retention_ms: int = setting(7 * 24 * HOUR_MS, low=-1, broker_name="log.retention.ms")
    segment_bytes: int = setting(1_073_741_824, low=14, broker_name="log.segment.bytes")
    segment_index_bytes: int = setting(10_485_760, low=4, broker_name="log.index.size.max.bytes")
    segment_jitter_ms: int = setting(0, low=0, broker_name="log.roll.jitter.ms")
    segment_ms: int = setting(7 * 24 * HOUR_MS, low=1, broker_name="log.roll.ms")
    unclean_leader_election_enable: bool = setting(
        False, broker_name="unclean.leader.election.enable", fixed=ONE_REPLICA
    )

    @property
    def compacts(self) -> bool:
        """Whether only the last record of each key is retained."""
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        """Whether old segments are deleted."""
        return "delete" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        """Whether the broker sets the timestamps of records."""
        return self.message_timestamp_type == "LogAppendTime"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Settings of a broker, with Kafka's defaults; Millstream's own settings are last."""

    broker_id: int = setting(0, low=0)
    broker_rack: str | None = setting(None)
    # Kafka listens on all interfaces by default. Here only local clients can connect by default.
    listeners: tuple[str, ...] = setting(("PLAINTEXT://127.0.0.1:9092",))
    advertised_listeners: tuple[str, ...] = setting(())
    log_dir: str = setting("millstream-data")
    log_dirs: tuple[str, ...] = setting(())

    # Sockets and limits
    socket_send_buffer_bytes: int = setting(102_400, low=-1)
    socket_receive_buffer_bytes: int = setting(102_400, low=-1)
    socket_request_max_bytes: int = setting(104_857_600, low=1)
    socket_listen_backlog_size: int = setting(50, low=1)
    max_connections: int = setting(INT_MAX, low=0)
    max_connections_per_ip: int = setting(INT_MAX, low=0)
    connections_max_idle_ms: int = setting(600_000)
    queued_max_request_bytes: int = setting(-1)
    fetch_max_bytes: int = setting(57_671_680, low=1024)
    max_incremental_fetch_session_cache_slots: int = setting(1000, low=0)
    max_request_partition_size_limit: int = setting(2000, low=1)

    # Topics
    auto_create_topics_enable: bool = setting(True)
    delete_topic_enable: bool = setting(True)
    num_partitions: int = setting(1, low=1)
    default_replication_factor: int = setting(1, fixed=ONE_REPLICA)
    min_insync_replicas: int = setting(1, low=1)
    unclean_leader_election_enable: bool = setting(False, fixed=ONE_REPLICA)

    # The log
    message_max_bytes: int = setting(1_048_588, low=0)
    compression_type: str = setting("producer", choices=CODECS)
    compression_gzip_level: int = setting(-1, low=-1, high=9)
    compression_lz4_level: int = setting(9, low=1, high=17)
    compression_zstd_level: int = setting(3, low=-131072, high=22)
    log_segment_bytes: int = setting(1_073_741_824, low=14)
    log_segment_delete_delay_ms: int = setting(60_000, low=0)
    log_roll_ms: int | None = setting(None, low=1)
    log_roll_hours: int = setting(168, low=1)
    log_roll_jitter_ms: int | None = setting(None, low=0)
    log_roll_jitter_hours: int = setting(0, low=0)
    log_retention_ms: int | None = setting(None, low=-1)
    log_retention_minutes: int | None = setting(None, low=-1)
    log_retention_hours: int = setting(168, low=-1)
    log_retention_bytes: int = setting(-1, low=-1)
    log_retention_check_interval_ms: int = setting(300_000, low=1)
    log_cleanup_policy: tuple[str, ...] = setting(("delete",), choices=CLEANUP_POLICIES)
    log_index_size_max_bytes: int = setting(10_485_760, low=4)
    log_index_interval_bytes: int = setting(4096, low=0)
    log_flush_interval_messages: int = setting(LONG_MAX, low=1)
    log_flush_interval_ms: int | None = setting(None, low=0)
    log_flush_scheduler_interval_ms: int = setting(LONG_MAX, low=1)
    log_flush_offset_checkpoint_interval_ms: int = setting(60_000, low=0)
    log_flush_start_offset_checkpoint_interval_ms: int = setting(60_000, low=0)
    log_preallocate: bool = setting(False, fixed=NOT_PREALLOCATED)
    log_message_timestamp_type: str = setting("CreateTime", choices=TIMESTAMP_TYPES)
    log_message_timestamp_before_max_ms: int = setting(LONG_MAX, low=0)
    log_message_timestamp_after_max_ms: int = setting(HOUR_MS, low=0)
    log_cleaner_enable: bool = setting(True)
    log_cleaner_backoff_ms: int = setting(15_000, low=0)
    log_cleaner_dedupe_buffer_size: int = setting(134_217_728, low=1)
    log_cleaner_delete_retention_ms: int = setting(86_400_000, low=0)
    log_cleaner_io_max_bytes_per_second: float = setting(1.7976931348623157e308, low=0)
    log_cleaner_min_cleanable_ratio: float = setting(0.5, low=0, high=1)
    log_cleaner_min_compaction_lag_ms: int = setting(0, low=0)
    log_cleaner_max_compaction_lag_ms: int = setting(LONG_MAX, low=1)

    # Groups and offsets
    offsets_topic_num_partitions: int = setting(50, low=1)
    offsets_topic_segment_bytes: int = setting(104_857_600, low=1)
    offsets_retention_minutes: int = setting(10_080, low=1)
    offsets_retention_check_interval_ms: int = setting(600_000, low=1)
    offset_metadata_max_bytes: int = setting(4096, low=0)
    group_min_session_timeout_ms: int = setting(6000)
    group_max_session_timeout_ms: int = setting(1_800_000)
    group_initial_rebalance_delay_ms: int = setting(3000, low=0)
    group_max_size: int = setting(INT_MAX, low=1)
    group_consumer_session_timeout_ms: int = setting(45_000, low=1)
    group_consumer_heartbeat_interval_ms: int = setting(5000, low=1)
    group_consumer_max_size: int = setting(INT_MAX, low=1)
    group_consumer_assignors: tuple[str, ...] = setting(
        ("uniform", "range"), choices=("uniform", "range")
    )

    # Producers and transactions
    producer_id_expiration_ms: int = setting(86_400_000, low=1)
    producer_id_expiration_check_interval_ms: int = setting(600_000, low=1)
    transaction_max_timeout_ms: int = setting(900_000, low=1)
    transactional_id_expiration_ms: int = setting(604_800_000, low=1)
    transaction_state_log_num_partitions: int = setting(50, low=1)
    transaction_state_log_segment_bytes: int = setting(104_857_600, low=1)
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = setting(10_000, low=1)
    transaction_remove_expired_transaction_cleanup_interval_ms: int = setting(3_600_000, low=1)

    # Millstream's own
    durability: str = setting("kafka", choices=("kafka", "fsync"))
    metrics_port: int | None = setting(None, low=0, high=65535)
    metrics_host: str = setting("127.0.0.1")
    metrics_allowed_hosts: tuple[str, ...] = setting(())

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "BrokerConfig":
        """Parse strings by Kafka's names, without settings that have no effect on one node."""
        _refuse_security(properties)
        known = {
            RENAMED.get(name, name): value
            for name, value in properties.items()
            if name not in WITHOUT_MEANING and not _is_security(name)
        }
        config = cls(**parse_settings(cls, known))
        _refuse_group_protocols(properties)
        _check_protocols(config.listeners, properties.get(PROTOCOL_MAP, ""))
        if config.advertised_listeners and not config.listeners:
            raise ConfigError('setting "listeners" is empty but "advertised.listeners" is not')
        return config

    @property
    def data_directory(self) -> str:
        """The directory of the logs: log.dirs overrides log.dir; only one is supported."""
        if len(self.log_dirs) > 1:
            raise ConfigError(
                f'setting "log.dirs" names {len(self.log_dirs)} directories',
                hint="a broker uses one directory; set only one",
            )
        return self.log_dirs[0] if self.log_dirs else self.log_dir

    @property
    def checkpoint_interval_ms(self) -> int:
        """How often checkpoints are written; one file replaces both of Kafka's."""
        return min(
            self.log_flush_offset_checkpoint_interval_ms,
            self.log_flush_start_offset_checkpoint_interval_ms,
        )

    def topic_defaults(self) -> TopicConfig:
        """Settings of topics without overrides; ms overrides minutes, minutes override hours."""
        values: dict[str, object] = {}
        for name, item in settings(TopicConfig).items():
            assert item.broker_name is not None
            value = getattr(self, item.broker_name.replace(".", "_"))
            if value is not None:
                values[name.replace(".", "_")] = value
        values["retention_ms"] = self._retention_ms()
        if self.log_roll_ms is None:
            values["segment_ms"] = self.log_roll_hours * HOUR_MS
        if self.log_roll_jitter_ms is None:
            values["segment_jitter_ms"] = self.log_roll_jitter_hours * HOUR_MS
        if self.log_flush_interval_ms is None:
            values["flush_ms"] = self.log_flush_scheduler_interval_ms
        return TopicConfig(**values)  # type: ignore[arg-type]

    def _retention_ms(self) -> int:
        if self.log_retention_ms is not None:
            return self.log_retention_ms
        if self.log_retention_minutes is not None:
            found = self.log_retention_minutes * MINUTE_MS
        else:
            found = self.log_retention_hours * HOUR_MS
        return max(found, -1)

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The settings of a topic: the broker's with its overrides; ConfigError if invalid."""
        return replace(self.topic_defaults(), **parse_settings(TopicConfig, overrides))


PROTOCOL_MAP = "listener.security.protocol.map"
INTER_BROKER_PROTOCOL = "security.inter.broker.protocol"
PLAINTEXT = "PLAINTEXT"
PLAIN_ONLY = "this broker has no encryption or authentication: remove the setting to run without"
# Settings that restrict access to a Kafka broker. If they were ignored, anyone would have access.
SECURITY_PREFIXES = (
    "ssl.", "sasl.", "listener.name.", "delegation.token.", "connection.failed.authentication.",
)  # fmt: skip
SECURITY_SETTINGS = frozenset(
    {
        "authorizer.class.name", "super.users", "allow.everyone.if.no.acl.found",
        "principal.builder.class", "security.providers",
    }
)  # fmt: skip


def _is_security(name: str) -> bool:
    return name in SECURITY_SETTINGS or name.startswith(SECURITY_PREFIXES)


def _refuse_security(properties: Mapping[str, str]) -> None:
    """Refuse settings for TLS, authentication and authorization, unless their values are empty."""
    for name, value in properties.items():
        secures = _is_security(name)
        if name == INTER_BROKER_PROTOCOL:
            secures = value.strip().upper() != PLAINTEXT
        if secures and value.strip():
            raise ConfigError(f'setting "{name}" is not supported', hint=PLAIN_ONLY)


GROUP_PROTOCOLS = "group.coordinator.rebalance.protocols"
MIGRATION_POLICY = "group.consumer.migration.policy"


def _refuse_group_protocols(properties: Mapping[str, str]) -> None:
    """Refuse other group protocols, and migrations of groups between them."""
    given = properties.get(GROUP_PROTOCOLS, "classic,consumer")
    if {part.strip().lower() for part in given.split(",")} != {"classic", "consumer"}:
        raise ConfigError(
            f'setting "{GROUP_PROTOCOLS}" cannot be "{given}"', hint="it is always classic,consumer"
        )
    policy = properties.get(MIGRATION_POLICY, "disabled")
    if policy.strip().lower() != "disabled":
        raise ConfigError(
            f'setting "{MIGRATION_POLICY}" cannot be "{policy}"',
            hint="a group changes its protocol when it is empty: disabled",
        )


def _check_protocols(listeners: tuple[str, ...], protocol_map: str) -> None:
    """Refuse a map with another protocol for a listener; entries for other names are unused."""
    protocols: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in protocol_map.split(","))):
        name, colon, protocol = entry.rpartition(":")
        if not colon or not name.strip() or not protocol.strip():
            raise ConfigError(
                f'setting "{PROTOCOL_MAP}" has "{entry}"', hint="an entry is written NAME:PROTOCOL"
            )
        protocols[name.strip().upper()] = protocol.strip().upper()
    for listener in listeners:
        name = listener.partition("://")[0].upper()
        protocol = protocols.get(name, PLAINTEXT)
        if protocol != PLAINTEXT and name != CONTROLLER:
            raise ConfigError(
                f'setting "{PROTOCOL_MAP}" has {protocol} for listener "{name}", '
                f"which this broker does not support",
                hint="listen on PLAINTEXT and put a TLS proxy in front",
            )


# In a server.properties for KRaft the controller has a separate listener, which is not used here.
CONTROLLER = "CONTROLLER"

# Kafka's other name of the same setting.
RENAMED = {"node.id": "broker.id"}

# Settings of a cluster, and of threads, queues and buffers that this broker does not have. They are
# accepted, so that a server.properties can be used unchanged, but DescribeConfigs does not list
# them.
WITHOUT_MEANING = frozenset(
    {
        "process.roles", "controller.quorum.voters", "controller.quorum.bootstrap.servers",
        "controller.listener.names", "inter.broker.listener.name", "listener.security.protocol.map",
        "security.inter.broker.protocol", "num.network.threads", "num.io.threads",
        "background.threads", "num.recovery.threads.per.data.dir", "num.replica.fetchers",
        "offsets.topic.replication.factor", "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr", "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr", "zookeeper.connect",
        "zookeeper.connection.timeout.ms", "auto.leader.rebalance.enable", "log.cleaner.threads",
        "log.cleaner.io.buffer.size", "log.cleaner.io.buffer.load.factor",
        "group.coordinator.rebalance.protocols", "group.coordinator.threads",
        "group.coordinator.background.threads", "group.coordinator.append.linger.ms",
        "group.consumer.migration.policy", "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms", "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms", "controlled.shutdown.enable",
        "metadata.log.dir", "queued.max.requests", "request.timeout.ms",
    }
)  # fmt: skip


@cache
def settings(cls: type[BrokerConfig] | type[TopicConfig]) -> dict[str, Setting]:
    """The settings of a configuration class by Kafka's names."""
    hints = get_type_hints(cls)
    found = {}
    for item in fields(cls):
        kind, nullable = _kind(hints[item.name])
        name = item.name.replace("_", ".")
        details = item.metadata
        found[name] = Setting(
            name=name,
            kind=kind,
            nullable=nullable,
            default=item.default,
            low=details["low"],
            high=details["high"],
            choices=details["choices"],
            broker_name=details["broker_name"],
            fixed=details["fixed"],
        )
    return found


def _kind(hint: object) -> tuple[type[object], bool]:
    if isinstance(hint, types.UnionType):
        inner = next(part for part in get_args(hint) if part is not types.NoneType)
        return _kind(inner)[0], True
    origin = get_origin(hint) or hint
    assert isinstance(origin, type)
    return origin, False


def parse_settings(cls: type[C], values: Mapping[str, str]) -> dict[str, Any]:
    """Parse string values by Kafka's names; returns valid values by field names."""
    known = settings(cls)  # type: ignore[arg-type]  # classes are hashable
    parsed = {}
    for name, text in values.items():
        found = known.get(name)
        if found is None:
            raise ConfigError(f'setting "{name}" is not known', hint=_nearest(name, known))
        parsed[name.replace(".", "_")] = parse_value(found, text)
    return parsed


def parse_value(found: Setting, text: str) -> object:
    """The validated value of one setting."""
    text = text.strip()
    value: object
    try:
        if found.kind is tuple:
            value = tuple(part.strip() for part in text.split(",") if part.strip())
        elif found.kind is bool:
            value = {"true": True, "false": False}[text.lower()]
        elif found.nullable and not text:
            value = None
        else:
            value = found.kind(text)  # type: ignore[call-arg]
    except (ValueError, KeyError):
        kind = {tuple: "list", bool: "boolean", int: "whole number", float: "number"}
        expected = kind.get(found.kind, found.kind.__name__)
        raise ConfigError(f'setting "{found.name}" must be a {expected}, not "{text}"') from None
    _check(found, value)
    return value


def refuses(name: str, text: str) -> bool:
    """Whether a topic's setting is known but this value, which was accepted once, is refused."""
    found = settings(TopicConfig).get(name)
    return found is not None and bool(found.fixed) and text != format_value(found.default)


def _check(found: Setting, value: object) -> None:
    if found.fixed and value != found.default:
        raise ConfigError(
            f'setting "{found.name}" cannot be "{format_value(value)}"', hint=found.fixed
        )
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if found.low is not None and value < found.low:
            raise ConfigError(f'setting "{found.name}" must be at least {found.low}, not {value}')
        high = found.high if found.high is not None else LONG_MAX
        if found.kind is int and value > high:
            raise ConfigError(f'setting "{found.name}" must be at most {high}, not {value}')
    if found.choices:
        for part in value if isinstance(value, tuple) else (value,):
            if part not in found.choices:
                allowed = ", ".join(found.choices)
                raise ConfigError(
                    f'setting "{found.name}" cannot be "{part}"', hint=f"one of {allowed}"
                )


def format_value(value: object) -> str | None:
    """A value in the form of Kafka's DescribeConfigs responses."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f'did you mean "{near[0]}"?' if near else "see broker/README.md for the settings"
