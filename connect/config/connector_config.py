"""The settings that every connector has, whatever its class: Kafka's groups, order and limits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from broker.java.patterns import compile_pattern
from connect.config_def import (
    CaseInsensitiveValidString,
    Check,
    ConfigDef,
    ConfigKey,
    ConfigType,
    ConfigValue,
    Importance,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    Range,
    Regex,
    ValidList,
    ValidString,
    Width,
    parse_type,
)
from connect.config_validators import shown, unique_entries
from connect.errors import ConfigError
from connect.plugin_finder import PluginFinder, PluginKind

COMMON = "Common"
TRANSFORMS = "Transforms"
PREDICATES = "Predicates"
ERRORS = "Error Handling"
TOPIC_CREATION = "Topic Creation"
EXACTLY_ONCE = "Exactly Once Support"
OFFSETS_TOPIC = "offsets.topic"


@dataclass(frozen=True, slots=True)
class WorkerConverters:
    """The worker's converters, the defaults of connectors."""

    key: str | None = None
    value: str | None = None
    header: str | None = None


def connector_definition(
    plugins: PluginFinder | None = None,
    connector_class: str | None = None,
    converters: WorkerConverters | None = None,
) -> ConfigDef:
    """The settings of both sources and sinks; with plugins, classes are validated."""
    converters = converters or WorkerConverters()
    definition = ConfigDef(find_class=None if plugins is None else class_finder(plugins))
    for key in (
        *_identity(plugins, connector_class),
        *_TASKS,
        *_converter("key", PluginKind.CONVERTER, converters.key, plugins),
        *_converter("value", PluginKind.CONVERTER, converters.value, plugins),
        *_converter("header", PluginKind.HEADER_CONVERTER, converters.header, plugins),
        *_ALIASES,
        *_ERROR_HANDLING,
    ):
        definition.add(key)
    return definition


def source_definition(
    plugins: PluginFinder | None = None,
    connector_class: str | None = None,
    converters: WorkerConverters | None = None,
) -> ConfigDef:
    """The settings of every source connector."""
    definition = connector_definition(plugins, connector_class, converters)
    for key in _SOURCE:
        definition.add(key)
    return definition


def sink_definition(
    plugins: PluginFinder | None = None,
    connector_class: str | None = None,
    converters: WorkerConverters | None = None,
) -> ConfigDef:
    """The settings of every sink connector."""
    definition = connector_definition(plugins, connector_class, converters)
    for key in _SINK:
        definition.add(key)
    return definition


def check_sink(config: Mapping[str, str | None], found: dict[str, ConfigValue]) -> None:
    """Add errors of a sink's topics, which depend on several settings."""
    topics, pattern = config.get("topics") or "", config.get("topics.regex") or ""
    dead_letters = (config.get("errors.deadletterqueue.topic.name") or "").strip()

    def add(error: str, *names: str) -> None:
        for name in names:
            found.setdefault(name, ConfigValue(name, config.get(name))).errors.append(error)

    if topics.strip() and pattern.strip():
        both = "topics and topics.regex are mutually exclusive options, but both are set."
        add(both, "topics", "topics.regex")
    if not topics.strip() and not pattern.strip():
        add("Must configure one of topics or topics.regex", "topics", "topics.regex")
    start = f"The DLQ topic '{dead_letters}' may not be"
    listed = sink_topics(config)
    if dead_letters and dead_letters in listed:
        where = f"included in the list of topics ('topics={shown(listed)}')"
        add(f"{start} {where} consumed by the connector", "topics")
    if dead_letters and pattern.strip() and _matches(pattern, dead_letters):
        where = f"matched by the regex for the topics ('topics.regex={pattern}')"
        add(f"{start} {where} consumed by the connector", "topics.regex")


def sink_topics(config: Mapping[str, str | None]) -> list[str]:
    """The topics of a sink, without duplicates."""
    return [topic for topic in dict.fromkeys(list_setting("topics", config)) if topic]


def list_setting(name: str, config: Mapping[str, str | None]) -> list[str]:
    """A list in a configuration that may not be valid yet; empty if it is missing."""
    listed = parse_type(name, config.get(name), ConfigType.LIST)
    return listed if isinstance(listed, list) else []


