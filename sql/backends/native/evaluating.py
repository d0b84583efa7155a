"""Evaluating: expressions as functions of rows, including the handling of errors."""

from collections.abc import Callable, Sequence

from sql.backends.native.expressions import Log, compile_predicate, compile_row_function
from sql.expressions import TypedExpression
from sql.functions.registry import TableOverload
from sql.rows.row_format import Row


def row_function(expressions: Sequence[TypedExpression], log: Log) -> Callable[[Row], Row]:
    """The values of some expressions; one that raises is null."""
    return compile_row_function(expressions, log)


def predicate(condition: TypedExpression, log: Log) -> Callable[[Row], bool]:
    """Whether a condition is true; one that raises is not."""
    return compile_predicate(condition, log)


def group_function(expressions: Sequence[TypedExpression], log: Log) -> Callable[[Row], Row | None]:
    """The group of a row; None if any of its values is null."""
    values = row_function(expressions, log)

    def group(row: Row) -> Row | None:
        found = values(row)
        return None if None in found else found

    return group


def table_function(
    overload: TableOverload, given: Sequence[TypedExpression], log: Log
) -> Callable[[Row], Sequence[object]]:
    """The rows that a table function returns; none if it or an argument raises."""
    failed = False

    def note(error: Exception, row: Row) -> None:
        nonlocal failed
        failed = True
        log(error, row)

    arguments = row_function(given, note)
    call, wants_nulls = overload.call, overload.nulls

    def rows(row: Row) -> Sequence[object]:
        nonlocal failed
        failed = False
        values = arguments(row)
        if failed or (None in values and not wants_nulls):
            return ()
        try:
            found = call(*values)
        except Exception as error:  # a user-defined function may raise anything
            log(error, row)
            return ()
        return () if found is None else list(found)

    return rows
