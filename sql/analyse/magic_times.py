"""Strings compared with ROWTIME, WINDOWSTART or WINDOWEND are timestamps."""

from broker.java.times import parse_timestamp
from sql.errors import StatementFailed
from sql.schema import ROWTIME, WINDOWEND, WINDOWSTART
from sql.syntax.expressions import Expression, IntegerLiteral, Name, StringLiteral

TIME_COLUMNS = frozenset(each.name for each in (ROWTIME, WINDOWSTART, WINDOWEND))
HELP = (
    "\nRequired format is: \"yyyy-MM-dd'T'HH:mm:ss.SSS\", with an optional numeric 4-digit "
    "timezone, for example: '2020-05-26T23:59:58.000' or with tz: '2020-05-26T23:59:58.000+0200'. "
    "A trailing 'Z' instead of tz indicates the zero UTC offset. "
    'Partials are also supported, for example "2020-05-26"'
)


def as_milliseconds(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Both sides of a comparison; a string compared with a time column becomes milliseconds."""
    if _is_time(left) and isinstance(right, StringLiteral):
        return left, _milliseconds(right)
    if _is_time(right) and isinstance(left, StringLiteral):
        return _milliseconds(left), right
    return left, right


def _is_time(expression: Expression) -> bool:
    return isinstance(expression, Name) and expression.name in TIME_COLUMNS


def _milliseconds(literal: StringLiteral) -> IntegerLiteral:
    place = literal.position
    try:
        return IntegerLiteral(parse_timestamp(literal.value), position=place)
    except ValueError as error:
        raise StatementFailed(
            f"Failed to parse timestamp '{literal.value}': {error}{HELP}",
            line=place.line,
            column=place.column,
        ) from None
