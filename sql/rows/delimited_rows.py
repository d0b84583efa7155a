"""DELIMITED: columns as strings separated by a delimiter, as in Apache Commons CSV.

Reading: a field that starts with a quote continues to the next single quote; two quotes are an
escaped quote. Blank lines before the record are skipped, everything after its line is ignored, and
an empty field is null. Writing: null is empty, and fields are only quoted if necessary; the first
one is also quoted if it starts with anything but a letter or digit.
"""

import re
import string
from base64 import b64encode
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TypeVar

from broker.errors import SchemaError
from broker.java.number_text import (
    as_double,
    decimal_text,
    double_text,
    parse_base64,
    parse_double,
    parse_integer,
)
from broker.serde.registry.api import SchemaRegistry
from broker.serde.serde import Serde
from sql.datatypes import BOOLEAN, BYTES, DOUBLE, STRING, Column, DataType, DecimalType, Primitive
from sql.numeric_types import INTEGER_RANGES, parse_decimal
from sql.rows.columns_check import unsupported_type
from sql.rows.mismatch import Mismatch, inside, undecodable, unencodable
from sql.rows.none_rows import NullSerde
from sql.rows.row_format import Row, RowFormat, RowOptions

DELIMITER_NAMES = {"SPACE": " ", "TAB": "\t"}
LINE_ENDS = "\r\n"
QUOTED = re.compile('"((?:[^"]++|"")*+)"')
# All characters of numbers, booleans and base64.
NUMBER_CHARACTERS = frozenset(string.ascii_letters + string.digits + "+-./=")

T = TypeVar("T")


class DelimitedRows(RowFormat):
    """Rows as one line of separated values."""

    name = "DELIMITED"

    def serde(
        self,
        columns: Sequence[Column],
        options: RowOptions,
        registry: SchemaRegistry | None = None,
    ) -> Serde[Row]:
        """A serde of rows of these columns."""
        delimiter = delimiter_of(options.delimiter)
        for column in columns:
            if not isinstance(column.type, Primitive | DecimalType):
                raise unsupported_type(self.name, column)
        if options.is_key and not columns:
            return NullSerde()
        return DelimitedRowSerde(columns, delimiter)


def delimiter_of(text: str) -> str:
    """The character of a delimiter: itself, or that of SPACE or TAB."""
    sign = DELIMITER_NAMES.get(text.upper(), text)
    if len(sign) != 1 or sign in '"\r\n':
        raise SchemaError(
            f'"{text}" is not a valid delimiter',
            hint="use a single character other than a quote or line break, or SPACE or TAB",
        )
    return sign


class DelimitedRowSerde:
    """Rows of scalar columns as separated values."""

    def __init__(self, columns: Sequence[Column], delimiter: str) -> None:
        """Create the functions that read and write the field of each column."""
        self._names = [each.name for each in columns]
        self._delimiter = delimiter
        self._parsers = [parser_of(each.type) for each in columns]
        self._writers = [
            writer_of(each.type, delimiter, is_first=index == 0)
            for index, each in enumerate(columns)
        ]

    def serialize(self, topic: str, value: Row | None) -> bytes | None:
        """The line of a row."""
        if value is None:
            return None
        try:
            return self._line(value).encode()
        except ValueError as error:
            raise unencodable(topic, "DELIMITED", error) from error

    def deserialize(self, topic: str, data: bytes | None) -> Row | None:
        """The row of a line."""
        if data is None:
            return None
        try:
            return self._row(str(data, "utf-8"))
        except ValueError as error:
            raise undecodable(topic, "DELIMITED", error) from error

    def _line(self, row: Row) -> str:
        if len(row) != len(self._names):
            raise Mismatch(f"{len(row)} values for {len(self._names)} columns")
        pairs = zip(self._writers, row, strict=True)
        try:
            fields = ["" if value is None else writer(value) for writer, value in pairs]
        except ValueError as error:
            raise self._located(error, self._writers, row) from None
        return self._delimiter.join(fields)

    def _row(self, text: str) -> Row:
        if '"' in text or "\n" in text or "\r" in text:
            fields = first_record(text, self._delimiter)
        else:
            fields = text.split(self._delimiter) if text else []
        if not fields:
            raise Mismatch("there are no fields")
        if len(fields) != len(self._names):
            raise Mismatch(f"{len(fields)} fields for {len(self._names)} columns")
        pairs = zip(self._parsers, fields, strict=True)
        try:
            return tuple([parser(field) if field else None for parser, field in pairs])
        except ValueError as error:
            raise self._located(error, self._parsers, fields) from None

    def _located(
        self, error: ValueError, convert: Sequence[Callable[[T], object]], values: Sequence[T]
    ) -> Mismatch:
        """The error with its column, which is found by converting the values one by one."""
        for name, function, value in zip(self._names, convert, values, strict=True):
            try:
                if value not in (None, ""):
                    function(value)
            except ValueError as found:
                return inside(f".{name}", found)
        return inside("", error)


