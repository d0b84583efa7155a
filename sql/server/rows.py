"""Rows as lines of JSON, as ksqlDB writes them."""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

import orjson

from sql.engine.results import ResultColumn
from sql.engine.row_values import row_preparation


def json_rows(columns: Iterable[ResultColumn]) -> Callable[[Sequence[object]], list[object]]:
    """From a row to what `json_line` writes."""
    return row_preparation((each.type for each in columns), _decimal)


def json_line(content: object) -> bytes:
    """A value as JSON, without a line's end."""
    return orjson.dumps(content, default=_number_text)


def _number_text(value: object) -> object:
    """What orjson does not know: whole numbers that are longer than 64 bits."""
    if isinstance(value, int):
        return orjson.Fragment(str(value).encode())
    raise TypeError


def _decimal(value: Decimal) -> object:
    """All digits of the scale, never with an exponent."""
    return orjson.Fragment(format(value, "f").encode())
