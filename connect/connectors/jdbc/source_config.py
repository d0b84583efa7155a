"""Settings of the JDBC source, and checks of their combinations."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from broker.linear_patterns import Pattern, compile_pattern
from connect.config_def import (
    CaseInsensitiveValidString,
    ConfigDef,
    ConfigKey,
    ConfigType,
    Importance,
    Range,
    Settings,
    ValidString,
    Width,
)
from connect.connectors.jdbc.connection_config import CONNECTION_KEYS, table_types_key
from connect.connectors.jdbc.numeric_mapping import NumericMapping
from connect.connectors.jdbc.tables import TableName
from connect.connectors.jdbc.timestamps import GRANULARITIES
from connect.errors import ConfigError

BULK: Final = "bulk"
INCREMENTING: Final = "incrementing"
TIMESTAMP: Final = "timestamp"
TIMESTAMP_INCREMENTING: Final = "timestamp+incrementing"
MODES: Final = (BULK, TIMESTAMP, INCREMENTING, TIMESTAMP_INCREMENTING)
ISOLATION_MODES: Final = (
    "DEFAULT",
    "READ_UNCOMMITTED",
    "READ_COMMITTED",
    "REPEATABLE_READ",
    "SERIALIZABLE",
)

_DATABASE = "Database"
_MODE = "Mode"
_CONNECTOR = "Connector"
_INITIAL_IS_NOW = -1


class _OptionalString(ValidString):
    """One of several strings, case-insensitive, or null."""

    def ensure_valid(self, name: str, value: object) -> None:
        if value is not None:
            CaseInsensitiveValidString(*self.strings).ensure_valid(name, value)


def _table_list(name: str, display_name: str, doc: str) -> ConfigKey:
    return ConfigKey(
        name,
        ConfigType.LIST,
        "",
        importance=Importance.MEDIUM,
        doc=doc,
        group=_DATABASE,
        width=Width.LONG,
        display_name=display_name,
    )


def _pattern(name: str, display_name: str) -> ConfigKey:
    return ConfigKey(
        name,
        ConfigType.STRING,
        None,
        importance=Importance.HIGH,
        doc="Only tables that match are read; % and _ are wildcards, as in LIKE.",
        group=_DATABASE,
        display_name=display_name,
    )


_KEYS = (
    _table_list("table.whitelist", "Table Whitelist", "Names of the tables to copy."),
    _table_list("table.blacklist", "Table Blacklist", "Names of the tables not to copy."),
    _table_list(
        "table.include.list",
        "Table Include List",
        "Regular expressions for the names, including the schema, of the tables to copy.",
    ),
    _table_list(
        "table.exclude.list",
        "Table Exclude List",
        "Regular expressions for the names, including the schema, of the tables not to copy.",
    ),
    _pattern("catalog.pattern", "Catalog pattern"),
    _pattern("schema.pattern", "Schema pattern"),
    table_types_key("Kinds of tables to copy: TABLE, VIEW, PARTITIONED TABLE, ..."),
    ConfigKey(
        "numeric.precision.mapping",
        ConfigType.BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="The older form of numeric.mapping=precision_only.",
        group=_DATABASE,
        display_name="Map Numeric Values By Precision (deprecated)",
    ),
    ConfigKey(
        "numeric.mapping",
        ConfigType.STRING,
        None,
        validator=_OptionalString(*(mapping.value for mapping in NumericMapping)),
        importance=Importance.LOW,
        doc="The type of NUMERIC columns: decimals (none), or integers and doubles "
        "where these are exact enough (precision_only, best_fit, "
        "best_fit_eager_double).",
        group=_DATABASE,
        display_name="Map Numeric Values, Integral or Decimal, By Precision and Scale",
    ),
    ConfigKey(
        "timestamp.granularity",
        ConfigType.STRING,
        "connect_logical",
        validator=ValidString(*GRANULARITIES),
        importance=Importance.LOW,
        doc="The type of timestamp columns: Connect's Timestamp, which has "
        "milliseconds, or micro- or nanoseconds as a number or a string.",
        group=_DATABASE,
        display_name="Timestamp granularity for timestamp columns",
    ),
    ConfigKey(
        "mode",
        ConfigType.STRING,
        validator=ValidString(*MODES),
        importance=Importance.HIGH,
        doc="How new rows are detected: all rows every time (bulk), by an increasing "
        "number (incrementing), by the time of the last change (timestamp), or by "
        "both. A row is never read if its transaction commits after rows with "
        "higher numbers or later times were read; timestamp.delay.interval.ms "
        "gives such transactions time to commit.",
        group=_MODE,
        display_name="Table Loading Mode",
    ),
    ConfigKey(
        "incrementing.column.name",
        ConfigType.STRING,
        "",
        importance=Importance.MEDIUM,
        doc="The strictly increasing column; empty for the table's autoincrement column.",
        group=_MODE,
        display_name="Incrementing Column Name",
    ),
    ConfigKey(
        "timestamp.column.name",
        ConfigType.LIST,
        "",
        importance=Importance.MEDIUM,
        doc="The columns with the time of a row's last change; the first one that is "
        "not null is used.",
        group=_MODE,
        display_name="Timestamp Column Name",
    ),
    ConfigKey(
        "timestamp.initial",
        ConfigType.LONG,
        None,
        importance=Importance.LOW,
        doc="The start time in milliseconds since the epoch; -1 for the current time. "
        "The default is the oldest row.",
        group=_MODE,
        display_name="Unix time value of initial timestamp",
    ),
    ConfigKey(
        "validate.non.null",
        ConfigType.BOOLEAN,
        True,
        importance=Importance.LOW,
        doc="Whether incrementing and timestamp columns must be declared NOT NULL.",
        group=_MODE,
        display_name="Validate Non Null",
    ),
    ConfigKey(
        "query",
        ConfigType.STRING,
        "",
        importance=Importance.MEDIUM,
        doc="A query to copy instead of tables. Unless the mode is bulk it must not "
        "have a WHERE clause: use a subquery instead.",
        group=_MODE,
        display_name="Query",
    ),
    ConfigKey(
        "query.suffix",
        ConfigType.STRING,
        "",
        importance=Importance.LOW,
        doc="A suffix that is appended to every query, such as LIMIT 100.",
        group=_MODE,
        display_name="Query suffix",
    ),
    ConfigKey(
        "query.retry.attempts",
        ConfigType.INT,
        -1,
        validator=Range(-1),
        importance=Importance.LOW,
        doc="The maximum number of retries of a failed query before the task fails; -1 "
        "for no limit.",
        group=_MODE,
        display_name="Query Retry Attempts",
    ),
    ConfigKey(
        "transaction.isolation.mode",
        ConfigType.STRING,
        "DEFAULT",
        validator=CaseInsensitiveValidString(*ISOLATION_MODES),
        importance=Importance.LOW,
        doc="The isolation level of the reading transactions.",
        group=_MODE,
        display_name="Transaction isolation mode",
    ),
    ConfigKey(
        "topic.prefix",
        ConfigType.STRING,
        importance=Importance.HIGH,
        doc="The prefix of the table's name in the topic name; for a query, the topic name itself.",
        group=_CONNECTOR,
        display_name="Topic Prefix",
    ),
    ConfigKey(
        "poll.interval.ms",
        ConfigType.INT,
        5000,
        validator=Range(0),
        importance=Importance.HIGH,
        doc="How often to poll each table for new rows, in milliseconds.",
        group=_CONNECTOR,
        display_name="Poll Interval (ms)",
    ),
    ConfigKey(
        "batch.max.rows",
        ConfigType.INT,
        100,
        validator=Range(1),
        importance=Importance.LOW,
        doc="The maximum number of rows per poll.",
        group=_CONNECTOR,
        display_name="Max Rows Per Batch",
    ),
    ConfigKey(
        "table.poll.interval.ms",
        ConfigType.LONG,
        60_000,
        validator=Range(1),
        importance=Importance.LOW,
        doc="How often to look for new and dropped tables, in milliseconds.",
        group=_CONNECTOR,
        display_name="Metadata Change Monitoring Interval (ms)",
    ),
    ConfigKey(
        "timestamp.delay.interval.ms",
        ConfigType.LONG,
        0,
        validator=Range(0),
        importance=Importance.HIGH,
        doc="The minimum age in milliseconds of a row's timestamp before the row is "
        "read, so that open transactions can commit rows with earlier timestamps.",
        group=_CONNECTOR,
        display_name="Delay Interval (ms)",
    ),
)


SOURCE_DEFINITION: Final = ConfigDef((*CONNECTION_KEYS, *_KEYS))


@dataclass(frozen=True, slots=True)
class TableChoice:
    """The tables to copy."""

    whitelist: frozenset[str]
    blacklist: frozenset[str]
    include: tuple[Pattern, ...]
    exclude: tuple[Pattern, ...]
    kinds: frozenset[str]
    catalog: Pattern | None
    schema: Pattern | None

    def includes(self, table: TableName, kind: str, *, home_catalog: str | None) -> bool:
        """Whether to copy a table; without a catalog pattern, only of the home catalog."""
        if kind.upper() not in self.kinds or not self._is_in_place(table, home_catalog):
            return False
        names = _names_of(table)
        if self.whitelist:
            return not self.whitelist.isdisjoint(names)
        if self.include:
            return any(pattern.fullmatch(name) for pattern in self.include for name in names)
        if not self.blacklist.isdisjoint(names):
            return False
        return not any(pattern.fullmatch(name) for pattern in self.exclude for name in names)

    def _is_in_place(self, table: TableName, home_catalog: str | None) -> bool:
        if self.catalog is not None:
            if not self.catalog.fullmatch(table.catalog or ""):
                return False
        elif table.catalog is not None and table.catalog != home_catalog:
            return False
        return self.schema is None or bool(self.schema.fullmatch(table.schema or ""))


def _names_of(table: TableName) -> list[str]:
    """The names of a table that users may write: with and without schema and catalog."""
    parts = table.parts
    return [".".join(parts[start:]) for start in range(len(parts))]


def table_choice(settings: Settings) -> TableChoice:
    """The tables that a configuration selects."""
    return TableChoice(
        frozenset(settings.strings("table.whitelist")),
        frozenset(settings.strings("table.blacklist")),
        _patterns(settings, "table.include.list"),
        _patterns(settings, "table.exclude.list"),
        frozenset(kind.upper() for kind in settings.strings("table.types")),
        _like(settings.text_or_none("catalog.pattern")),
        _like(settings.text_or_none("schema.pattern")),
    )


def _patterns(settings: Settings, name: str) -> tuple[Pattern, ...]:
    try:
        return tuple(compile_pattern(text) for text in settings.strings(name))
    except re.error as error:
        raise ConfigError(f"Invalid value for configuration {name}: {error}") from None


def _like(text: str | None) -> Pattern | None:
    if not text:
        return None
    wildcards = {"%": ".*", "_": "."}
    return compile_pattern("".join(wildcards.get(each) or re.escape(each) for each in text))


def numeric_mapping(settings: Settings) -> NumericMapping:
    """numeric.mapping, or its older form."""
    text = settings.text_or_none("numeric.mapping")
    if text:
        return NumericMapping(text.lower())
    is_by_precision = settings.boolean("numeric.precision.mapping")
    return NumericMapping.PRECISION_ONLY if is_by_precision else NumericMapping.NONE


def initial_timestamp(settings: Settings, now: datetime) -> datetime:
    """The start of a table without an offset."""
    initial_ms = settings.integer_or_none("timestamp.initial")
    if initial_ms is None:
        return datetime.fromtimestamp(0, UTC)
    if initial_ms == _INITIAL_IS_NOW:
        return now
    return datetime.fromtimestamp(initial_ms / 1000, UTC)


def contradictions(settings: Settings) -> Mapping[str, Sequence[str]]:
    """Settings that contradict each other, with an error for each."""
    result: dict[str, list[str]] = {}

    def complain(name: str, why: str) -> None:
        result.setdefault(name, []).append(why)

    lists = ("table.whitelist", "table.blacklist", "table.include.list", "table.exclude.list")
    given = [name for name in lists if settings.strings(name)]
    if len(given) > 1:
        for name in given:
            others = ", ".join(other for other in given if other != name)
            complain(name, f"{name} cannot be set together with {others}")
    if settings.text("query"):
        for name in given:
            complain(name, f"{name} cannot be set together with query")
    mode = settings.text("mode")
    if mode in (TIMESTAMP, TIMESTAMP_INCREMENTING) and not settings.strings(
        "timestamp.column.name"
    ):
        complain("timestamp.column.name", f"mode {mode} requires timestamp.column.name")
    growing = mode in (INCREMENTING, TIMESTAMP_INCREMENTING)
    if growing and settings.text("query") and not settings.text("incrementing.column.name"):
        complain(
            "incrementing.column.name",
            f"mode {mode} with a query requires incrementing.column.name",
        )
    return result