def writer_of(data_type: DataType, delimiter: str, *, is_first: bool) -> Callable[[object], str]:
    """A function that writes the field of a value that is not null, quoted if necessary."""
    printer = printer_of(data_type)
    if data_type is not STRING and not is_first and delimiter not in NUMBER_CHARACTERS:
        return printer
    special = re.escape(delimiter) + '"\r\n'
    start = "0-9A-Za-z" if is_first else "^\0-#"
    # The rule of Commons CSV: no special character, and no space or control character at the end.
    is_plain = re.compile(
        f"(?=[{start}])[^{special}]*(?<=[^\0- ])" + ("" if is_first else "|")
    ).fullmatch

    def write(value: object) -> str:
        text = printer(value)
        if is_plain(text) is not None:
            return text
        return '"' + text.replace('"', '""') + '"'

    return write


def first_record(text: str, delimiter: str) -> list[str]:
    """The fields of the first line that is not blank; none if there is no such line."""
    plain = _plain_field(delimiter)
    text = text.lstrip(LINE_ENDS)
    if not text:
        return []
    fields: list[str] = []
    at = 0
    while True:
        if text.startswith('"', at):
            field, at = _quoted_field(text, at, delimiter)
        else:
            found = plain.match(text, at)
            assert found is not None
            field, at = found[0], found.end()
        fields.append(field)
        if at == len(text) or text[at] in LINE_ENDS:
            return fields
        at += 1


@lru_cache
def _plain_field(delimiter: str) -> re.Pattern[str]:
    return re.compile(f"[^\r\n{re.escape(delimiter)}]*")


def _quoted_field(text: str, start: int, delimiter: str) -> tuple[str, int]:
    found = QUOTED.match(text, start)
    if found is None:
        raise Mismatch("a quote is not closed")
    at = found.end()
    while at < len(text) and text[at] != delimiter and text[at] not in LINE_ENDS:
        if not text[at].isspace():
            raise Mismatch("there are characters between a closing quote and the delimiter")
        at += 1
    return found[1].replace('""', '"'), at


def parser_of(data_type: DataType) -> Callable[[str], object]:
    """A function that parses a field that is not empty."""
    if isinstance(data_type, DecimalType):
        return lambda text: parse_decimal(text, data_type)
    assert isinstance(data_type, Primitive)
    if data_type in INTEGER_RANGES:
        return _integer_parser(*INTEGER_RANGES[data_type])
    return PARSERS[data_type]


def _integer_parser(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        # Most fields are short strings of digits.
        if len(text) < 20 and text.isdigit() and text.isascii():
            number = int(text)
            if low <= number <= high:
                return number
        return parse_integer(text, low, high)

    return parse


PARSERS: dict[Primitive, Callable[[str], object]] = {
    BOOLEAN: lambda text: text.lower() == "true",
    DOUBLE: parse_double,
    STRING: str,
    BYTES: parse_base64,
}


def printer_of(data_type: DataType) -> Callable[[object], str]:
    """A function that formats a value that is not null."""
    if isinstance(data_type, DecimalType):
        return _print_decimal
    assert isinstance(data_type, Primitive)
    if data_type in INTEGER_RANGES:
        return _integer_printer(data_type)
    return PRINTERS[data_type]


def _refusal(value: object, data_type: object) -> Mismatch:
    return Mismatch(f"{type(value).__name__} is not {data_type}")


def _print_decimal(value: object) -> str:
    if not isinstance(value, Decimal):
        raise _refusal(value, "DECIMAL")
    return decimal_text(value)


def _integer_printer(data_type: Primitive) -> Callable[[object], str]:
    low, high = INTEGER_RANGES[data_type]

    def print_integer(value: object) -> str:
        if type(value) is not int:
            raise _refusal(value, data_type)
        if not low <= value <= high:
            raise Mismatch("the number is out of range")
        return str(value)

    return print_integer


def _print_boolean(value: object) -> str:
    if type(value) is not bool:
        raise _refusal(value, BOOLEAN)
    return "true" if value else "false"


def _print_double(value: object) -> str:
    return double_text(as_double(value))


def _print_string(value: object) -> str:
    if not isinstance(value, str):
        raise _refusal(value, STRING)
    return value


def _print_bytes(value: object) -> str:
    if not isinstance(value, bytes):
        raise _refusal(value, BYTES)
    return b64encode(value).decode()


PRINTERS: dict[Primitive, Callable[[object], str]] = {
    BOOLEAN: _print_boolean,
    DOUBLE: _print_double,
    STRING: _print_string,
    BYTES: _print_bytes,
}
