"""CAST in Spark's SQL, for the pairs of types with the same results as the native engine.

Casts of doubles to strings differ between versions of Java, and casts of strings to times or
decimals have special rules: these are not supported here.
"""

from collections.abc import Callable

from sql.backends.spark.calculating import wrapped_int
from sql.backends.spark.spark_code import (
    NotNative,
    SqlCode,
    any_of,
    known_type,
    text_literal,
    unless,
)
from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
)

CONTROLS_AND_SPACE = text_literal("".join(map(chr, range(33))))
INTEGER = text_literal(r"\A[+-]?[0-9]{1,1000}\z")
DOUBLE_TEXT = text_literal(
    r"\A([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?|[+-]?(NaN|Infinity)"
    r"|[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]{1,9}[fFdD]?)\z"
)
TRUTHS = ", ".join(f"'{each}'" for each in ("t", "tr", "tru", "true", "y", "ye", "yes"))
DAY_MS = 86_400_000
# More digits may exceed the range of a BIGINT.
WHOLE_DIGITS_MAX = 18


def cast(code: SqlCode, given: DataType, wanted: DataType, *, strict: bool) -> SqlCode:
    """A value cast to another type; an invalid value is null, or fails if `strict`."""
    text = _text(code.text, given, wanted)
    if not strict:
        return SqlCode(text, nullable=code.nullable or code.can_fail or _may_refuse(given, wanted))
    if not _may_refuse(given, wanted):
        return SqlCode(text, code.nullable, code.can_fail, code.failure)
    failure = any_of((code.failed, f"({code.text} IS NOT NULL AND {text} IS NULL)"))
    if not code.nullable:
        return SqlCode(text, nullable=False, can_fail=True)
    return SqlCode(unless(code.failed, text), can_fail=True, failure=failure)


def _may_refuse(given: DataType, wanted: DataType) -> bool:
    """Whether the cast fails for some values."""
    if isinstance(wanted, DecimalType):
        return True
    return given is STRING and wanted in (INT, BIGINT, DOUBLE)


def trimmed(text: str) -> str:
    """A string without leading and trailing spaces and control characters."""
    return f"trim(BOTH {CONTROLS_AND_SPACE} FROM {text})"


def double_to_whole(text: str, low: int, high: int, type_: str) -> str:
    """Narrows doubles as Java does: NaN is 0, and values out of range saturate."""
    lowest, highest = f"CAST('{low}' AS {type_})", f"CAST('{high}' AS {type_})"
    return (
        f"CASE WHEN isnan({text}) THEN CAST(0 AS {type_})"
        f" WHEN {text} <= CAST('{low}' AS DOUBLE) THEN {lowest}"
        f" WHEN {text} >= CAST('{high}' AS DOUBLE) THEN {highest}"
        f" ELSE try_cast({text} AS {type_}) END"
    )


def double_to_bigint(text: str) -> str:
    """The nearest BIGINT, rounding towards zero."""
    return double_to_whole(text, -(2**63), 2**63 - 1, "BIGINT")


def _text(text: str, given: DataType, wanted: DataType) -> str:
    if given == wanted:
        return text
    if isinstance(wanted, DecimalType):
        if given in (INT, BIGINT) or isinstance(given, DecimalType):
            return f"try_cast({text} AS {known_type(wanted)})"
        raise NotNative(f"no cast of {given} to {wanted}")
    if isinstance(given, DecimalType):
        return _of_decimal(text, given, wanted)
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        if _may_refuse(given.element, wanted.element):
            raise NotNative("an element that cannot be cast is a failure of the array")
        return f"transform({text}, each -> {_text('each', given.element, wanted.element)})"
    found = CASTS.get((given, wanted))
    if found is None:
        raise NotNative(f"no cast of {given} to {wanted}")
    return found(text)


def _of_decimal(text: str, given: DecimalType, wanted: DataType) -> str:
    known_type(given)
    if wanted is STRING:
        return f"try_cast({text} AS STRING)"
    if wanted is DOUBLE:
        return f"CAST({text} AS DOUBLE)"
    if given.precision - given.scale <= WHOLE_DIGITS_MAX:
        if wanted is BIGINT:
            return f"try_cast({text} AS BIGINT)"
        if wanted is INT:
            return wrapped_int(f"try_cast({text} AS BIGINT)")
    raise NotNative(f"no cast of {given} to {wanted}")


def _read(pattern: str, type_: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        bare = trimmed(text)
        return f"try_cast(if(regexp_like({bare}, {pattern}), {bare}, NULL) AS {type_})"

    return read


def _as(type_: str) -> Callable[[str], str]:
    return lambda text: f"CAST({text} AS {type_})"


CASTS: dict[tuple[DataType, DataType], Callable[[str], str]] = {
    (INT, BIGINT): _as("BIGINT"),
    (BIGINT, INT): wrapped_int,
    (INT, DOUBLE): _as("DOUBLE"),
    (BIGINT, DOUBLE): _as("DOUBLE"),
    (DOUBLE, INT): lambda text: double_to_whole(text, -(2**31), 2**31 - 1, "INT"),
    (DOUBLE, BIGINT): double_to_bigint,
    (BOOLEAN, STRING): _as("STRING"),
    (INT, STRING): _as("STRING"),
    (BIGINT, STRING): _as("STRING"),
    (STRING, BOOLEAN): lambda text: f"(lower({trimmed(text)}) IN ({TRUTHS}))",
    (STRING, INT): _read(INTEGER, "INT"),
    (STRING, BIGINT): _read(INTEGER, "BIGINT"),
    (STRING, DOUBLE): _read(DOUBLE_TEXT, "DOUBLE"),
    (DATE, STRING): lambda text: f"CAST(date_from_unix_date({text}) AS STRING)",
    (TIMESTAMP, TIME): lambda text: f"CAST(pmod({text}, {DAY_MS}L) AS INT)",
    (DATE, TIMESTAMP): lambda text: f"(CAST({text} AS BIGINT) * {DAY_MS}L)",
}
