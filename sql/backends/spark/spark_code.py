"""Pieces of Spark's SQL, with facts about their values.

An expression has a value, is null, or fails; a failure makes the whole column null, or the argument
of a function or the cast that contains it. Spark only has null. So a piece is null where its
expression fails, and it is also known whether and when it can fail. No piece ever raises, whatever
the settings of the session.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite

from sql.backends.spark.column_types import has_spark_type, quoted_name, type_text
from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)

# Spark needs more time to analyse longer expressions than Python needs to compute the rows.
TEXT_MAX = 30_000
INT_MAX = 2**31 - 1
WHOLE = (BOOLEAN, INT, BIGINT, DATE, TIME, TIMESTAMP)


class NotNative(Exception):
    """An expression that Spark cannot compute, or not with equal results."""


@dataclass(frozen=True, slots=True)
class SqlCode:
    """A piece of SQL that needs no further parentheses."""

    text: str
    # Whether it may be null without a failure.
    nullable: bool = True
    can_fail: bool = False
    # Whether it has failed, never null; only needed for pieces that can fail and may be null.
    failure: str | None = None
    # The value of a constant.
    is_constant: bool = False
    value: object = None

    @property
    def failed(self) -> str | None:
        """Whether it has failed, never null; None if it cannot fail."""
        if not self.can_fail:
            return None
        if self.failure is not None:
            return self.failure
        assert not self.nullable, "null may be a failure or not"
        return f"({self.text} IS NULL)"

    @property
    def is_null(self) -> bool:
        """Whether it is always null."""
        return self.is_constant and self.value is None


def certain(text: str) -> SqlCode:
    """A piece that is never null."""
    return SqlCode(text, nullable=False)


def failing(text: str) -> SqlCode:
    """A piece that is null where it fails, and only there."""
    return SqlCode(text, nullable=False, can_fail=True)


def any_of(conditions: Iterable[str | None]) -> str | None:
    """Whether any of some conditions is true; None is never true."""
    found = list(dict.fromkeys(each for each in conditions if each is not None))
    if not found:
        return None
    return found[0] if len(found) == 1 else f"({' OR '.join(found)})"


def unless(failure: str | None, text: str) -> str:
    """SQL that is null where something has failed."""
    return text if failure is None else f"if({failure}, NULL, {text})"


def null_of(type_: DataType | None) -> str:
    """NULL of a type."""
    return "NULL" if type_ is None else f"CAST(NULL AS {known_type(type_)})"


def known_type(type_: DataType) -> str:
    """The name of a type, if Spark has it."""
    if not has_spark_type(type_):
        raise NotNative(f"Spark has no {type_}")
    return type_text(type_)


def constant(value: object, type_: DataType | None) -> SqlCode:
    """A constant."""
    if value is None:
        return SqlCode(null_of(type_), is_constant=True)
    if type_ is None:
        raise NotNative("a constant without a type")
    return SqlCode(literal(value, type_), nullable=False, is_constant=True, value=value)


def literal(value: object, type_: DataType) -> str:
    """A value as SQL; settings of the session do not affect it."""
    if value is None:
        return null_of(type_)
    match type_, value:
        case _, bool() | int() if type_ in WHOLE:
            return _whole_literal(value, type_)
        case _, float() if type_ is DOUBLE:
            return double_literal(value)
        case DecimalType(), Decimal():
            return f"CAST('{value:f}' AS {known_type(type_)})"
        case _, str() if type_ is STRING:
            return text_literal(value)
        case _, bytes() if type_ is BYTES:
            return f"X'{value.hex()}'"
        case _, list() | dict():
            return _inner_literals(value, type_)
    raise NotNative(f"a constant of {type_}")


def _whole_literal(value: int, type_: DataType) -> str:
    if type_ is BOOLEAN:
        return "TRUE" if value else "FALSE"
    if type_ in (BIGINT, TIMESTAMP):
        return f"{value}L" if value >= 0 else f"CAST('{value}' AS BIGINT)"
    return str(value) if 0 <= value <= INT_MAX else f"CAST('{value}' AS INT)"


def _inner_literals(value: object, type_: DataType) -> str:
    match type_, value:
        case ArrayType(element), list():
            shown = ", ".join(literal(each, element) for each in value)
            return f"CAST(array({shown}) AS {known_type(type_)})"
        case StructType(fields), dict():
            parts = (
                f"{literal(value.get(each.name), each.type)} AS {quoted_name(each.name)}"
                for each in fields
            )
            return f"struct({', '.join(parts)})"
        case MapType(key, inner), dict() if None not in value:
            pairs = (f"{literal(one, key)}, {literal(each, inner)}" for one, each in value.items())
            return f"CAST(map({', '.join(pairs)}) AS {known_type(type_)})"
    raise NotNative(f"a constant of {type_}")


def double_literal(number: float) -> str:
    """A double as SQL."""
    text = repr(number)
    if not isfinite(number):
        text = text.replace("nan", "NaN").replace("inf", "Infinity")
    return f"CAST('{text}' AS DOUBLE)"


def text_literal(text: str) -> str:
    """A string as a SQL literal, in bytes if some of its characters need escapes."""
    if text.isascii() and text.isprintable() and "'" not in text and "\\" not in text:
        return f"'{text}'"
    try:
        return f"CAST(X'{text.encode().hex()}' AS STRING)"
    except UnicodeEncodeError:
        raise NotNative("Spark's strings cannot hold half a character") from None
