"""StreamsConfig: settings of an application, Kafka's names with underscores, Kafka's defaults."""

import difflib
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from broker.serde import JsonSerde, Serde, StringSerde
from streams.errors import StreamsConfigError
from streams.handlers import Handler, log_and_continue, log_and_fail
from streams.stream_time import (
    TimestampExtractor,
    fail_on_invalid_timestamp,
    log_and_skip_on_invalid_timestamp,
    use_partition_time_on_invalid_timestamp,
)

AT_LEAST_ONCE = "at_least_once"
EXACTLY_ONCE = "exactly_once_v2"
GUARANTEES = (AT_LEAST_ONCE, EXACTLY_ONCE)
RECORDING_LEVELS = ("INFO", "DEBUG", "TRACE")
MIB = 1024 * 1024
COMMIT_INTERVAL_MS = 30_000
COMMIT_INTERVAL_EXACTLY_ONCE_MS = 100
# Settings with these prefixes are passed to clients and topics.
PREFIXES = (
    "consumer.",
    "main.consumer.",
    "restore.consumer.",
    "global.consumer.",
    "producer.",
    "admin.",
    "topic.",
    "client.tag.",
)
_APPLICATION_ID = re.compile(r"[A-Za-z0-9._-]{1,200}")


def _empty() -> Mapping[str, object]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsConfig:
    """The settings of an application.

    >>> config = StreamsConfig.of(application_id="shop", commit_interval_ms=timedelta(seconds=1))
    >>> config.commit_interval_ms
    1000
    """

    application_id: str = "millstream-app"
    bootstrap_servers: str = ""  # "": the embedded broker
    client_id: str = ""  # "": from the application id
    application_server: str = ""  # "host:port" at which other instances query this one
    state_dir: str = field(default_factory=lambda: str(Path(tempfile.gettempdir()) / "millstream"))

    # Guarantee and commits
    processing_guarantee: str = AT_LEAST_ONCE
    commit_interval_ms: int = -1  # -1: 30 s, or 100 ms when exactly once
    transaction_timeout_ms: int = 10_000
    task_timeout_ms: int = 300_000
    statestore_cache_max_bytes: int = 10 * 1024 * 1024
    repartition_purge_interval_ms: int = 30_000

    # Memory of all persistent stores of a process: about the sum of the first three.
    state_buffer_max_bytes: int = 64 * MIB  # uncommitted changes; a full buffer triggers a commit
    state_cache_max_bytes: int = 256 * MIB  # committed rows, in equal shares for all tasks
    rocksdb_block_cache_bytes: int = 64 * MIB
    rocksdb_write_buffer_bytes: int = 32 * MIB  # a part of the block cache

    # Threads, processes and input
    num_stream_threads: int = 1
    processes: int = 0  # 0: threads of this process
    poll_ms: int = 100
    max_poll_records: int = 1000
    buffered_records_per_partition: int = 1000
    max_task_idle_ms: int = 0
    auto_offset_reset: str = "earliest"

    # Assignment
    num_standby_replicas: int = 0
    max_warmup_replicas: int = 2
    acceptable_recovery_lag: int = 10_000
    probing_rebalance_interval_ms: int = 600_000
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    group_instance_id: str | None = None

    # Records
    default_key_serde: Serde[Any] = field(default_factory=StringSerde)
    default_value_serde: Serde[Any] = field(default_factory=JsonSerde)
    default_timestamp_extractor: TimestampExtractor = fail_on_invalid_timestamp
    deserialization_exception_handler: Handler = log_and_fail
    processing_exception_handler: Handler = log_and_fail
    production_exception_handler: Handler = log_and_fail
    errors_dead_letter_queue_topic_name: str | None = None

    # Topics and topology
    replication_factor: int = -1  # the broker's own
    topology_optimization: str = "none"
    ensure_explicit_internal_resource_naming: bool = False
    windowstore_changelog_additional_retention_ms: int = 86_400_000
    state_cleanup_delay_ms: int = 600_000
    upgrade_from: str | None = None

    # Monitoring
    metrics_recording_level: str = "INFO"  # DEBUG counts records at every node
    log_summary_interval_ms: int = 120_000

    # Settings with one of PREFIXES or "__", by their full names.
    extra: Mapping[str, object] = field(default_factory=_empty)

    def __post_init__(self) -> None:
        _check_application_id(self.application_id)
        _one_of("processing_guarantee", self.processing_guarantee, GUARANTEES)
        _one_of("auto_offset_reset", self.auto_offset_reset, ("earliest", "latest", "none"))
        _one_of("metrics_recording_level", self.metrics_recording_level, RECORDING_LEVELS)
        for name, (effective, instead) in _WITHOUT_EFFECT.items():
            if getattr(self, name) != effective:
                raise StreamsConfigError(f'"{name}" has no effect', hint=instead)
        for name, minimum in _MINIMUMS.items():
            _whole_number(name, getattr(self, name), minimum)
        for name in _HANDLERS:
            if not callable(getattr(self, name)):
                raise StreamsConfigError(
                    f'"{name}" is {getattr(self, name)!r}',
                    hint="pass a function that takes a Failure, for example log_and_continue",
                )
        if self.rocksdb_write_buffer_bytes > self.rocksdb_block_cache_bytes:
            raise StreamsConfigError(
                f'"rocksdb_write_buffer_bytes" is {self.rocksdb_write_buffer_bytes}, more than '
                f'"rocksdb_block_cache_bytes", {self.rocksdb_block_cache_bytes}',
                hint="write buffers are part of the block cache: raise the latter or lower "
                "the former",
            )
        if self.commit_interval_ms < 0:
            interval = COMMIT_INTERVAL_EXACTLY_ONCE_MS if self.exactly_once else COMMIT_INTERVAL_MS
            object.__setattr__(self, "commit_interval_ms", interval)

    @property
    def exactly_once(self) -> bool:
        """Whether output, state and offsets are committed in transactions."""
        return self.processing_guarantee == EXACTLY_ONCE

    @classmethod
    def of(cls, **settings: object) -> Self:
        """Create a config from settings by name; durations can be timedelta."""
        return cls.from_properties(settings)

    @classmethod
    def from_properties(cls, properties: Mapping[str, object]) -> Self:
        """Create a config from Kafka's dotted names, or ours; strings are converted."""
        known = {item.name for item in fields(cls)}
        values: dict[str, Any] = {}  # Any: each setting has its own type, checked afterwards
        extra: dict[str, object] = {}
        for given, value in properties.items():
            name = _snake(given)
            if given == "extra" and isinstance(value, Mapping):
                extra.update(value)
            elif given.startswith(("__", *PREFIXES)):
                extra[given] = value
            elif name in known:
                values[name] = _converted(name, value)
            else:
                raise StreamsConfigError(f'unknown setting "{given}"', hint=_suggestion(name))
        return cls(**values, extra=MappingProxyType(extra))

    def get(self, name: str) -> object:
        """A setting by its dotted or its underscored name, or None."""
        if name in self.extra:
            return self.extra[name]
        return getattr(self, _snake(name), None)

    def prefixed(self, prefix: str) -> dict[str, object]:
        """Settings passed on to a client, without their prefix and with underscores."""
        return {
            _snake(name[len(prefix) :]): value
            for name, value in self.extra.items()
            if name.startswith(prefix)
        }

    @property
    def topic_config(self) -> dict[str, str]:
        """Settings of internal topics, by Kafka's names: those given as "topic.<name>"."""
        return {
            name.removeprefix("topic."): str(value)
            for name, value in self.extra.items()
            if name.startswith("topic.")
        }


