"""WITH clauses: their properties and values.

Names are already in upper case. Invalid names, values and combinations are refused here; properties
that depend on the columns (WRAP_SINGLE_VALUE, TIMESTAMP) are checked by the caller.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sql.catalog import FormatInfo, TimestampColumn, WindowInfo
from sql.errors import StatementFailed, SyntaxFailed
from sql.formats import abilities
from sql.syntax.expressions import (
    BooleanLiteral,
    DecimalLiteral,
    DoubleLiteral,
    IntegerLiteral,
    Literal,
    StringLiteral,
)
from sql.syntax.queries import WindowKind
from sql.syntax.statements import Properties

Settings = Mapping[str, object]

DEFAULT_KEY_FORMAT = "ksql.persistence.default.format.key"
DEFAULT_VALUE_FORMAT = "ksql.persistence.default.format.value"
WRAP_SINGLE_VALUES = "ksql.persistence.wrap.single.values"
TOPIC_PREFIX = "ksql.output.topic.name.prefix"

TEXTS = frozenset(
    {
        "FORMAT",
        "KAFKA_TOPIC",
        "KEY_DELIMITER",
        "KEY_FORMAT",
        "KEY_PROTOBUF_NULLABLE_REPRESENTATION",
        "KEY_SCHEMA_FULL_NAME",
        "TIMESTAMP",
        "TIMESTAMP_FORMAT",
        "VALUE_AVRO_SCHEMA_FULL_NAME",
        "VALUE_DELIMITER",
        "VALUE_FORMAT",
        "VALUE_PROTOBUF_NULLABLE_REPRESENTATION",
        "VALUE_SCHEMA_FULL_NAME",
    }
)
NUMBERS = frozenset({"KEY_SCHEMA_ID", "PARTITIONS", "REPLICAS", "RETENTION_MS", "VALUE_SCHEMA_ID"})
COMMON = TEXTS | NUMBERS | {"WRAP_SINGLE_VALUE"}
OF_SOURCES = COMMON | {"WINDOW_TYPE", "WINDOW_SIZE", "SOURCED_BY_CONNECTOR"}
OF_INSERTS = frozenset({"QUERY_ID"})

NULLABLE = ("OPTIONAL", "WRAPPER")
UNITS_MS = {
    "MILLISECOND": 1,
    "SECOND": 1000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
}


@dataclass(frozen=True, slots=True)
class WithClause:
    """The properties of a WITH clause; missing ones are None."""

    topic: str | None
    key_format: str | None
    value_format: str | None
    key: FormatInfo  # the properties of the key's format; the name is empty if it is not given
    value: FormatInfo
    wrap_single_value: bool | None
    timestamp: TimestampColumn | None
    window: WindowInfo | None
    partitions: int | None
    replicas: int | None
    retention_ms: int | None
    query_id: str | None = None


def read_source_properties(properties: Properties) -> WithClause:
    """Parse the WITH clause of CREATE STREAM and CREATE TABLE."""
    return _read(_values(properties, OF_SOURCES))


def read_sink_properties(properties: Properties) -> WithClause:
    """Parse the WITH clause of CREATE ... AS SELECT."""
    return _read(_values(properties, COMMON))


def read_query_id(properties: Properties) -> str | None:
    """Parse the WITH clause of INSERT INTO: the id of its query."""
    value = _values(properties, OF_INSERTS).get("QUERY_ID")
    return None if value is None else str(value)


def check_properties(info: FormatInfo) -> None:
    """Refuse properties that a format does not support."""
    given = {
        "delimiter": info.delimiter,
        "fullSchemaName": info.full_name,
        "nullableRepresentation": info.nullable,
        "schemaId": info.schema_id,
    }
    known = abilities(info.name).properties
    unknown = [name for name, value in given.items() if value is not None and name not in known]
    if unknown:
        raise StatementFailed(
            f"{info.name} does not support the following configs: [{', '.join(unknown)}]"
        )


def duration_ms(count: int, unit: str) -> int:
    """A duration in milliseconds; units are singular or plural."""
    singular = unit.upper().removesuffix("S")
    if singular not in UNITS_MS:
        raise StatementFailed(f"Unknown time unit: '{unit}'")
    return count * UNITS_MS[singular]


def _values(properties: Properties, known: frozenset[str]) -> dict[str, object]:
    unknown = [name for name, _ in properties if name not in known]
    if unknown:
        raise StatementFailed(
            f"Failed to prepare statement: Invalid config variable(s) in the WITH clause: "
            f"{','.join(unknown)}"
        )
    return {name: _plain(name, value) for name, value in properties}


def _plain(name: str, literal: Literal) -> object:
    match literal:
        case StringLiteral() | IntegerLiteral() | BooleanLiteral() | DoubleLiteral():
            value: object = literal.value
        case DecimalLiteral(value=value):
            pass
        case _:
            raise _invalid(name, f"Invalid value null for configuration {name}: null")
    if name in NUMBERS:
        return _number(name, value)
    if name == "WRAP_SINGLE_VALUE":
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        raise _invalid(name, "Expected value to be either true or false")
    return value if isinstance(value, str) else str(value)


def _number(name: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"-?\d+", value.strip()):
        return int(value)
    raise _invalid(
        name, f"Invalid value {value} for configuration {name}: Not a number of type INT"
    )


def _invalid(name: str, why: str) -> StatementFailed:
    return StatementFailed(f"Failed to prepare statement: Configuration {name} is invalid: {why}")


def _read(values: dict[str, object]) -> WithClause:
    key_format, value_format = _formats(values)
    return WithClause(
        topic=_text(values, "KAFKA_TOPIC"),
        key_format=key_format,
        value_format=value_format,
        key=FormatInfo(
            key_format or "",
            delimiter=_delimiter(values, "KEY_DELIMITER"),
            full_name=_text(values, "KEY_SCHEMA_FULL_NAME"),
            schema_id=_whole(values, "KEY_SCHEMA_ID"),
            nullable=_nullable(values, "KEY_PROTOBUF_NULLABLE_REPRESENTATION"),
        ),
        value=FormatInfo(
            value_format or "",
            delimiter=_delimiter(values, "VALUE_DELIMITER"),
            full_name=_value_name(values),
            schema_id=_whole(values, "VALUE_SCHEMA_ID"),
            nullable=_nullable(values, "VALUE_PROTOBUF_NULLABLE_REPRESENTATION"),
        ),
        wrap_single_value=_flag(values, "WRAP_SINGLE_VALUE"),
        timestamp=_timestamp(values),
        window=_window(values),
        partitions=_whole(values, "PARTITIONS"),
        replicas=_whole(values, "REPLICAS"),
        retention_ms=_whole(values, "RETENTION_MS"),
    )


def _formats(values: dict[str, object]) -> tuple[str | None, str | None]:
    both = _text(values, "FORMAT")
    if both is None:
        key, value = _text(values, "KEY_FORMAT"), _text(values, "VALUE_FORMAT")
    else:
        for name in ("KEY_FORMAT", "VALUE_FORMAT"):
            if name in values:
                raise StatementFailed(
                    f"Cannot supply both '{name}' and 'FORMAT' properties, as 'FORMAT' sets both "
                    "key and value formats. Either use just 'FORMAT', or use 'KEY_FORMAT' and "
                    "'VALUE_FORMAT'."
                )
        key = value = both
    for each in (key, value):
        if each is not None:
            abilities(each.upper())
    return key and key.upper(), value and value.upper()


def _text(values: dict[str, object], name: str) -> str | None:
    value = values.get(name)
    return None if value is None else str(value)


def _whole(values: dict[str, object], name: str) -> int | None:
    value = values.get(name)
    assert value is None or isinstance(value, int)
    return value


def _flag(values: dict[str, object], name: str) -> bool | None:
    value = values.get(name)
    assert value is None or isinstance(value, bool)
    return value


def _value_name(values: dict[str, object]) -> str | None:
    result = _text(values, "VALUE_SCHEMA_FULL_NAME") or _text(values, "VALUE_AVRO_SCHEMA_FULL_NAME")
    if result is not None and not result.strip():
        raise _invalid("VALUE_SCHEMA_FULL_NAME", "Schema name cannot be empty")
    return result


def _delimiter(values: dict[str, object], name: str) -> str | None:
    value = _text(values, name)
    if value is None:
        return None
    if not value or value.isspace():
        raise _invalid(
            name,
            "Delimiter cannot be empty, if you meant to have a tab or space for delimiter, please "
            "use the special values 'TAB' or 'SPACE'\nExample valid value: ';'",
        )
    special = {"TAB": "\t", "SPACE": " "}
    if value.upper() in special:
        return special[value.upper()]
    if len(value) != 1:
        raise _invalid(
            name,
            f"Invalid delimiter value: '{value}'. Delimiter must be a single character or "
            "TAB,SPACE\nExample valid value: ';'",
        )
    return value


def _nullable(values: dict[str, object], name: str) -> str | None:
    value = _text(values, name)
    if value is None:
        return None
    if value.upper() not in NULLABLE:
        raise _invalid(
            name,
            f"Invalid value {value} for configuration {name}: must be one of OPTIONAL, WRAPPER",
        )
    return value.upper()


def _timestamp(values: dict[str, object]) -> TimestampColumn | None:
    name = _text(values, "TIMESTAMP")
    pattern = _text(values, "TIMESTAMP_FORMAT")
    if name is None:
        return None
    quoted = len(name) > 1 and name[0] == name[-1] and name[0] in '`"'
    return TimestampColumn(name[1:-1] if quoted else name.upper(), pattern)


def _window(values: dict[str, object]) -> WindowInfo | None:
    kind_text, size_text = _text(values, "WINDOW_TYPE"), _text(values, "WINDOW_SIZE")
    if kind_text is None:
        return None
    try:
        kind = WindowKind(kind_text.upper())
    except ValueError:
        raise _invalid(
            "WINDOW_TYPE",
            f"Invalid value {kind_text} for configuration WINDOW_TYPE: must be one of SESSION, "
            "HOPPING, TUMBLING",
        ) from None
    if kind is WindowKind.SESSION:
        if size_text is not None:
            raise SyntaxFailed("'WINDOW_SIZE' should not be set for SESSION windows.")
        return WindowInfo(kind, None)
    if size_text is None:
        raise StatementFailed(
            f"'WINDOW_SIZE' should be set for {kind.value} windows.",
            hint="add WINDOW_SIZE='5 SECONDS' to the WITH clause",
        )
    words = size_text.split()
    if len(words) != 2 or not words[0].isdigit() or int(words[0]) == 0:
        raise StatementFailed(
            "WINDOW_SIZE property should be a string with two items: a positive number and a time "
            f"unit, and it is '{size_text}'. For example: '10 SECONDS'"
        )
    return WindowInfo(kind, duration_ms(int(words[0]), words[1]))