def _matches(pattern: str, topic: str) -> bool:
    try:
        return compile_pattern(pattern).fullmatch(topic) is not None
    except ValueError:
        return False  # the setting's own validator reports it


def _identity(plugins: PluginFinder | None, connector_class: str | None) -> list[ConfigKey]:
    version = None
    if plugins is not None and connector_class is not None:
        kinds = (PluginKind.SOURCE, PluginKind.SINK)
        version = next(filter(None, (plugins.version(k, connector_class) for k in kinds)), None)
    return [
        ConfigKey(
            "name",
            ConfigType.STRING,
            validator=NonEmptyStringWithoutControlChars(),
            importance=Importance.HIGH,
            doc="The name of this connector; it must be unique in the worker.",
            group=COMMON,
            order=1,
            width=Width.MEDIUM,
            display_name="Connector name",
        ),
        ConfigKey(
            "connector.class",
            ConfigType.STRING,
            importance=Importance.HIGH,
            doc="The class of this connector: the full Java class name, the name without "
            'the package, the name without the suffix "Connector", or '
            "package.module:Class of a Python class.",
            group=COMMON,
            order=2,
            width=Width.LONG,
            display_name="Connector class",
        ),
        ConfigKey(
            "connector.plugin.version",
            ConfigType.STRING,
            version,
            importance=Importance.MEDIUM,
            doc="The version of the connector. A worker has one version of each plugin, so "
            "this setting is accepted and ignored.",
            group=COMMON,
            order=3,
            width=Width.MEDIUM,
            display_name="Connector version",
        ),
    ]


_TASKS = (
    ConfigKey(
        "tasks.max",
        ConfigType.INT,
        1,
        Range(1),
        Importance.HIGH,
        "The maximum number of tasks of the connector.",
        COMMON,
        4,
        Width.SHORT,
        "Tasks max",
    ),
    ConfigKey(
        "tasks.max.enforce",
        ConfigType.BOOLEAN,
        True,
        importance=Importance.LOW,
        doc="Whether a connector fails if it generates more tasks than tasks.max "
        "allows; otherwise the tasks run and a warning is logged.",
        group=COMMON,
        order=5,
        width=Width.SHORT,
        display_name="Enforce tasks max",
    ),
)


def _converter(
    part: str, kind: PluginKind, default: str | None, plugins: PluginFinder | None
) -> list[ConfigKey]:
    name = f"{part}.converter"
    order = {"key": 6, "value": 8, "header": 10}[part]
    title = part.capitalize()
    known = default if plugins is not None else None
    version = None if plugins is None or known is None else plugins.version(kind, known)
    return [
        ConfigKey(
            name,
            ConfigType.CLASS,
            default,
            _plugin_class(kind, plugins),
            Importance.LOW,
            f"The converter between Connect's data and the bytes of {part}s in topics. "
            "The default is the worker's converter.",
            COMMON,
            order,
            Width.SHORT,
            f"{title} converter class",
            recommender=None if plugins is None else ClassRecommender(plugins, kind),
        ),
        ConfigKey(
            f"{name}.plugin.version",
            ConfigType.STRING,
            version,
            importance=Importance.LOW,
            doc=f"The version of the {part} converter; accepted and ignored.",
            group=COMMON,
            order=order + 1,
            width=Width.SHORT,
            display_name=f"{title} converter version",
            recommender=None if plugins is None else VersionRecommender(plugins, kind, name),
        ),
    ]


_INTERFACES = {
    PluginKind.CONVERTER: "Converter",
    PluginKind.HEADER_CONVERTER: "HeaderConverter",
    PluginKind.TRANSFORMATION: "Transformation",
    PluginKind.PREDICATE: "Predicate",
}


def _plugin_class(kind: PluginKind, plugins: PluginFinder | None) -> Check:
    def ensure_kind(name: str, value: object) -> None:
        if value is not None and plugins is not None:
            ensure_plugin(plugins, kind, str(value))

    interface = f"org.apache.kafka.connect.storage.{_INTERFACES[kind]}"
    constructor = "A class with a public, no-argument constructor"
    return Check(ensure_kind, f"A concrete subclass of {interface}, {constructor}")


