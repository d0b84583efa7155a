"""Values as strings, for headers, and strings as values, as Kafka infers them.

    true                         BOOLEAN         2024-05-17                    Date
    7, 300, 70000                INT8 to INT64   12:30:00.000Z                 Time
    2.5                          FLOAT32         2024-05-17T12:30:00.000Z      Timestamp
    [1, 2]                       ARRAY           {"a": 1}                      MAP
    null                         null            anything else                 STRING

The tokens are the characters " , : [ ] { } and the strings between them; a backslash makes the
next character an ordinary one. Where Kafka would drop a part of the string (it reads 12,5 as 12) or
accept a day that does not exist, the value is a STRING here.
"""

import datetime
import re
from collections.abc import Iterable
from decimal import Decimal
from math import isinf
from struct import Struct as Layout

from connect.data import (
    BOOLEAN,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    ConnectSchema,
    Struct,
    Type,
    date,
    decimal,
    text_of,
    time,
    timestamp,
)
from connect.errors import DataError

Found = tuple[ConnectSchema | None, object]

_TOKENS = re.compile(r"""[",:\[\]{}]|(?:\\.|\\$|[^\\",:\[\]{}])+""", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_INTEGERS = (INT8, INT16, INT32, INT64)
_NUMBERS = (*(schema.type for schema in _INTEGERS), Type.FLOAT32, Type.FLOAT64)
_FLOAT32 = Layout("<f")
_DEPTH_MAX = 100


def text_of_value(value: object, *, embedded: bool = False) -> str:
    """A value as a string; nested strings are quoted."""
    match value:
        case None:
            return "null"
        case str():
            return f'"{_escaped(value)}"' if embedded else value
        case bytes() | bytearray() | memoryview():
            return f'"{text_of(value)}"' if embedded else text_of(value)
        case list() | tuple():
            return f"[{','.join(text_of_value(each, embedded=True) for each in value)}]"
        case dict():
            return _object(value.items())
        case Struct():
            return _object((each.name, value[each.name]) for each in value.schema.fields)
        case datetime.datetime() | datetime.date() | datetime.time():
            return _text_of_time(value)
        case bool() | int() | float() | Decimal():
            return text_of(value)
    raise DataError(f"Failed to serialize unexpected value type {type(value).__name__}: {value!r}")


def _text_of_time(value: datetime.datetime | datetime.date | datetime.time) -> str:
    match value:
        case datetime.datetime():
            utc = value.astimezone(datetime.UTC).replace(tzinfo=None)
            return utc.isoformat(timespec="milliseconds") + "Z"
        case datetime.time():
            return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    return value.isoformat()


def _object(pairs: Iterable[tuple[object, object]]) -> str:
    entries = (
        f"{text_of_value(key, embedded=True)}:{text_of_value(value, embedded=True)}"
        for key, value in pairs
    )
    return f"{{{','.join(entries)}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def value_of_text(text: str) -> Found:
    """The schema and value of a string."""
    single = text.strip()
    if single == "null":
        return None, None
    found = _literal(single)
    if found is None and single[:1] in ("[", "{"):
        try:
            parser = _Parser(_TOKENS.findall(single))
            whole = parser.value(0)
            found = whole if parser.at_end() else None
        except _NoValue:
            pass
    return (STRING, text) if found is None else found


class _NoValue(Exception):
    """The string is not an array or a map."""


class _Parser:
    """Parses the tokens of an array or map."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._next = 0

    def at_end(self) -> bool:
        return self._next == len(self._tokens)

    def value(self, depth: int) -> Found:
        """The value at the current token."""
        if depth > _DEPTH_MAX:
            raise _NoValue
        match self._take():
            case "[":
                return self._array(depth + 1)
            case "{":
                return self._map(depth + 1)
            case '"':
                return self._quoted()
            case token:
                return self._unquoted(token)

    def _array(self, depth: int) -> Found:
        found: list[Found] = []
        while not self._took("]"):
            found.append(self.value(depth))
            if not self._took(",") and self._peek() != "]":
                raise _NoValue
        schema, values = _aligned(found)
        return ConnectSchema(Type.ARRAY, value_schema=schema), values

    def _map(self, depth: int) -> Found:
        keys: list[Found] = []
        found: list[Found] = []
        while not self._took("}"):
            key = self.value(depth)
            if key[1] is None or isinstance(key[1], list | dict) or not self._took(":"):
                raise _NoValue
            keys.append(key)
            found.append(self.value(depth))
            if not self._took(",") and self._peek() != "}":
                raise _NoValue
        key_schema, key_values = _aligned(keys)
        schema, values = _aligned(found)
        pairs = dict(zip(key_values, values, strict=True))
        return ConnectSchema(Type.MAP, key_schema=key_schema, value_schema=schema), pairs

    def _quoted(self) -> Found:
        parts: list[str] = []
        while (token := self._take_exactly()) != '"':
            parts.append(token)
        text = "".join(parts)
        return _temporal(text) or (STRING, re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL))

    def _unquoted(self, token: str) -> Found:
        if token == "null":
            return None, None
        # The colons of a time are tokens too.
        longer = "".join(self._tokens[self._next - 1 : self._next + 4]).strip()
        result = _temporal(longer)
        if result is not None:
            self._next += 4
            return result
        result = _literal(token)
        if result is None:
            raise _NoValue
        return result

    def _take_exactly(self) -> str:
        if self._next >= len(self._tokens):
            raise _NoValue
        self._next += 1
        return self._tokens[self._next - 1]

    def _take(self) -> str:
        while not (token := self._take_exactly().strip()):
            pass
        return token

    def _peek(self) -> str:
        place = self._next
        token = self._take()
        self._next = place
        return token

    def _took(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._take()
        return True


def _literal(text: str) -> Found | None:
    """A boolean, time or number."""
    if text in ("true", "false"):
        return BOOLEAN, text == "true"
    if text[:1].isdigit() or text[:1] in ("+", "-"):
        return _temporal(text) or _number(text)
    return None


def _temporal(text: str) -> Found | None:
    text = text.replace("\\:", ":")
    try:
        if _DATE.fullmatch(text):
            return date(), datetime.date.fromisoformat(text)
        if _TIME.fullmatch(text):
            return time(), datetime.time.fromisoformat(text[:-1])
        if _TIMESTAMP.fullmatch(text):
            return timestamp(), datetime.datetime.fromisoformat(text)
    except ValueError:  # the date does not exist
        pass
    return None


def _number(text: str) -> Found | None:
    if _NUMBER.fullmatch(text) is None:
        return None
    number = Decimal(text)
    exponent = int(number.as_tuple().exponent)
    if abs(number) < 1 << 64 and number == number // 1:
        whole = int(number)
        for schema, bits in zip(_INTEGERS, (8, 16, 32, 64), strict=True):
            if -(1 << bits - 1) <= whole < 1 << bits - 1:
                return schema, whole
    approximate = float(number)
    if exponent == 0 or isinf(approximate):
        return decimal(-exponent), number
    try:
        return FLOAT32, _FLOAT32.unpack(_FLOAT32.pack(approximate))[0]
    except OverflowError:
        return FLOAT64, approximate


def _aligned(found: list[Found]) -> tuple[ConnectSchema | None, list[object]]:
    """The common schema of elements; integers become floats if some elements are floats."""
    values = [value for _, value in found]
    schemas = {schema for schema, value in found if value is not None}
    if not schemas or not all(isinstance(schema, ConnectSchema) for schema in schemas):
        return None, values
    if len(schemas) == 1:
        (common,) = schemas
    else:
        numbers = {schema.type: schema for schema in schemas if schema and not schema.name}
        if len(numbers) < len(schemas) or not numbers.keys() <= set(_NUMBERS):
            return None, values
        common = numbers[max(numbers, key=_NUMBERS.index)]
    if None in values:
        raise _NoValue
    if common is not None and common.type in (Type.FLOAT32, Type.FLOAT64):
        values = [float(value) for value in values if isinstance(value, int | float)]
    return common, values
