"""Functions of dates and times: conversion to and from strings, numbers and time zones.

The default time zone is GMT, so that results do not depend on where a query runs.
"""

from broker.java.date_formats import (
    date_formatter,
    date_parser,
    lenient_date_parser,
    time_formatter,
    time_parser,
    timestamp_formatter,
    timestamp_parser,
)
from broker.java.time_zones import zone_of
from broker.java.times import DAY_MS
from broker.machine import Machine
from sql.functions.registry import Family, Implementation

dates = Family("DATE / TIME")

PATTERN = "The format is a pattern such as yyyy-MM-dd HH:mm:ss."
ZONE = "The default time zone is GMT."
INSTEAD = "Deprecated: use"


def _failed(what: str, value: object, pattern: str, error: ValueError) -> ValueError:
    return ValueError(f"Failed to {what} '{value}' with formatter '{pattern}': {error}")


@dates.scalar(
    "PARSE_TIMESTAMP(text STRING, format STRING) -> TIMESTAMP",
    f"Converts a string to a timestamp. {PATTERN} {ZONE}",
)
@dates.scalar("PARSE_TIMESTAMP(text STRING, format STRING, zone STRING) -> TIMESTAMP")
@dates.scalar(
    "STRINGTOTIMESTAMP(text STRING, format STRING) -> BIGINT",
    f"Converts a string to milliseconds since 1970. {INSTEAD} PARSE_TIMESTAMP.",
)
@dates.scalar("STRINGTOTIMESTAMP(text STRING, format STRING, zone STRING) -> BIGINT")
def parse_timestamp(text: str, pattern: str, zone: str = "GMT") -> int:
    try:
        return timestamp_parser(pattern, zone)(text)
    except ValueError as error:
        raise ValueError(
            f"Failed to parse timestamp '{text}' at timezone '{zone}' "
            f"with formatter '{pattern}': {error}"
        ) from None


@dates.machine_scalar(
    "PARSE_DATE(text STRING, format STRING) -> DATE", f"Converts a string to a date. {PATTERN}"
)
def parse_date(machine: Machine) -> Implementation:
    """Days since 1970; a missing day is the first of the month."""
    now_ms = machine.clock.now_ms

    def parse(text: str, pattern: str) -> int:
        try:
            return lenient_date_parser(pattern)(text, now_ms)
        except ValueError as error:
            raise _failed("parse date", text, pattern, error) from None

    return parse


@dates.scalar(
    "STRINGTODATE(text STRING, format STRING) -> INT",
    f"Converts a string to days since 1970. {INSTEAD} PARSE_DATE.",
)
def string_to_date(text: str, pattern: str) -> int:
    """Days since 1970; the date must be complete."""
    try:
        return date_parser(pattern)(text)
    except ValueError as error:
        raise _failed("parse date", text, pattern, error) from None


@dates.scalar(
    "PARSE_TIME(text STRING, format STRING) -> TIME", f"Converts a string to a time. {PATTERN}"
)
def parse_time(text: str, pattern: str) -> int:
    try:
        return time_parser(pattern)(text)
    except ValueError as error:
        raise _failed("parse time", text, pattern, error) from None


@dates.scalar(
    "FORMAT_TIMESTAMP(timestamp TIMESTAMP, format STRING) -> STRING",
    f"Converts a timestamp to a string. {PATTERN} {ZONE}",
)
@dates.scalar("FORMAT_TIMESTAMP(timestamp TIMESTAMP, format STRING, zone STRING) -> STRING")
@dates.scalar(
    "TIMESTAMPTOSTRING(milliseconds BIGINT, format STRING) -> STRING",
    f"Converts milliseconds since 1970 to a string. {INSTEAD} FORMAT_TIMESTAMP.",
)
@dates.scalar("TIMESTAMPTOSTRING(milliseconds BIGINT, format STRING, zone STRING) -> STRING")
def format_timestamp(milliseconds: int, pattern: str, zone: str = "GMT") -> str:
    try:
        return timestamp_formatter(pattern, zone)(milliseconds)
    except ValueError as error:
        raise ValueError(
            f"Failed to format timestamp {milliseconds} at timeZone '{zone}' "
            f"with formatter '{pattern}': {error}"
        ) from None


@dates.scalar(
    "FORMAT_DATE(date DATE, format STRING) -> STRING", f"Converts a date to a string. {PATTERN}"
)
@dates.scalar(
    "DATETOSTRING(days INT, format STRING) -> STRING",
    f"Converts days since 1970 to a string. {INSTEAD} FORMAT_DATE.",
)
def format_date(days: int, pattern: str) -> str:
    try:
        return date_formatter(pattern)(days)
    except ValueError as error:
        raise _failed("format date", days, pattern, error) from None


@dates.scalar(
    "FORMAT_TIME(time TIME, format STRING) -> STRING", f"Converts a time to a string. {PATTERN}"
)
def format_time(milliseconds: int, pattern: str) -> str:
    try:
        return time_formatter(pattern)(milliseconds)
    except ValueError as error:
        raise _failed("format time", milliseconds, pattern, error) from None


@dates.machine_scalar(
    "UNIX_DATE() -> INT", "The days from 1970-01-01 to today or to a date.", volatile=True
)
def today(machine: Machine) -> Implementation:
    """The current date in UTC, as days since 1970."""
    now_ms = machine.clock.now_ms
    return lambda: now_ms() // DAY_MS


@dates.scalar("UNIX_DATE(date DATE) -> INT")
def days_of_date(days: int) -> int:
    return days


@dates.machine_scalar(
    "UNIX_TIMESTAMP() -> BIGINT",
    "The milliseconds from 1970-01-01 to now or to a timestamp.",
    volatile=True,
)
def now(machine: Machine) -> Implementation:
    """The current time, as milliseconds since 1970."""
    return machine.clock.now_ms


@dates.scalar("UNIX_TIMESTAMP(timestamp TIMESTAMP) -> BIGINT")
def milliseconds_of_timestamp(milliseconds: int) -> int:
    return milliseconds


@dates.scalar("FROM_DAYS(days INT) -> DATE", "Converts days since 1970-01-01 to a date.")
def date_of_days(days: int) -> int:
    return days


@dates.scalar(
    "FROM_UNIXTIME(milliseconds BIGINT) -> TIMESTAMP",
    "Converts milliseconds since 1970-01-01 to a timestamp.",
)
def timestamp_of_milliseconds(milliseconds: int) -> int:
    return milliseconds


@dates.scalar(
    "CONVERT_TZ(timestamp TIMESTAMP, from_zone STRING, to_zone STRING) -> TIMESTAMP",
    "Converts a timestamp from one time zone to another.",
)
def convert_zone(milliseconds: int, from_zone: str, to_zone: str) -> int:
    """Add the difference of the offsets of the two zones at that time."""
    instant = milliseconds // 1000
    try:
        ahead = zone_of(to_zone).offset_at(instant) - zone_of(from_zone).offset_at(instant)
    except ValueError as error:
        raise ValueError(f"Invalid time zone: {error}") from None
    return milliseconds + ahead * 1000