def class_finder(plugins: PluginFinder) -> Callable[[str], str | None]:
    """Returns the full name of a plugin, or of a family of plugins: Cast, of Cast$Key."""

    def find(name: str) -> str | None:
        full_names = (each for kind in PluginKind for each in plugins.class_names(kind))
        is_family = any(each.startswith(f"{name}$") for each in full_names)
        return name if is_family else plugins.class_name(name)

    return find


def ensure_plugin(plugins: PluginFinder, kind: PluginKind, name: str) -> type:
    """The class of a plugin; ConfigError if it is of another kind or a family of plugins."""
    found = plugins.find(kind, name)
    if found is not None:
        return found
    members = [each for each in plugins.class_names(kind) if each.startswith(f"{name}$")]
    if members:
        meant = ", ".join(members)
        raise ConfigError(f"This class is abstract and cannot be created. Did you mean {meant}?")
    raise ConfigError(f"Class class {name} does not implement the {_INTERFACES[kind]} interface")


@dataclass(frozen=True, slots=True)
class ClassRecommender:
    """Recommends all plugins of a kind."""

    plugins: PluginFinder
    kind: PluginKind

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> Sequence[object]:
        """The names of the plugins."""
        return self.plugins.class_names(self.kind)

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        """Always visible."""
        return True


@dataclass(frozen=True, slots=True)
class VersionRecommender:
    """Recommends the version of the plugin that another setting names."""

    plugins: PluginFinder
    kind: PluginKind
    class_setting: str
    only_with_class: bool = True

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> Sequence[object]:
        """The only version of the plugin."""
        chosen = parsed.get(self.class_setting)
        version = None if chosen is None else self.plugins.version(self.kind, str(chosen))
        return [] if version is None else [version]

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        """Whether the plugin is set, for converters; others are always visible."""
        return not self.only_with_class or parsed.get(self.class_setting) is not None


_ALIASES = (
    ConfigKey(
        "transforms",
        ConfigType.LIST,
        [],
        unique_entries("transformation aliases"),
        Importance.LOW,
        "Names of the transforms that are applied to every record, in this order; "
        "the settings of each have the prefix transforms.NAME.",
        TRANSFORMS,
        12,
        Width.LONG,
        "Transforms",
    ),
    ConfigKey(
        "predicates",
        ConfigType.LIST,
        [],
        unique_entries("predicate aliases"),
        Importance.LOW,
        "Names of the predicates that transforms use; the settings of each have "
        "the prefix predicates.NAME.",
        PREDICATES,
        13,
        Width.LONG,
        "Predicates",
    ),
    ConfigKey(
        "config.action.reload",
        ConfigType.STRING,
        "restart",
        ValidString("none", "restart"),
        Importance.LOW,
        "What to do when a value from a configuration provider changes: restart "
        "the connector, or nothing.",
        COMMON,
        14,
        Width.MEDIUM,
        "Reload Action",
    ),
)


_ERROR_HANDLING = (
    ConfigKey(
        "errors.retry.timeout",
        ConfigType.LONG,
        0,
        importance=Importance.MEDIUM,
        doc="The maximum time in milliseconds for which a failed operation is retried; "
        "0 for no retries, -1 for no limit.",
        group=ERRORS,
        order=1,
        width=Width.MEDIUM,
        display_name="Retry Timeout for Errors",
    ),
    ConfigKey(
        "errors.retry.delay.max.ms",
        ConfigType.LONG,
        60_000,
        importance=Importance.MEDIUM,
        doc="The maximum time in milliseconds between two retries.",
        group=ERRORS,
        order=2,
        width=Width.MEDIUM,
        display_name="Maximum Delay Between Retries for Errors",
    ),
    ConfigKey(
        "errors.tolerance",
        ConfigType.STRING,
        "none",
        ValidString("none", "all"),
        Importance.MEDIUM,
        "What to do with a record that cannot be converted or transformed: none "
        "fails the task, all skips the record.",
        ERRORS,
        3,
        Width.SHORT,
        "Error Tolerance",
    ),
    ConfigKey(
        "errors.log.enable",
        ConfigType.BOOLEAN,
        False,
        importance=Importance.MEDIUM,
        doc="Whether tolerated errors are also written to the worker's log.",
        group=ERRORS,
        order=4,
        width=Width.SHORT,
        display_name="Log Errors",
    ),
    ConfigKey(
        "errors.log.include.messages",
        ConfigType.BOOLEAN,
        False,
        importance=Importance.MEDIUM,
        doc="Whether the log includes the failed record: its key, value and headers.",
        group=ERRORS,
        order=5,
        width=Width.SHORT,
        display_name="Log Error Details",
    ),
)


