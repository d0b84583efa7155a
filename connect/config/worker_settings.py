"""The settings of a worker as declarations: Kafka Connect's names and defaults."""

from connect.config_def import (
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
    Range,
    ValidString,
)

SIMPLE_HEADER_CONVERTER = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
REPLICATION_DOC = (
    "The replication factor of the topic, at most the number of brokers; -1 "
    "for the broker's default."
)


def common_settings() -> ConfigDef:
    """The settings of all workers."""
    settings = ConfigDef()
    settings.define(
        "bootstrap.servers",
        ConfigType.STRING,
        "localhost:9092",
        validator=NonEmptyString(),
        importance=Importance.HIGH,
        doc="The brokers for the first connection, as host:port,host:port.",
    )
    for name, what in (("key.converter", "keys"), ("value.converter", "values")):
        settings.define(
            name,
            ConfigType.CLASS,
            importance=Importance.HIGH,
            doc=f"The converter for {what} of records, unless a connector overrides it.",
        )
    settings.define(
        "header.converter",
        ConfigType.CLASS,
        SIMPLE_HEADER_CONVERTER,
        importance=Importance.LOW,
        doc="The converter for headers, unless a connector overrides it.",
    )
    for name, default, what in (
        ("offset.flush.interval.ms", 60_000, "The interval of offset commits"),
        ("offset.flush.timeout.ms", 5_000, "The maximum time of an offset commit"),
        ("task.shutdown.graceful.timeout.ms", 5_000, "The maximum time for all tasks to stop"),
    ):
        settings.define(
            name,
            ConfigType.LONG,
            default,
            validator=Range(0),
            importance=Importance.LOW,
            doc=f"{what}, in milliseconds.",
        )
    _define_plugins(settings)
    _define_rest(settings)
    for name, what in (
        ("topic.tracking.enable", "Whether the topics that connectors use are tracked."),
        ("topic.tracking.allow.reset", "Whether the tracked topics may be reset."),
        ("topic.creation.enable", "Whether source connectors may configure new topics."),
    ):
        settings.define(name, ConfigType.BOOLEAN, True, importance=Importance.LOW, doc=what)
    settings.define(
        "connector.client.config.override.policy",
        ConfigType.STRING,
        "All",
        importance=Importance.MEDIUM,
        doc="Which client settings a connector may override: All, None, Principal or Allowlist.",
    )
    settings.define(
        "config.providers",
        ConfigType.LIST,
        "",
        importance=Importance.LOW,
        doc="The names of the config providers that references may use.",
    )
    return settings


def _define_plugins(settings: ConfigDef) -> None:
    """Allowed plugins, and the files that they may open."""
    settings.define(
        "plugin.modules",
        ConfigType.LIST,
        "",
        importance=Importance.MEDIUM,
        doc="Python modules and packages whose classes may be used as plugins, in "
        "addition to entry points.",
    )
    settings.define(
        "connector.allowed.paths",
        ConfigType.LIST,
        "",
        importance=Importance.MEDIUM,
        doc="The directories in which connectors may open files. The default is the "
        "working directory.",
    )


def _define_rest(settings: ConfigDef) -> None:
    settings.define(
        "listeners",
        ConfigType.LIST,
        "http://:8083",
        importance=Importance.LOW,
        doc="The addresses of the REST API; HTTP only. Without a host it listens on "
        "all interfaces.",
    )
    settings.define(
        "rest.advertised.host.name",
        ConfigType.STRING,
        None,
        importance=Importance.LOW,
        doc="The host name in this worker's id. The default is that of the first listener.",
    )
    settings.define(
        "rest.advertised.port",
        ConfigType.INT,
        None,
        importance=Importance.LOW,
        doc="The port in this worker's id. The default is that of the first listener.",
    )
    settings.define(
        "rest.allowed.hosts",
        ConfigType.LIST,
        "",
        importance=Importance.LOW,
        doc="Additional host names under which clients may reach the REST API; * allows any.",
    )


def standalone_settings() -> ConfigDef:
    """The settings of standalone workers only."""
    return ConfigDef(common_settings().keys.values()).define(
        "offset.storage.file.filename",
        ConfigType.STRING,
        validator=NonEmptyString(),
        importance=Importance.HIGH,
        doc="The JSON file for the offsets of source connectors.",
    )


def distributed_settings() -> ConfigDef:
    """The settings of distributed workers only."""
    settings = ConfigDef(common_settings().keys.values()).define(
        "group.id",
        ConfigType.STRING,
        importance=Importance.HIGH,
        doc="The name of the Connect cluster. It has one worker; a second one is refused.",
    )
    for name, default, what in (
        ("session.timeout.ms", 10_000, "The session timeout of the worker's group membership."),
        ("heartbeat.interval.ms", 3_000, "The interval of the worker's heartbeats."),
        ("rebalance.timeout.ms", 60_000, "The maximum time of a rebalance of the group."),
    ):
        settings.define(
            name, ConfigType.INT, default, validator=Range(1), importance=Importance.LOW, doc=what
        )
    for name, what in (
        ("config.storage", "the configurations of connectors and tasks"),
        ("offset.storage", "the offsets of source connectors"),
        ("status.storage", "the states of connectors and tasks"),
    ):
        settings.define(
            f"{name}.topic",
            ConfigType.STRING,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            doc=f"The topic for {what}.",
        )
        settings.define(
            f"{name}.replication.factor",
            ConfigType.SHORT,
            3,
            validator=Range(-1),
            importance=Importance.LOW,
            doc=REPLICATION_DOC,
        )
    for name, count in (("offset.storage.partitions", 25), ("status.storage.partitions", 5)):
        settings.define(
            name,
            ConfigType.INT,
            count,
            validator=Range(-1),
            importance=Importance.LOW,
            doc="The number of partitions of a new topic; -1 for the broker's default.",
        )
    return settings.define(
        "exactly.once.source.support",
        ConfigType.STRING,
        "disabled",
        validator=ValidString("disabled", "preparing", "enabled"),
        importance=Importance.HIGH,
        doc="Whether source connectors write records and offsets in one transaction.",
    )


# Settings that only Kafka Connect uses: files with them are accepted. Some are for several workers,
# others for the JVM's class loaders.
IGNORED = frozenset(
    {
        "access.control.allow.methods",
        "access.control.allow.origin",
        "auto.include.jmx.reporter",
        "client.dns.lookup",
        "connect.protocol",
        "inter.worker.key.generation.algorithm",
        "inter.worker.key.size",
        "inter.worker.key.ttl.ms",
        "inter.worker.signature.algorithm",
        "inter.worker.verification.algorithms",
        "key.converter.plugin.version",
        "value.converter.plugin.version",
        "header.converter.plugin.version",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "plugin.discovery",
        "plugin.path",
        "response.http.headers.config",
        "rest.advertised.listener",
        "scheduled.rebalance.max.delay.ms",
        "worker.sync.timeout.ms",
        "worker.unsync.backoff.ms",
    }
)
# Settings that protect the REST API of Kafka Connect, by itself or in Confluent's packages.
PROTECTING = frozenset(
    {
        "admin.listeners",
        "authentication.method",
        "authentication.roles",
        "authentication.realm",
        "rest.extension.classes",
        "ssl.client.auth",
        "ssl.client.authentication",
    }
)
# Settings with these prefixes are for a converter, a client, a topic or a provider.
PREFIXES = (
    "admin.",
    "config.providers.",
    "config.storage.",
    "connector.client.config.",
    "consumer.",
    "header.converter.",
    "key.converter.",
    "listeners.https.",
    "offset.storage.",
    "producer.",
    "status.storage.",
    "value.converter.",
)
