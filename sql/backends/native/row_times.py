"""TIMESTAMP columns: the timestamp of a row, from a number, a timestamp, or a string."""

from collections.abc import Callable, Sequence

from sql.catalog import TimestampColumn
from sql.datatypes import STRING, Column
from sql.errors import RecordFailed, StatementFailed
from sql.rows.row_format import Row


def time_reader(column: TimestampColumn, columns: Sequence[Column]) -> Callable[[Row], int]:
    """A function from a row to its timestamp; raises if the column has none."""
    names = [each.name for each in columns]
    if column.name not in names:
        raise StatementFailed(
            f"The TIMESTAMP column set in the WITH clause does not exist: `{column.name}`"
        )
    index = names.index(column.name)
    if columns[index].type is STRING:
        parse = _parser(column)
        return lambda row: parse(_present(row[index], column.name))

    def read(row: Row) -> int:
        value = _present(row[index], column.name)
        assert isinstance(value, int), "checked when the source was created"
        return value

    return read


def _present(value: object, name: str) -> object:
    if value is None:
        raise RecordFailed(f"the timestamp column `{name}` is null")
    return value


def _parser(column: TimestampColumn) -> Callable[[object], int]:
    from sql.functions.builtin import builtin_functions

    pattern = column.pattern
    if pattern is None:
        raise StatementFailed(f"the timestamp column `{column.name}` is a string and has no format")
    parse = builtin_functions().get("PARSE_TIMESTAMP").overloads[0]
    call = parse.call  # type: ignore[union-attr]

    def read(text: object) -> int:
        result = call(text, pattern)
        assert isinstance(result, int)
        return result

    return read