_MINIMUMS = {
    "commit_interval_ms": -1,
    "transaction_timeout_ms": 1,
    "task_timeout_ms": 0,
    "statestore_cache_max_bytes": 0,
    "state_buffer_max_bytes": 1,
    "state_cache_max_bytes": 0,
    "rocksdb_block_cache_bytes": 1 * MIB,
    "rocksdb_write_buffer_bytes": 1 * MIB,
    "repartition_purge_interval_ms": 0,
    "num_stream_threads": 1,
    "processes": 0,
    "poll_ms": 0,
    "max_poll_records": 1,
    "buffered_records_per_partition": 1,
    "max_task_idle_ms": -1,
    "num_standby_replicas": 0,
    "max_warmup_replicas": 1,
    "acceptable_recovery_lag": 0,
    "probing_rebalance_interval_ms": 60_000,
    "session_timeout_ms": 1,
    "heartbeat_interval_ms": 1,
    "replication_factor": -1,
    "windowstore_changelog_additional_retention_ms": 0,
    "state_cleanup_delay_ms": 0,
    "log_summary_interval_ms": -1,
}
# Settings of Kafka that have one value here, and what to use instead of others.
_WITHOUT_EFFECT: Mapping[str, tuple[object, str]] = {
    "ensure_explicit_internal_resource_naming": (False, "give operations and stores names"),
    "max_poll_records": (1000, "set buffered_records_per_partition: batches are read whole"),
    "topology_optimization": ("none", "pass optimize to StreamsBuilder.build"),
}
_HANDLERS = (
    "deserialization_exception_handler",
    "processing_exception_handler",
    "production_exception_handler",
    "default_timestamp_extractor",
)
# Kafka's former names, and synonyms.
_FORMER_NAMES = {
    "cache_max_bytes_buffering": "statestore_cache_max_bytes",
    "default_deserialization_exception_handler": "deserialization_exception_handler",
    "default_production_exception_handler": "production_exception_handler",
}
_HANDLER_NAMES: Mapping[str, object] = {
    "log_and_fail": log_and_fail,
    "log_and_continue": log_and_continue,
    "fail": fail_on_invalid_timestamp,
    "log_and_skip": log_and_skip_on_invalid_timestamp,
    "partition_time": use_partition_time_on_invalid_timestamp,
}


