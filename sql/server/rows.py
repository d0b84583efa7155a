"""Rows as lines of JSON, in ksqlDB's format."""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

import orjson

from sql.engine.results import ResultColumn
from sql.engine.row_values import row_preparation


def json_rows(columns: Iterable[ResultColumn]) -> Callable[[Sequence[object]], list[object]]:
    """A function from a row to the argument of `json_line`."""
    return row_preparation((each.type for each in columns), _decimal)


def json_line(content: object) -> bytes:
    """A value as JSON, without a line end."""
    return orjson.dumps(content, default=_number_text)


def _number_text(value: object) -> object:
    """Values that orjson does not support: integers of more than 64 bits."""
    if isinstance(value, int):
        return orjson.Fragment(str(value).encode())
    raise TypeError


def _decimal(value: Decimal) -> object:
    """All digits of the scale, without an exponent."""
    return orjson.Fragment(format(value, "f").encode())
