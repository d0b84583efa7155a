"""Conversions of values that several dialects share."""

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from connect.connectors.jdbc.dialects.dialect import Conversion, ReadColumn, ReadSettings
from connect.data import ConnectSchema, Type
from connect.errors import DataError

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine


def in_utc(zone: tzinfo) -> Conversion:
    """Converts local times of the zone to points in time."""
    combine = datetime.combine  # several times as fast as replace
    if zone is UTC:
        return lambda value: combine(value, value.time(), UTC)
    return lambda value: combine(value, value.time(), zone).astimezone(UTC)


def aware_in_utc(value: datetime) -> datetime:
    """The same point in time, in UTC."""
    return value.astimezone(UTC)


def in_zone(zone: tzinfo) -> Conversion:
    """Converts points in time to local times of the zone."""
    combine = datetime.combine

    def local(value: datetime) -> datetime:
        moved = value.astimezone(zone)
        return combine(moved, moved.time())

    return local


def timestamp_column(name: str, reading: ReadSettings, instant: Conversion | None) -> ReadColumn:
    """A column of points in time, in the format of timestamp.granularity.

    `instant` is None if the driver returns datetimes in UTC.
    """
    shown, schema = reading.timestamp, reading.timestamp_schema
    if instant is None:
        return ReadColumn(name, schema, shown, _itself)
    if shown is None:
        return ReadColumn(name, schema, instant, instant)
    return ReadColumn(name, schema, lambda value: shown(instant(value)), instant)


def _itself(value: object) -> object:
    return value


def type_by_schema(
    types: Mapping[Type | str, "TypeEngine[Any]"], schema: ConnectSchema, dialect: str
) -> "TypeEngine[Any]":
    """The column type of a logical type, or of its underlying type."""
    result = types.get(schema.name or "") or types.get(schema.type)
    if result is None:
        raise no_column_type(schema, dialect)
    return result


def no_column_type(schema: ConnectSchema, dialect: str) -> DataError:
    """The error for a field without a column type."""
    return DataError(
        f"{dialect} has no column type for {schema}",
        hint="flatten structs, and exclude arrays and maps with fields.whitelist",
    )


def plain_text(value: Decimal) -> str:
    """A decimal number without an exponent."""
    return f"{value:f}"
