"""TimestampConverter: points in time as strings, numbers, dates, times or timestamps."""

import datetime
from collections.abc import Callable, Mapping
from typing import ClassVar

from broker.clock import Clock
from broker.java.simple_date_format import InvalidDate, SimpleDateFormat
from connect.api import Transformation
from connect.config_def import ConfigDef, ConfigType, Importance, Settings, ValidString
from connect.data import (
    DATE_NAME,
    INT64,
    STRING,
    TIME_NAME,
    TIMESTAMP_NAME,
    ConnectSchema,
    Field,
    Struct,
    Type,
    date,
    time,
    timestamp,
)
from connect.errors import ConfigError, ConnectError, DataError
from connect.logical_values import (
    DAY_MS,
    date_of,
    days_of,
    time_milliseconds,
    time_of,
    timestamp_milliseconds,
    timestamp_of,
)
from connect.records import Record
from connect.transforms.parts import (
    KEY,
    VALUE,
    Part,
    SchemaPlans,
    field_values,
    java_class,
    require_map,
    require_struct,
    with_replace_null,
)

PURPOSE = "converting timestamp formats"
_TARGETS: dict[str, ConnectSchema] = {
    "string": STRING,
    "unix": INT64,
    "Date": date(),
    "Time": time(),
    "Timestamp": timestamp(),
}
# Units per millisecond, or milliseconds per unit.
_UNITS = {"nanoseconds": 1_000_000, "microseconds": 1000, "milliseconds": 1}
_SECOND_MS = 1000
_LONG_MAX = (1 << 63) - 1


