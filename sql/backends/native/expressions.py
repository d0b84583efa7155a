"""Typed expressions as functions of rows: one generated Python function for each step.

The fast function computes all expressions together. If anything raises, a careful one computes the
same row again, expression by expression: one that raises is null, and its error is passed to `log`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import cast

from sql.backends.native.expression_code import ExpressionWriter
from sql.backends.native.source_code import Names
from sql.errors import StatementFailed
from sql.expressions import ColumnValue, TypedExpression
from sql.rows.row_format import Row

# Called with an error and its row.
Log = Callable[[Exception, Row], None]
RowFunction = Callable[[Row], Row]
Predicate = Callable[[Row], bool]
Write = Callable[[Sequence[TypedExpression], Names], str]


def compile_row_function(expressions: Sequence[TypedExpression], log: Log) -> RowFunction:
    """Computes the values of several expressions; one that raises is null."""
    if len(expressions) > 1 and all(isinstance(each, ColumnValue) for each in expressions):
        return itemgetter(*(each.index for each in expressions if isinstance(each, ColumnValue)))
    names = Names()
    return cast(RowFunction, _compiled(_row_source, expressions, names, log))


def compile_predicate(condition: TypedExpression, log: Log) -> Predicate:
    """Whether a condition is true; one that raises, or is null, is not."""
    names = Names()
    return cast(Predicate, _compiled(_predicate_source, [condition], names, log))


def careful_row_function(expressions: Sequence[TypedExpression], log: Log) -> RowFunction:
    """The same, for a row for which an error was raised."""
    return cast(RowFunction, _compiled(_row_source, expressions, Names(), log, "careful_compute"))


def careful_predicate(condition: TypedExpression, log: Log) -> Predicate:
    """The same, for a row for which an error was raised."""
    return cast(
        Predicate, _compiled(_predicate_source, [condition], Names(), log, "careful_compute")
    )


def row_source(expressions: Sequence[TypedExpression]) -> str:
    """The source of the function that computes several expressions."""
    return _row_source(expressions, Names())


def _row_source(expressions: Sequence[TypedExpression], names: Names) -> str:
    fast, careful = ExpressionWriter(names), ExpressionWriter(names, "guard")
    shown = "".join(f"{fast.code(each).text}, " for each in expressions)
    lines = [
        "def compute(row):",
        "    try:",
        f"        return ({shown})",
        "    except Exception:",
        "        return careful_compute(row)",
        "def careful_compute(row):",
        "    def guard(part):",
        "        return guarded(part, row)",
    ]
    for index, expression in enumerate(expressions):
        lines += [
            "    try:",
            f"        c{index} = {careful.code(expression).text}",
            "    except Exception as error:",
            f"        c{index} = None",
            "        log(error, row)",
        ]
    lines.append(f"    return ({''.join(f'c{index}, ' for index in range(len(expressions)))})")
    return "\n".join([*names.functions, *lines])


def _predicate_source(conditions: Sequence[TypedExpression], names: Names) -> str:
    (condition,) = conditions
    fast = ExpressionWriter(names).code(condition)
    careful = ExpressionWriter(names, "guard").code(condition)
    lines = [
        "def compute(row):",
        "    try:",
        f"        return {fast.text}{' is True' if fast.nullable else ''}",
        "    except Exception:",
        "        return careful_compute(row)",
        "def careful_compute(row):",
        "    def guard(part):",
        "        return guarded(part, row)",
        "    try:",
        f"        return {careful.text} is True",
        "    except Exception as error:",
        "        log(error, row)",
        "        return False",
    ]
    return "\n".join([*names.functions, *lines])


def _compiled(
    write: Write,
    expressions: Sequence[TypedExpression],
    names: Names,
    log: Log,
    function: str = "compute",
) -> object:
    def guarded(part: Callable[[], object], row: Row) -> object:
        try:
            return part()
        except Exception as error:  # the result is null, whatever a function raises
            log(error, row)
            return None

    with refusing_depth():
        source = write(expressions, names)
        return compiled(source, {**names.namespace, "log": log, "guarded": guarded})[function]


def compiled(source: str, names: dict[str, object]) -> dict[str, object]:
    """The function that the source defines, with the names that it uses."""
    namespace = dict(names)
    exec(compile(source, "<sql expressions>", "exec"), namespace)
    return namespace


@contextmanager
def refusing_depth() -> Iterator[None]:
    """Convert errors about deeply nested source to StatementFailed."""
    try:
        yield
    except (SyntaxError, RecursionError, MemoryError):
        raise StatementFailed(
            "the expression is nested too deeply", hint="compute parts of it in an earlier query"
        ) from None
