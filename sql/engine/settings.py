"""SqlConfig: settings of a server, with ksqlDB's names and defaults; sessions override some."""

import difflib
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from sql.backends.spark.options import OFFSETS_PER_TRIGGER
from sql.backends.spark.per_batch_rules import PER_BATCH, PER_RECORD, SETTING
from sql.engine.streams_settings import WITHOUT_EFFECT, for_streams, is_of_streams
from sql.engine.unused_settings import UNUSED
from sql.errors import StatementFailed
from streams.runtime.shared_runtime import RUNNER_THREADS

STREAMS_PREFIX = "ksql.streams."
SPARK_PREFIX = "spark."

NATIVE = "native"
SPARK = "spark"
ENGINES = (NATIVE, SPARK)
CHOICES = {
    "engine": ENGINES,
    "spark.connector": ("auto", "millstream", "kafka"),
    "spark.expressions": ("python", "spark"),
    SETTING: (PER_RECORD, PER_BATCH),
}
# Settings that restrict access to ksqlDB, and the values that disable them.
PROTECTING: Mapping[str, tuple[str, ...]] = {
    "ksql.authentication.plugin.class": ("",),
    "ksql.access.validator.enable": ("auto", "off"),
}

# Settings that a session may override with SET, and their defaults. None: no default.
EDITABLE: Mapping[str, object] = {
    "engine": NATIVE,  # the engine of persistent queries
    SETTING: PER_RECORD,  # whether Spark emits each change, or only the last one per batch
    "spark.trigger.ms": 0,  # the interval between batches; 0: start when the last has ended
    "spark.connector": "auto",  # reads topics: Spark's if it is available, or Millstream's
    "spark.expressions": "python",  # where filters and projections are computed; see stateless.py
    # The maximum size of a batch; 0: no limit. A batch must complete within a transaction.
    "spark.max.offsets.per.trigger": OFFSETS_PER_TRIGGER,
    "ksql.persistence.default.format.key": "KAFKA",
    "ksql.persistence.default.format.value": None,
    # Unset: the format's default, which differs from an explicit "true".
    "ksql.persistence.wrap.single.values": None,
    "ksql.output.topic.name.prefix": "",
    "ksql.create.or.replace.enabled": True,
    "ksql.fail.on.deserialization.error": False,
    "ksql.fail.on.production.error": True,
    "ksql.timestamp.throw.on.invalid": False,
    "ksql.headers.columns.enabled": True,
    "ksql.insert.into.values.enabled": True,
    "ksql.lambdas.enabled": True,
    "ksql.suppress.enabled": True,
    "ksql.suppress.buffer.size.bytes": -1,
    "ksql.variable.substitution.enable": True,
    "ksql.query.pull.table.scan.enabled": True,
    "ksql.query.pull.range.scan.enabled": True,
    "ksql.query.pull.stream.enabled": True,
    "ksql.query.pull.interpreter.enabled": True,
    "ksql.query.pull.enable.standby.reads": False,
    "ksql.query.pull.max.allowed.offset.lag": (1 << 63) - 1,
    "ksql.query.pull.consistency.token.enabled": False,
    "ksql.query.pull.limit.clause.enabled": True,
    "ksql.query.pull.forwarding.timeout.ms": 20_000,
    "ksql.query.push.v2.enabled": False,
    "ksql.query.push.v2.alos.enabled": True,
    "ksql.query.push.v2.continuation.tokens.enabled": False,
    "ksql.query.push.v2.interpreter.enabled": True,
    "ksql.query.push.v2.new.latest.delay.ms": 5_000,
    "ksql.assert.topic.default.timeout.ms": 1_000,
    "ksql.assert.schema.default.timeout.ms": 1_000,
    "ksql.websocket.connection.max.timeout.ms": 0,
    "ksql.stream.stream.within.enabled": True,
    "ksql.new.query.planner.enabled": False,
    "ksql.rowpartition.rowoffset.enabled": True,
    "ksql.cast.strings.preserve.nulls": True,
    "ksql.nested.error.set.null": True,
    "ksql.json_sr.converter.deserializer.enabled": True,
}
# Settings that are booleans when set; a default of None does not show it.
UNSET_FLAGS = frozenset({"ksql.persistence.wrap.single.values"})
# Settings that are fixed when the server starts.
FIXED: Mapping[str, object] = {
    "ksql.service.id": "default_",
    "ksql.internal.topic.replicas": -1,
    "ksql.internal.topic.min.insync.replicas": 1,
    "ksql.queries.file": None,
    "ksql.schema.registry.url": "",
    "ksql.connect.url": "",
    "ksql.extension.dir": "ext",
    "ksql.udfs.enabled": True,
    "ksql.udf.collect.metrics": False,
    "ksql.query.persistent.active.limit": (1 << 31) - 1,
    "ksql.max.push.queries": 100,
    "ksql.query.pull.max.qps": (1 << 31) - 1,
    "ksql.query.pull.max.concurrent.requests": (1 << 31) - 1,
    "ksql.query.pull.max.hourly.bandwidth.megabytes": (1 << 31) - 1,
    "ksql.query.push.buffer.rows": 1_000,
    "ksql.query.push.v2.registry.installed": False,
    "ksql.query.push.v2.max.hourly.bandwidth.megabytes": (1 << 31) - 1,
    "ksql.query.retry.backoff.initial.ms": 15_000,
    "ksql.query.retry.backoff.max.ms": 900_000,
    "ksql.query.error.max.queue.size": 10,
    "ksql.query.cleanup.shutdown.timeout.ms": 30_000,
    "ksql.hidden.topics": "_confluent.*,__confluent.*,_schemas,__consumer_offsets,"
    "__transaction_state,connect-configs,connect-offsets,connect-status,connect-statuses",
    "ksql.readonly.topics": "_confluent.*,__confluent.*,_schemas,__consumer_offsets,"
    "__transaction_state,connect-configs,connect-offsets,connect-status,connect-statuses",
    "ksql.properties.overrides.denylist": "",
    "ksql.metastore.backup.location": "",
    "ksql.heartbeat.enable": False,
    "ksql.heartbeat.send.interval.ms": 100,
    "ksql.heartbeat.window.ms": 2_000,
    "ksql.heartbeat.missed.threshold.ms": 3,
    "ksql.lag.reporting.enable": False,
    "ksql.shutdown.timeout.ms": 300_000,
    "ksql.idle.connection.timeout.seconds": 600,
    "ksql.runtime.feature.shared.enabled": True,
    "ksql.runtime.threads": RUNNER_THREADS,
    "ksql.server.command.response.timeout.ms": 5_000,
    "ksql.server.error.messages": "",
    "ksql.logging.processing.topic.auto.create": False,
    "ksql.logging.processing.stream.auto.create": False,
    "ksql.logging.processing.topic.name": "",
    "ksql.logging.processing.topic.partitions": 1,
    "ksql.logging.processing.topic.replication.factor": -1,
    "ksql.logging.processing.stream.name": "KSQL_PROCESSING_LOG",
    "ksql.logging.processing.rows.include": False,
    "ksql.access.validator.enable": "auto",
    "ksql.authentication.plugin.class": "",
    "ksql.advertised.listener": "",
    # Millstream's own: additional names of the server for clients, separated by commas.
    "ksql.allowed.hosts": "",
    "listeners": "http://0.0.0.0:8088",
    # Any other setting of Spark is passed to the session unchanged.
    "spark.master": "auto",
    "spark.bounded": False,
    "spark.checkpoints": "",
}
# Settings of topologies; sessions may override them, with or without the prefix "ksql.streams.".
STREAMS_DEFAULTS: Mapping[str, object] = {
    "auto.offset.reset": "latest",
    "cache.max.bytes.buffering": 10 * 1024 * 1024,
    "commit.interval.ms": 2_000,
    # ksqlDB has 4, but threads of one Python process share one core.
    "num.stream.threads": 1,
    "processing.guarantee": "at_least_once",
}
# The results of a query depend on these settings, so it keeps those of its statement. All others
# affect how a server works, and apply to the queries that run on it.
QUERY_SETTINGS = frozenset(
    {
        "spark.expressions",
        SETTING,
        "ksql.persistence.default.format.key",
        "ksql.persistence.default.format.value",
        "ksql.persistence.wrap.single.values",
        "ksql.output.topic.name.prefix",
        "ksql.fail.on.deserialization.error",
        "ksql.fail.on.production.error",
        "ksql.timestamp.throw.on.invalid",
        "ksql.headers.columns.enabled",
        "ksql.lambdas.enabled",
        "ksql.suppress.enabled",
        "ksql.suppress.buffer.size.bytes",
        "ksql.stream.stream.within.enabled",
        "ksql.new.query.planner.enabled",
        "ksql.rowpartition.rowoffset.enabled",
        "ksql.cast.strings.preserve.nulls",
        "ksql.nested.error.set.null",
        "ksql.json_sr.converter.deserializer.enabled",
        "auto.offset.reset",
        "processing.guarantee",
        "max.task.idle.ms",
        "topology.optimization",
        "default.timestamp.extractor",
        "windowstore.changelog.additional.retention.ms",
        "consumer.isolation.level",
        "main.consumer.isolation.level",
        "consumer.auto.offset.reset",
        "main.consumer.auto.offset.reset",
    }
)
FUNCTIONS_PREFIX = "ksql.functions."
NOT_OF_SESSIONS = frozenset({"application.id", "state.dir", "bootstrap.servers", "client.id"})


