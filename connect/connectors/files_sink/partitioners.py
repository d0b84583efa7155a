"""Partitioners: the folder of a record's file, below its topic.

default     partition=0
field       country=CH/kind=retail
time        year=2024/month=05/day=17/hour=12
"""

import datetime
import re
from collections.abc import Callable
from typing import TypeAlias
from urllib.parse import quote

from broker.java.date_formats import Formatter, timestamp_formatter
from connect.config_def import Settings
from connect.data import Struct, text_of
from connect.errors import ConfigError, DataError
from connect.logical_values import timestamp_milliseconds, timestamp_of
from connect.records import SinkRecord

HOURLY = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"
DAILY = "'year'=YYYY/'month'=MM/'day'=dd"
DEFAULT = "default"
NAMES = (DEFAULT, "field", "time", "hourly", "daily")
# A quoted string, a run of one letter, or any other character.
_TOKEN = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']")
_FIELDS = {"Y": "uuuu", "y": "uuuu", "M": "MM", "d": "dd", "H": "HH", "m": "mm", "s": "ss"}
# Characters that folder names may contain unescaped; "/" would create a subfolder.
_SAFE_IN_NAMES = " !#$&'()+,;=@[]{}~"

Folder: TypeAlias = Callable[[SinkRecord, int], str]
Time: TypeAlias = Callable[[SinkRecord, int], int]


def read_folder(settings: Settings) -> Folder:
    """The function that returns the folder of a record, given its time."""
    name = partitioner_name(settings.text("partitioner.class"))
    if name == DEFAULT:
        return lambda record, time_ms: f"partition={record.original_partition}"
    match name:
        case "field":
            return _by_fields(settings.strings("partition.field.name"))
        case "hourly":
            return _by_time(settings, HOURLY)
        case "daily":
            return _by_time(settings, DAILY)
        case _:
            return _by_time(settings, settings.text("path.format"))


def partitioner_name(text: str) -> str:
    """The name of a partitioner, also for the name of Confluent's class."""
    name = text.rpartition(".")[2].removesuffix("Partitioner").lower()
    return "time" if name == "timebased" else name


def read_time(settings: Settings) -> Time:
    """The function that returns the time of a record, given the current time."""
    if reads_field(settings):
        name = settings.text("timestamp.field")
        if not name:
            raise ConfigError("timestamp.extractor is RecordField without a timestamp.field")
        return lambda record, now_ms: _milliseconds(value_of(record, name), name)
    if settings.text("timestamp.extractor").lower() == "wallclock":
        return lambda record, now_ms: now_ms
    return lambda record, now_ms: now_ms if record.timestamp_ms is None else record.timestamp_ms


def reads_field(settings: Settings) -> bool:
    """Whether the time of a record is in its value, where it may be missing or invalid."""
    return settings.text("timestamp.extractor").lower() == "recordfield"


def value_of(record: SinkRecord, name: str) -> object:
    """A field of the record's value; DataError if it is missing."""
    value = record.value
    if isinstance(value, Struct):
        return value[name]
    if isinstance(value, dict) and name in value:
        return value[name]
    raise DataError(f'the value has no field "{name}"')


def _by_fields(names: list[str]) -> Folder:
    if not names:
        raise ConfigError("the field partitioner needs partition.field.name")

    def folder(record: SinkRecord, time_ms: int) -> str:
        return "/".join(
            f"{name}={quote(text_of(value_of(record, name)), safe=_SAFE_IN_NAMES)}"
            for name in names
        )

    return folder


def _by_time(settings: Settings, path_format: str) -> Folder:
    format_time = _formatter(path_format, settings.text("timezone"))
    duration_ms = settings.integer("partition.duration.ms")
    made: dict[int, str] = {}

    def folder(record: SinkRecord, time_ms: int) -> str:
        floor_ms = time_ms - time_ms % (duration_ms if duration_ms > 0 else 1_000)
        known = made.get(floor_ms)
        if known is None:
            if len(made) > 10_000:
                made.clear()
            timestamp_of(floor_ms)  # DataError if it is out of range
            known = made[floor_ms] = format_time(floor_ms)
        return known

    return folder


def _formatter(path_format: str, zone: str) -> Formatter:
    try:
        return timestamp_formatter(_pattern(path_format), zone)
    except ValueError:
        raise ConfigError(
            f'unknown time zone "{zone}" in timezone', hint="use a name such as Europe/Zurich"
        ) from None


def _pattern(path_format: str) -> str:
    """A pattern of DateTimeFormatter; in a path format, Y is the year and M has two digits."""
    pattern, literal, position = "", "", 0
    while position < len(path_format):
        token = _TOKEN.match(path_format, position)
        if token is None or (token[2] and token[2] not in _FIELDS):
            known = ", ".join(_FIELDS)
            raise ConfigError(
                f'path.format "{path_format}" is invalid at position {position}',
                hint=f"the letters allowed outside quotes are {known}",
            )
        if token[2]:
            pattern += _quoted(literal) + _FIELDS[token[2]]
            literal = ""
        else:
            literal += token[0] if token[1] is None else token[1]
        position = token.end()
    return pattern + _quoted(literal)


def _quoted(literal: str) -> str:
    return f"'{literal}'" if literal else ""


def _milliseconds(value: object, name: str) -> int:
    match value:
        case bool():
            pass
        case int():
            return value
        case datetime.datetime():
            return timestamp_milliseconds(value)
        case str():
            try:
                moment = datetime.datetime.fromisoformat(value)
            except ValueError:
                pass
            else:
                zoned = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
                return timestamp_milliseconds(zoned)
    raise DataError(f'field "{name}" is not a valid time: {value!r}')
