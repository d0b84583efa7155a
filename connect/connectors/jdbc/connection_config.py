"""Settings of the database connection, which source and sink share."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from connect.config_def import (
    CaseInsensitiveValidString,
    Check,
    ConfigDef,
    ConfigKey,
    ConfigType,
    Importance,
    Range,
    Settings,
    Width,
    invalid,
)
from connect.connectors.jdbc.addresses import SQLITE, Address, parse_address
from connect.connectors.jdbc.dialects import dialect_of_setting
from connect.errors import ConfigError

_GROUP = "Database"
_PREFIX = "connection."
# Our own settings with the prefix of driver options.
_OWN = {"url", "user", "password", "attempts", "backoff.ms"}
_UTC_NAMES = ("UTC", "Etc/UTC", "Z", "GMT")


def zone_of(name: str) -> tzinfo:
    """A time zone by name; always the same object for UTC."""
    if name in _UTC_NAMES:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise invalid("db.timezone", name, "Invalid time zone identifier") from None


def _check_url(name: str, value: object) -> None:
    # The definition reports a missing URL.
    if isinstance(value, str):
        parse_address(value)


def _check_dialect(name: str, value: object) -> None:
    dialect_of_setting(str(value))


def _check_zone(name: str, value: object) -> None:
    zone_of(str(value))


# Settings that both connectors have.
CONNECTION_KEYS: Final = (
    ConfigKey(
        "connection.url",
        ConfigType.STRING,
        validator=Check(_check_url, "JDBC or SQLAlchemy URL"),
        importance=Importance.HIGH,
        doc="The database: jdbc:postgresql://host:port/db, jdbc:mysql://..., "
        "jdbc:mariadb://..., jdbc:sqlite:file, or an SQLAlchemy URL.",
        group=_GROUP,
        width=Width.LONG,
        display_name="JDBC URL",
    ),
    ConfigKey(
        "connection.user",
        ConfigType.STRING,
        None,
        importance=Importance.HIGH,
        doc="The user to log in as.",
        group=_GROUP,
        display_name="JDBC User",
    ),
    ConfigKey(
        "connection.password",
        ConfigType.PASSWORD,
        None,
        importance=Importance.HIGH,
        doc="The user's password.",
        group=_GROUP,
        display_name="JDBC Password",
    ),
    ConfigKey(
        "connection.attempts",
        ConfigType.INT,
        3,
        validator=Range(1),
        importance=Importance.LOW,
        doc="The maximum number of attempts to connect.",
        group=_GROUP,
        display_name="JDBC connection attempts",
    ),
    ConfigKey(
        "connection.backoff.ms",
        ConfigType.LONG,
        10_000,
        validator=Range(0),
        importance=Importance.LOW,
        doc="The time in milliseconds between two attempts.",
        group=_GROUP,
        display_name="JDBC connection backoff (millis)",
    ),
    ConfigKey(
        "dialect.name",
        ConfigType.STRING,
        "",
        validator=Check(_check_dialect, "name of a dialect"),
        importance=Importance.LOW,
        doc="The dialect to use. The default is that of the URL.",
        group=_GROUP,
        display_name="Database Dialect",
    ),
    ConfigKey(
        "db.timezone",
        ConfigType.STRING,
        "UTC",
        validator=Check(_check_zone, "time zone"),
        importance=Importance.MEDIUM,
        doc="The time zone of timestamps that are stored without one.",
        group=_GROUP,
        display_name="DB time zone",
    ),
    ConfigKey(
        "quote.sql.identifiers",
        ConfigType.STRING,
        "ALWAYS",
        validator=CaseInsensitiveValidString("ALWAYS", "NEVER"),
        importance=Importance.MEDIUM,
        doc="Whether names of tables and columns are quoted in statements.",
        group=_GROUP,
        display_name="Quote Identifiers",
    ),
)


def table_types_key(doc: str) -> ConfigKey:
    return ConfigKey(
        "table.types",
        ConfigType.LIST,
        "TABLE",
        importance=Importance.LOW,
        doc=doc,
        group=_GROUP,
        display_name="Table Types",
    )


def _password(settings: Settings) -> str | None:
    name = "connection.password"
    return None if settings[name] is None else settings.password(name)


def address_of(settings: Settings, config: Mapping[str, str]) -> Address:
    """The database of a configuration; connection.* settings are options of the driver."""
    address = parse_address(settings.text("connection.url"))
    options = {
        name.removeprefix(_PREFIX): value
        for name, value in config.items()
        if name.startswith(_PREFIX) and name.removeprefix(_PREFIX) not in _OWN
    }
    return replace(
        address,
        dialect=dialect_of_setting(settings.text("dialect.name")) or address.dialect,
        user=settings.text_or_none("connection.user") or address.user,
        password=_password(settings) or address.password,
        options={**address.options, **options},
    )


def local_paths(settings: ConfigDef, config: Mapping[str, str]) -> dict[str, list[str]]:
    """The file of a file database; none for an invalid configuration."""
    try:
        address = address_of(settings.parse(config), config)
    except ConfigError:
        return {}
    if address.dialect != SQLITE or address.database == ":memory:":
        return {}
    return {"connection.url": [address.database]}