def _snake(name: str) -> str:
    plain = name.replace(".", "_").replace("-", "_")
    return _FORMER_NAMES.get(plain, plain)


def _suggestion(name: str) -> str:
    known = sorted(item.name for item in fields(StreamsConfig))
    near = difflib.get_close_matches(name, known, n=1)
    return f'did you mean "{near[0]}"?' if near else f"settings are {', '.join(known)}"


def _converted(name: str, value: object) -> object:
    """Convert a value: durations to milliseconds, strings to numbers and handlers."""
    if isinstance(value, timedelta):
        if not name.endswith("_ms"):
            raise StreamsConfigError(
                f'"{name}" is {value!r}', hint="this setting is not a duration"
            )
        return value // timedelta(milliseconds=1)
    if isinstance(value, Path):
        return str(value)
    if not isinstance(value, str):
        return value
    if name in _MINIMUMS:
        try:
            return int(value)
        except ValueError:
            raise StreamsConfigError(
                f'"{name}" is {value!r}', hint="it must be a whole number"
            ) from None
    if name in _HANDLERS:
        return _HANDLER_NAMES.get(value, value)
    if name == "ensure_explicit_internal_resource_naming":
        return value.lower() == "true"
    return value


def _check_application_id(application_id: str) -> None:
    if not _APPLICATION_ID.fullmatch(application_id):
        raise StreamsConfigError(
            f'"application_id" is "{application_id}"',
            hint="topic names start with it: use only letters, digits, '.', '_' and '-'",
        )


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        choices = ", ".join(f'"{choice}"' for choice in allowed)
        raise StreamsConfigError(f'"{name}" is {value!r}', hint=f"it must be one of {choices}")


def _whole_number(name: str, value: object, minimum: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise StreamsConfigError(f'"{name}" is {value!r}', hint="it must be a whole number")
    if value < minimum:
        raise StreamsConfigError(f'"{name}" is {value}', hint=f"it must be at least {minimum}")
