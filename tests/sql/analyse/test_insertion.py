"""INSERT INTO ... VALUES writes to columns that can be written."""

import pytest

from sql.analyse.insertion import insertion_columns, insertion_target
from sql.errors import StatementFailed
from sql.parse import parse_statement
from sql.syntax.statements import InsertValues
from tests.sql.planner.session import Session

SOURCES = """
    CREATE STREAM s (v INT, k STRING KEY) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
    CREATE STREAM h (h BYTES HEADER('a'), v INT) WITH (KAFKA_TOPIC='h', VALUE_FORMAT='JSON');
    CREATE STREAM `low` (v INT) WITH (KAFKA_TOPIC='l', VALUE_FORMAT='JSON');
    CREATE SOURCE TABLE t (k INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
    CREATE STREAM w (k INT KEY) WITH (KAFKA_TOPIC='w', VALUE_FORMAT='JSON', WINDOW_TYPE='SESSION');
"""


def columns(text: str) -> list[str]:
    statement = parse_statement(text)
    assert isinstance(statement, InsertValues)
    source = insertion_target(statement, Session().run(SOURCES).catalog)
    return [each.name for each in insertion_columns(statement, source)]


def test_without_a_list_all_columns_are_written_with_the_key_first() -> None:
    assert columns("INSERT INTO s VALUES ('a', 1);") == ["K", "V"]


def test_the_time_of_the_row_may_be_written_too() -> None:
    assert columns("INSERT INTO s (v, rowtime) VALUES (1, 2);") == ["V", "ROWTIME"]
    assert columns("INSERT INTO h (v) VALUES (1);") == ["V"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("INSERT INTO x VALUES (1);", "Cannot insert values into an unknown stream/table: `X`"),
        ("INSERT INTO low VALUES (1);", 'Did you mean "low"?'),
        ("INSERT INTO t VALUES (1, 2);", "Cannot insert values into read-only table: T"),
        ("INSERT INTO w VALUES (1);", "Cannot insert values into windowed stream or table: W"),
        ("INSERT INTO h VALUES (NULL, 1);", "Cannot insert into HEADER columns: H"),
        ("INSERT INTO s (rowoffset) VALUES (1);", "column `ROWOFFSET` is not allowed."),
        ("INSERT INTO s (x) VALUES (1);", "Column name `X` does not exist."),
        ("INSERT INTO s (v, v) VALUES (1, 2);", "a column is named twice"),
        ("INSERT INTO s (v) VALUES (1, 2);", "Expected a value for each column."),
    ],
)
def test_what_cannot_be_written_is_refused(text: str, error: str) -> None:
    with pytest.raises(StatementFailed) as refusal:
        columns(text)
    assert error in refusal.value.message