def _at_least_zero(name: str, value: object) -> None:
    if value is not None:
        Range(0).ensure_valid(name, value)


_SOURCE = (
    ConfigKey(
        "topic.creation.groups",
        ConfigType.LIST,
        [],
        unique_entries("topic creation groups"),
        Importance.LOW,
        "Names of groups of topics that the worker creates with separate settings, "
        "which have the prefix topic.creation.GROUP.",
        TOPIC_CREATION,
        1,
        Width.LONG,
        "Topic Creation Groups",
    ),
    ConfigKey(
        "exactly.once.support",
        ConfigType.STRING,
        "requested",
        CaseInsensitiveValidString("required", "requested"),
        Importance.MEDIUM,
        "required refuses the configuration unless the connector supports "
        "exactly-once delivery with it and the worker has exactly-once support "
        "enabled; requested does not check this.",
        EXACTLY_ONCE,
        2,
        Width.SHORT,
        "Exactly once support",
    ),
    ConfigKey(
        "transaction.boundary",
        ConfigType.STRING,
        "poll",
        CaseInsensitiveValidString("interval", "poll", "connector"),
        Importance.MEDIUM,
        "When an exactly-once source commits a transaction: poll after every batch "
        "of a task, interval after a time interval, connector when the connector "
        "decides.",
        EXACTLY_ONCE,
        3,
        Width.SHORT,
        "Transaction Boundary",
    ),
    ConfigKey(
        "transaction.boundary.interval.ms",
        ConfigType.LONG,
        None,
        Check(_at_least_zero, "[0,...]"),
        Importance.LOW,
        "With transaction.boundary=interval, the time in milliseconds between two "
        "commits of transactions. The default is the worker's "
        "offset.flush.interval.ms.",
        EXACTLY_ONCE,
        4,
        Width.SHORT,
        "Transaction boundary interval",
    ),
    ConfigKey(
        "offsets.storage.topic",
        ConfigType.STRING,
        None,
        NonEmptyString(),
        Importance.LOW,
        "A separate topic for the offsets of this connector, created if it does "
        "not exist. Only for distributed workers.",
        OFFSETS_TOPIC,
        1,
        Width.LONG,
        "Offsets topic",
    ),
)


_SINK = (
    ConfigKey(
        "topics",
        ConfigType.LIST,
        [],
        ValidList(),
        Importance.HIGH,
        "The topics to read, separated by commas.",
        COMMON,
        4,
        Width.LONG,
        "Topics",
    ),
    ConfigKey(
        "topics.regex",
        ConfigType.STRING,
        "",
        Regex(),
        Importance.HIGH,
        "A Java regular expression: all topics whose whole name matches are read. "
        "Cannot be combined with topics.",
        COMMON,
        4,
        Width.LONG,
        "Topics regex",
    ),
    ConfigKey(
        "errors.deadletterqueue.topic.name",
        ConfigType.STRING,
        "",
        importance=Importance.MEDIUM,
        doc="The topic for records that failed and were skipped; empty for no dead letter queue.",
        group=ERRORS,
        order=6,
        width=Width.MEDIUM,
        display_name="Dead Letter Queue Topic Name",
    ),
    ConfigKey(
        "errors.deadletterqueue.topic.replication.factor",
        ConfigType.SHORT,
        3,
        importance=Importance.MEDIUM,
        doc="The replication factor of the dead letter queue topic if the worker creates it.",
        group=ERRORS,
        order=7,
        width=Width.MEDIUM,
        display_name="Dead Letter Queue Topic Replication Factor",
    ),
    ConfigKey(
        "errors.deadletterqueue.context.headers.enable",
        ConfigType.BOOLEAN,
        False,
        importance=Importance.MEDIUM,
        doc="Whether failed records get headers with the place and the reason of the "
        "failure; their names begin with __connect.errors.",
        group=ERRORS,
        order=8,
        width=Width.MEDIUM,
        display_name="Enable Error Context Headers",
    ),
)