class SqlConfig(Mapping[str, object]):
    """The settings of a server, possibly overridden; unknown names are refused.

    >>> SqlConfig({"ksql.service.id": "shop_"})["ksql.service.id"]
    'shop_'
    """

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        """Settings by name; strings are converted to the setting's type."""
        self._given = {
            plain_name(name): converted(name, value) for name, value in (values or {}).items()
        }
        if self._given.get("spark.bounded"):  # read all history by default
            self._given.setdefault("auto.offset.reset", "earliest")

    def __getitem__(self, name: str) -> object:
        """The value of a setting; settings of streams without the prefix."""
        if name in self._given:
            return self._given[name]
        for defaults in (EDITABLE, FIXED, STREAMS_DEFAULTS):
            if name in defaults:
                return defaults[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        """All names with a value or a default."""
        return iter(sorted({*EDITABLE, *FIXED, *STREAMS_DEFAULTS, *self._given}))

    def __len__(self) -> int:
        """The number of names."""
        return len({*EDITABLE, *FIXED, *STREAMS_DEFAULTS, *self._given})

    @property
    def given(self) -> Mapping[str, object]:
        """The given settings, without defaults."""
        return self._given

    def alter(self, name: str, value: object) -> None:
        """ALTER SYSTEM: change a value for all users of these settings."""
        self._given = {**self._given, plain_name(name): converted(name, value)}

    def with_session(self, overrides: Mapping[str, object]) -> "SqlConfig":
        """The settings with a session's overrides."""
        if not overrides:
            return self
        return SqlConfig({**self._given, **overrides})

    @property
    def kept(self) -> dict[str, object]:
        """The settings that a query keeps, with their current values; defaults may change, too."""
        return {name: self[name] for name in self if is_query_setting(name)}

    def with_kept(
        self, original: Mapping[str, object], overrides: Mapping[str, object]
    ) -> "SqlConfig":
        """The settings of a query: its kept values, and the current values of all others."""
        if not original:
            return self.with_session(overrides)
        now = {name: value for name, value in self._given.items() if not is_query_setting(name)}
        return SqlConfig({**now, **original, **overrides})

    def text(self, name: str) -> str:
        """A string setting."""
        return str(self[name])

    def whole(self, name: str) -> int:
        """An integer setting."""
        value = self[name]
        assert isinstance(value, int), name
        return value

    def flag(self, name: str) -> bool:
        """A boolean setting."""
        return bool(self[name])

    @property
    def address(self) -> str:
        """The address of this server for other servers: "host:port"."""
        given = self.text("ksql.advertised.listener") or self.text("listeners").split(",")[0]
        return given.split("://")[-1].rstrip("/")

    @property
    def host_names(self) -> list[str]:
        """Additional names of this server for clients, besides its address."""
        advertised = urlsplit(f"//{self.address}").hostname
        return [*self.text("ksql.allowed.hosts").split(","), advertised or ""]

    def streams_settings(self) -> dict[str, object]:
        """The settings for a StreamsApp: those of streams and of its clients."""
        return for_streams({name: self[name] for name in self if not is_of_ksql(name)})

    @property
    def without_effect(self) -> dict[str, str]:
        """Given settings that have no effect, with an alternative."""
        found = {name: _instead_of(name, value) for name, value in self._given.items()}
        return {name: instead for name, instead in found.items() if instead is not None}

    def spark_settings(self) -> dict[str, str]:
        """The settings for Spark's session, without Millstream's own."""
        return {
            name: str(value)
            for name, value in self._given.items()
            if name.startswith(SPARK_PREFIX) and name not in EDITABLE and name not in FIXED
        }

    def check_override(self, name: str) -> None:
        """Refuse names that are unknown or that a session cannot set."""
        plain = plain_name(name)
        denied = [each.strip() for each in self.text(DENYLIST).split(",") if each.strip()]
        fixed = plain in NOT_OF_SESSIONS or is_of_server(plain)
        if fixed or plain in denied or name in denied:
            raise StatementFailed(
                "One or more properties overrides set locally are prohibited by the KSQL server "
                f"(use UNSET to reset their default value): [{name}]"
            )


DENYLIST = "ksql.properties.overrides.denylist"


def is_of_server(name: str) -> bool:
    """Whether a setting is fixed when the server starts; all sessions share a Spark session."""
    return name in FIXED or (name.startswith(SPARK_PREFIX) and name not in EDITABLE)


def is_query_setting(name: str) -> bool:
    """Whether a query keeps the value that a setting had when its statement was executed."""
    return name in QUERY_SETTINGS or name.startswith(FUNCTIONS_PREFIX)


def is_of_ksql(name: str) -> bool:
    """Whether a setting is for the server itself, not for streams or Spark."""
    return name.startswith(("ksql.", SPARK_PREFIX)) or name in ("engine", "listeners")


def plain_name(name: str) -> str:
    """The normalized name of a setting, without the prefix of streams; unknown ones are refused."""
    plain = name[len(STREAMS_PREFIX) :] if name.startswith(STREAMS_PREFIX) else name
    if plain in EDITABLE or plain in FIXED or plain in STREAMS_DEFAULTS:
        return plain
    if plain.startswith((FUNCTIONS_PREFIX, SPARK_PREFIX)):
        return plain
    if is_of_streams(plain):
        return plain
    near = difflib.get_close_matches(plain, [*EDITABLE, *FIXED, *STREAMS_DEFAULTS], n=1)
    raise StatementFailed(
        f"Unknown property: {name}", hint=f'did you mean "{near[0]}"?' if near else ""
    )


def _instead_of(name: str, value: object) -> str | None:
    """What to use instead of a setting that does nothing; None if the value has its effect."""
    if name in UNUSED and value in (EDITABLE.get(name), FIXED.get(name)):
        return None
    return WITHOUT_EFFECT.get(name) or UNUSED.get(name)


def refuse_without_effect(name: str, value: object) -> None:
    """Refuse a value that does nothing, and say what to use instead."""
    instead = _instead_of(plain_name(name), converted(name, value))
    if instead is not None:
        raise StatementFailed(f'Property "{name}" has no effect', hint=instead)


def converted(name: str, value: object) -> object:
    """A value converted to its setting's type: strings become numbers or booleans."""
    plain = plain_name(name)
    default = next(
        (each[plain] for each in (EDITABLE, FIXED, STREAMS_DEFAULTS) if plain in each), None
    )
    if plain in UNSET_FLAGS:
        return None if value in (None, "") else _flag(name, value)
    _refuse_security(plain, value)
    if plain in CHOICES:
        return _choice(name, value, CHOICES[plain])
    if default is None or isinstance(default, str):
        return value if value is None else str(value)
    if isinstance(default, bool):
        return _flag(name, value)
    if isinstance(value, bool):
        raise _wrong(name, value, "it must be an integer")
    try:
        return int(str(value))
    except ValueError:
        raise _wrong(name, value, "it must be an integer") from None


def _refuse_security(name: str, value: object) -> None:
    """Refuse security settings that are not supported: ignoring them would allow any access."""
    text = "" if value is None else str(value).strip().lower()
    if text not in PROTECTING.get(name, (text,)):
        raise _wrong(name, value, "authentication is not supported; remove the setting")
    if name == "listeners" and "https://" in text:
        raise _wrong(name, value, "TLS is not supported; put a TLS proxy in front")


def _choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    if str(value).lower() not in choices:
        raise _wrong(name, value, f"it must be one of {', '.join(choices)}")
    return str(value).lower()


def _flag(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    raise _wrong(name, value, "Expected value to be either true or false")


def _wrong(name: str, value: object, why: str) -> StatementFailed:
    return StatementFailed(f"Invalid value {value} for configuration {name}: {why}")
