"""Plan: the records that a configuration of the datagen connector defines, and their times."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random, SystemRandom

from connect import data
from connect.config_def import Settings
from connect.connectors.datagen import columns
from connect.connectors.datagen.column_stream import TaskNumber
from connect.connectors.datagen.generated import Generated
from connect.connectors.datagen.pace import FixedRate, Pace, RandomIntervals, Unbounded
from connect.connectors.datagen.quickstarts import QUICKSTARTS
from connect.connectors.datagen.random_avro import RecordGenerator, read_record, read_schema
from connect.data import ConnectSchema
from connect.errors import ConfigError

SOURCES = ("quickstart", "schema.string", "schema.filename")
RANDOM_SEED = "random.seed"
_KEY_TYPES = (data.Type.STRING, data.Type.INT32, data.Type.INT64)


@dataclass(frozen=True, slots=True)
class Plan:
    """The generator of records, and the position of their key."""

    generator: RecordGenerator
    key_position: int | None
    key_schema: ConnectSchema


def read_plan(settings: Settings) -> Plan:
    """Read the plan; ConfigError for an invalid schema, key field or number of keys."""
    generator, key_field = _generator(settings)
    key_field = settings.text("schema.keyfield") or key_field
    keys = settings.integer("keys")
    if not key_field:
        if keys:
            raise ConfigError(
                '"keys" is set, but the records have no key',
                hint="set schema.keyfield to one of the fields",
            )
        return Plan(generator, None, data.OPTIONAL_STRING)
    position = generator.schema.positions.get(key_field)
    if position is None:
        raise ConfigError(
            f'there is no field "{key_field}" for the key',
            hint=f"the fields are {', '.join(generator.schema.positions)}",
        )
    if keys:
        generator = _with_keys(generator, position, keys)
    return Plan(generator, position, generator.fields[position].schema)


def _generator(settings: Settings) -> tuple[RecordGenerator, str]:
    given = [name for name in SOURCES if settings.text(name)]
    if len(given) != 1:
        raise ConfigError(
            f"{' and '.join(given) or 'no schema'} set for generated records",
            hint=f"set one of {', '.join(SOURCES)}; the quickstarts are {', '.join(QUICKSTARTS)}",
        )
    text = settings.text(given[0])
    if given[0] == "quickstart":
        quickstart = QUICKSTARTS[text.lower()]
        return read_record(quickstart.schema), quickstart.key_field
    if given[0] == "schema.filename":
        try:
            text = Path(text).read_text()
        except OSError as error:
            raise ConfigError(f"Unable to find the schema file: {error}") from None
    return read_schema(text), ""


def _with_keys(generator: RecordGenerator, position: int, keys: int) -> RecordGenerator:
    """The generator with this number of distinct keys."""
    field = generator.schema.fields[position]
    is_time = any(time.position == position for time in generator.time_fields)
    if is_time or field.schema.type not in _KEY_TYPES or field.schema.name is not None:
        kind = "the record's time" if is_time else field.schema.type.name
        raise ConfigError(
            f'"keys" cannot limit the keys of field "{field.name}": its type is {kind}',
            hint="set schema.keyfield to a string or integer field",
        )
    if field.schema.type is data.Type.STRING:
        prefix = generator.fields[position].prefix or f"{field.name}_"
        column: columns.Column = columns.numbered(prefix, keys)
    else:
        column = columns.integers(0, keys)
    fields = list(generator.fields)
    fields[position] = Generated(field.schema, column)
    return replace(generator, fields=tuple(fields))


@dataclass(frozen=True, slots=True)
class EventTime:
    """Evenly spaced timestamps from a start time on."""

    start_ms: int
    step_ms: float

    def at(self, number: int) -> int:
        """The timestamp of a record by its number."""
        return self.start_ms + int(number * self.step_ms)


def read_event_time(settings: Settings, tasks: int) -> EventTime | None:
    """The timestamps of one task; None to use the clock."""
    text = settings.text("start.time")
    if not text:
        return None
    rate, max_interval_ms = settings.number("rate"), settings.integer("max.interval")
    if rate > 0:
        return EventTime(_milliseconds(text), 1_000 * tasks / rate)
    return EventTime(_milliseconds(text), max_interval_ms / 2 if max_interval_ms > 0 else 1)


def _milliseconds(text: str) -> int:
    if text.lstrip("-").isdecimal():
        return int(text)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f'start.time "{text}" is not a valid time',
            hint="use the form 2024-05-17T12:00:00Z, or milliseconds since 1970",
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return int(moment.timestamp() * 1_000)


def read_pace(settings: Settings, task: TaskNumber, now_ms: int) -> Pace:
    """The pace of one task."""
    rate, max_interval_ms = settings.number("rate"), settings.integer("max.interval")
    if rate > 0:
        return FixedRate(rate / task.tasks, now_ms)
    if max_interval_ms <= 0:
        return Unbounded()
    return RandomIntervals(max_interval_ms, Random(task.task), now_ms)


def read_seed(settings: Settings, stored: Mapping[str, object]) -> int:
    """The configured seed, or that of the stored offset, or a new one."""
    for seed in (settings.integer_or_none(RANDOM_SEED), settings.integer_or_none("seed")):
        if seed is not None:
            return seed
    seen = stored.get(RANDOM_SEED)
    return seen if isinstance(seen, int) else SystemRandom().getrandbits(48)
