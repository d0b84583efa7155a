"""Options of the "millstream" source and sink: strings, parsed and validated once.

Names are not case-sensitive, as in Spark. Settings of the clients have the prefix
"kafka." and Kafka's names, with dots or underscores.
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Protocol

from broker.client.config import (
    ClusterConfig,
    NetworkConfig,
    ProducerConfig,
    one_of,
    parse_servers,
    refuse_unknown,
)
from broker.client.consumer_config import ConsumerConfig
from broker.errors import ConfigError
from broker.linear_patterns import compile_pattern
from broker.model import TopicPartition
from sql.backends.spark.offsets import of_text

EARLIEST = "earliest"
LATEST = "latest"
EXACTLY_ONCE = "exactly_once"
AT_LEAST_ONCE = "at_least_once"
PREFIX = "kafka."
SERVERS = ("bootstrap_servers", "kafka.bootstrap_servers", "kafka.bootstrap.servers")
SPARK_OWN = frozenset({"checkpointlocation", "path", "queryname"})  # options for Spark itself
DECIDED_HERE = frozenset(
    {
        "group_id",
        "enable_auto_commit",
        "auto_offset_reset",
        "isolation_level",
        "transactional_id",
        "enable_idempotence",
        "allow_auto_create_topics",
    }
)
SOURCE_NAMES = (
    "topics",
    "topic_pattern",
    "starting_offsets",
    "starting_timestamp",
    "ending_offsets",
    "ending_timestamp",
    "max_offsets_per_trigger",
    "min_partitions",
    "tasks",
    "group_id",
    "isolation_level",
    "fail_on_data_loss",
    "include_headers",
    "stage",
    "packing",
    "purged_topics",
)
MICRO_BATCH = frozenset({"batch_id", "query_id", "sink_id"})
SINK_NAMES = ("topic", "delivery", "sink_id", "query_id", "batch_id", "packing")
# A task writes its part of a micro-batch in one transaction, which may take five minutes.
OFFSETS_PER_TRIGGER = 500_000

Where = str | int | Mapping[TopicPartition, int]  # earliest or latest, a time in ms, or offsets


class SparkOptions(Protocol):
    """Options as Spark passes them: a dict that ignores the case of names."""

    def items(self) -> Iterable[tuple[str, str]]:
        """All options."""
        ...


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a reader."""

    servers: str
    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None
    starting: Where = LATEST
    ending: Where = LATEST
    max_offsets_per_trigger: int = OFFSETS_PER_TRIGGER  # 0: no limit
    min_partitions: int = 0
    tasks: int = 0
    group_id: str | None = None
    isolation_level: str = "read_committed"
    fail_on_data_loss: bool = True
    include_headers: bool = True
    stage: str | None = None  # the stage to run on records where they are read, see stages.py
    keeps_packing: bool = True  # in the checkpoint; the sink of a SQL query checks its own packing
    purged_topics: tuple[str, ...] = ()  # repartition topics, whose records are deleted once read
    client: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The options of a writer."""

    servers: str
    topic: str | None = None
    delivery: str = EXACTLY_ONCE
    sink_id: str | None = None
    client: Mapping[str, object] = field(default_factory=dict)
    # The micro-batch of a bounded result; it is written once, even if it is repeated.
    query_id: str | None = None
    batch_id: int | None = None
    # The packing of rows into tasks, if the query knows it; see transactions.py.
    packing: str | None = None


def source_options(given: SparkOptions, *, streaming: bool) -> SourceOptions:
    """Parse the options of a source."""
    options = _lowered(given)
    servers = _servers(options)
    client = _client(options, NetworkConfig, ClusterConfig, ConsumerConfig)
    _refuse_others(options, SOURCE_NAMES)
    topics, pattern = _topics(options)
    if streaming and ("ending_offsets" in options or "ending_timestamp" in options):
        raise ConfigError(
            "a stream has no end", hint='"ending_offsets" and "ending_timestamp" are for spark.read'
        )
    isolation = options.get("isolation_level", "read_committed")
    one_of("isolation_level", isolation, ("read_committed", "read_uncommitted"))
    return SourceOptions(
        servers,
        topics,
        pattern,
        starting=_where(options, "starting", LATEST if streaming else EARLIEST),
        ending=_where(options, "ending", LATEST),
        max_offsets_per_trigger=_offsets_per_trigger(options),
        min_partitions=_number(options, "min_partitions"),
        tasks=_number(options, "tasks"),
        group_id=options.get("group_id") or None,
        isolation_level=isolation,
        fail_on_data_loss=_truth(options, "fail_on_data_loss"),
        include_headers=_truth(options, "include_headers"),
        stage=options.get("stage") or None,
        keeps_packing="packing" not in options,
        purged_topics=tuple(filter(None, options.get("purged_topics", "").split(","))),
        client=client,
    )


def sink_options(given: SparkOptions) -> SinkOptions:
    """Parse the options of a sink."""
    options = _lowered(given)
    servers = _servers(options)
    client = _client(options, NetworkConfig, ClusterConfig, ProducerConfig)
    _refuse_others(options, SINK_NAMES)
    delivery = options.get("delivery", EXACTLY_ONCE)
    one_of("delivery", delivery, (EXACTLY_ONCE, AT_LEAST_ONCE))
    if ("batch_id" in options or "query_id" in options) and not set(options) >= MICRO_BATCH:
        raise ConfigError(
            "the options do not identify the micro-batch",
            hint='set "batch_id", "query_id" and "sink_id" together',
        )
    return SinkOptions(
        servers,
        options.get("topic") or None,
        delivery,
        options.get("sink_id") or None,
        client,
        options.get("query_id") or None,
        _as_number("batch_id", options["batch_id"]) if "batch_id" in options else None,
        options.get("packing") or None,
    )


def _lowered(given: SparkOptions) -> dict[str, str]:
    return {name.lower(): value for name, value in given.items() if name.lower() not in SPARK_OWN}


def _servers(options: dict[str, str]) -> str:
    named = [name for name in SERVERS if name in options]
    if not named:
        raise ConfigError('"bootstrap_servers" is missing', hint='set it to "host:port,host:port"')
    servers = options[named[0]]
    for name in named:
        del options[name]
    parse_servers(servers)
    return servers


def _client(options: dict[str, str], *configs: type[object]) -> dict[str, object]:
    """Settings with the prefix, converted to the types of their defaults."""
    # Each class is a dataclass, which mypy does not know for type[object].
    known = {item.name: item for config in configs for item in fields(config)}  # type: ignore[arg-type]
    result: dict[str, object] = {}
    for name in [name for name in options if name.startswith(PREFIX)]:
        text = options.pop(name)
        setting = name.removeprefix(PREFIX).replace(".", "_")
        if setting in DECIDED_HERE:
            raise ConfigError(
                f'"{name}" cannot be set here', hint=f'the data source sets "{setting}"'
            )
        if setting not in known:
            refuse_unknown({setting: text}, *configs)
        default = known[setting].default
        result[setting] = _typed(name, text, default)
    return result


def _typed(name: str, text: str, default: object) -> object:
    if isinstance(default, bool):
        return _as_truth(name, text)
    if isinstance(default, int):
        return _as_number(name, text)
    return text.split(",") if isinstance(default, tuple) else text


def _refuse_others(options: Mapping[str, str], names: tuple[str, ...]) -> None:
    for name in options:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f'did you mean "{near[0]}"?' if near else f"options are {', '.join(names)}"
            raise ConfigError(f'unknown option "{name}"', hint=hint)


def _topics(options: Mapping[str, str]) -> tuple[tuple[str, ...], str | None]:
    pattern = options.get("topic_pattern")
    if (pattern is None) == ("topics" not in options):
        raise ConfigError(
            "the topics to read are not set, or set twice",
            hint='set either "topics" or "topic_pattern"',
        )
    if pattern is not None:
        try:
            compile_pattern(pattern)
        except re.error as error:
            raise ConfigError(
                f'"topic_pattern" {pattern!r} is not a valid pattern: {error}'
            ) from error
        return (), pattern
    text = options["topics"].strip()
    names: object = text.split(",")
    if text.startswith("["):
        try:
            names = json.loads(text)
        except ValueError as error:
            raise ConfigError(f'"topics" is not a JSON list: {error}') from error
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise ConfigError(f'"topics" is {text!r}', hint='use the form "a,b" or ["a", "b"]')
    topics = tuple(dict.fromkeys(each.strip() for each in names if each.strip()))
    if not topics:
        raise ConfigError('"topics" names no topic', hint='use the form "a,b" or ["a", "b"]')
    return topics, None


def _where(options: Mapping[str, str], which: str, otherwise: str) -> Where:
    """The position of starting_... or ending_... options."""
    offsets, time = f"{which}_offsets", f"{which}_timestamp"
    if offsets in options and time in options:
        raise ConfigError(f'"{offsets}" and "{time}" are both given', hint="leave one out")
    if time in options:
        return _number(options, time)
    text = options.get(offsets, otherwise).strip()
    if text.lower() in (EARLIEST, LATEST):
        return text.lower()
    return of_text(text, offsets, least=-2)


def _number(options: Mapping[str, str], name: str) -> int:
    if name not in options:
        return 0
    number = _as_number(name, options[name])
    if number < 1:
        raise ConfigError(f'"{name}" is {number}', hint="it must be at least 1")
    return number


def _offsets_per_trigger(options: Mapping[str, str]) -> int:
    """The limit of a micro-batch; 0 must be explicit: its transaction may time out."""
    name = "max_offsets_per_trigger"
    number = _as_number(name, options.get(name, str(OFFSETS_PER_TRIGGER)))
    if number < 0:
        raise ConfigError(f'"{name}" is {number}', hint="use a number, or 0 for no limit")
    return number


def _as_number(name: str, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", text.strip()):
        raise ConfigError(f'"{name}" is {text!r}', hint="use an integer")
    return int(text)


def _truth(options: Mapping[str, str], name: str) -> bool:
    return _as_truth(name, options.get(name, "true"))


def _as_truth(name: str, text: str) -> bool:
    one_of(name, text.lower(), ("true", "false"))
    return text.lower() == "true"


def of_admin(settings: Mapping[str, object], config: type[object]) -> dict[str, object]:
    """Settings of a client without those of its own kind: the settings of an admin client."""
    own = {item.name for item in fields(config)}  # type: ignore[arg-type] # as in _client
    return {name: value for name, value in settings.items() if name not in own}
