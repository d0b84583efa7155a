"""How rows are written in each form of an answer."""

import base64
from collections.abc import Callable

import orjson
import pytest

from sql.datatypes import INT, STRING, DecimalType
from sql.engine.results import PullRows, QueryResult, ResultColumn, ResultRow
from sql.server.response_formats import Delimited, Messages, OneArray, ResponseFormat, RowObjects

COLUMNS = (
    ResultColumn("K", STRING, is_key=True),
    ResultColumn("N", INT),
    ResultColumn("D", DecimalType(5, 2)),
)
ROWS = (ResultRow(("a", 1, None)), ResultRow(("b", None, None), tombstone=True))


def written(form: Callable[[QueryResult], ResponseFormat]) -> bytes:
    made = form(PullRows("query_1", COLUMNS, iter(()), None))
    return made.start() + made.rows(ROWS) + made.end()


def test_objects_tell_that_a_row_is_gone() -> None:
    _, *rows = orjson.loads(written(RowObjects))
    assert rows == [
        {"row": {"columns": ["a", 1, None]}},
        {"row": {"columns": ["b", None, None], "tombstone": True}},
    ]


@pytest.mark.parametrize("form", [Delimited, OneArray, Messages])
def test_other_forms_leave_rows_out_that_are_gone(
    form: Callable[[QueryResult], ResponseFormat],
) -> None:
    text = written(form)
    if form is Delimited:
        [_, row] = map(orjson.loads, text.splitlines())
        assert row == ["a", 1, None]
    elif form is OneArray:
        assert orjson.loads(text)[1:] == [["a", 1, None]]
    else:
        [_, row] = orjson.loads(text)
        assert b"a" in base64.b64decode(row["row"])