class TimestampConverter(Transformation):
    """Converts a field, or a whole key or value, from one time format to another."""

    part: ClassVar[Part]

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock

    @classmethod
    def config(cls) -> ConfigDef:
        definition = (
            ConfigDef()
            .define(
                "field",
                ConfigType.STRING,
                "",
                importance=Importance.HIGH,
                doc="The field with the time; empty for the whole key or value.",
            )
            .define(
                "target.type",
                ConfigType.STRING,
                validator=ValidString(*_TARGETS),
                importance=Importance.HIGH,
                doc="The target type: string, unix, Date, Time or Timestamp.",
            )
            .define(
                "format",
                ConfigType.STRING,
                "",
                importance=Importance.MEDIUM,
                doc="The java.text.SimpleDateFormat pattern of strings that are written or "
                "read; in UTC.",
            )
            .define(
                "unix.precision",
                ConfigType.STRING,
                "milliseconds",
                validator=ValidString("nanoseconds", "microseconds", "milliseconds", "seconds"),
                importance=Importance.LOW,
                doc="The unit of numbers: seconds, milliseconds, microseconds or nanoseconds. "
                "Fractions of a millisecond are lost.",
            )
        )
        return with_replace_null(definition)

    def configure(self, config: Mapping[str, str]) -> None:
        settings = self.config().parse(config)
        self._field = settings.text("field")
        self._target = settings.text("target.type")
        self._precision = settings.text("unix.precision")
        self._replace_null = settings.boolean("replace.null.with.default")
        self._format = self._parsed_format(settings)
        self._plans = SchemaPlans(self._plan)

    def _parsed_format(self, settings: Settings) -> SimpleDateFormat | None:
        pattern = settings.text("format")
        if not pattern.strip():
            if self._target == "string":
                raise ConfigError(
                    "TimestampConverter requires format option to be specified when using string "
                    "timestamps"
                )
            return None
        try:
            return SimpleDateFormat(pattern, self._clock)
        except ValueError as error:
            raise ConfigError(
                f"Invalid value java.lang.IllegalArgumentException: {error} for configuration "
                "TimestampConverter requires a SimpleDateFormat-compatible pattern for string "
                f"timestamps: {pattern}"
            ) from None

    def apply(self, record: Record) -> Record:
        schema, value = self.part.get(record)
        if schema is None:
            return self.part.put(record, None, self._convert_schemaless(value))
        made, convert, position = self._plans.of(schema)
        if value is None:
            return self.part.put(record, made, None)
        if not self._field:
            return self.part.put(record, made, convert(value))
        struct = require_struct(value, PURPOSE)
        return self.part.put(record, made, self._converted(struct, made, convert, position))

    def _convert_schemaless(self, value: object) -> object:
        if value is None or not self._field:
            return self._convert(value)
        mapping = require_map(value, PURPOSE)
        return {**mapping, self._field: self._convert(mapping.get(self._field))}

    def _convert(self, value: object) -> object:
        match value:
            case None:
                return None
            case datetime.date() | datetime.time():
                return self._made_of(_raw_logical(value))
            case str():
                return self._made_of(self._raw_text(value))
            case int() if not isinstance(value, bool):
                return self._made_of(self._raw_unix(value))
            case _:
                raise DataError(
                    f"TimestampConverter does not support class {java_class(value)} objects as "
                    "timestamps"
                )

    def _plan(
        self, schema: ConnectSchema
    ) -> tuple[ConnectSchema, Callable[[object], object], int | None]:
        """The new schema, the function that converts a value, and its position in a struct."""
        target = _TARGETS[self._target]
        if not self._field:
            return target.with_(optional=schema.optional), self._converter(schema), None
        position = schema.positions.get(self._field)
        if position is None:
            return schema, self._convert, None
        field = schema.fields[position]
        made = target.with_(optional=field.schema.optional)
        fields = list(schema.fields)
        fields[position] = Field(field.name, made)
        convert = self._converter(field.schema)
        updated = schema.with_(fields=tuple(fields), default=None)
        if isinstance(schema.default, Struct):
            default = self._converted(schema.default, updated, convert, position)
            updated = updated.with_(default=default)
        return updated, convert, position

    def _converted(
        self,
        struct: Struct,
        made: ConnectSchema,
        convert: Callable[[object], object],
        position: int | None,
    ) -> Struct:
        values = field_values(struct, replace_null=self._replace_null).copy()
        if position is not None:
            values[position] = convert(values[position])
        return Struct(made, values)

    def _converter(self, schema: ConnectSchema) -> Callable[[object], object]:
        known = schema.name in (DATE_NAME, TIME_NAME, TIMESTAMP_NAME)
        if known or schema.type in (Type.STRING, Type.INT64):
            return self._convert
        raise ConnectError(f"Schema {schema} does not correspond to a known timestamp type format")

    def _raw_text(self, text: str) -> int:
        if self._format is None:
            raise DataError(
                f"the string {text} cannot be parsed as a time without a pattern",
                hint='set "format" to its java.text.SimpleDateFormat pattern',
            )
        try:
            return self._format.parse(text)
        except InvalidDate:
            raise DataError(
                f"Could not parse timestamp: value ({text}) does not match pattern "
                f"({self._format.pattern})"
            ) from None

    def _raw_unix(self, number: int) -> int:
        if self._precision == "seconds":
            return max(-_LONG_MAX - 1, min(number * _SECOND_MS, _LONG_MAX))
        return _toward_zero(number, _UNITS[self._precision])

    def _made_of(self, raw_ms: int) -> object:
        match self._target:
            case "string":
                assert self._format is not None, "configure requires it"
                return self._format.format(raw_ms)
            case "unix" if self._precision == "seconds":
                return _toward_zero(raw_ms, _SECOND_MS)
            case "unix":
                return max(-_LONG_MAX - 1, min(raw_ms * _UNITS[self._precision], _LONG_MAX))
            case "Date":
                return date_of(raw_ms // DAY_MS)
            case "Time":
                return time_of(raw_ms % DAY_MS)
            case _:
                return timestamp_of(raw_ms)


def _raw_logical(value: datetime.date | datetime.time) -> int:
    if isinstance(value, datetime.datetime):
        return timestamp_milliseconds(value)
    return days_of(value) * DAY_MS if isinstance(value, datetime.date) else time_milliseconds(value)


def _toward_zero(number: int, divisor: int) -> int:
    return number // divisor if number >= 0 else -(-number // divisor)


class TimestampConverterKey(TimestampConverter):
    """TimestampConverter of the key."""

    part = KEY


class TimestampConverterValue(TimestampConverter):
    """TimestampConverter of the value."""

    part = VALUE
