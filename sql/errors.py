"""Errors of SQL: what is wrong, where in the SQL text, what to do.

SqlError (MillstreamError)
├── SyntaxFailed      the text is not a valid statement
├── StatementFailed   a statement cannot be executed: unknown names, wrong types, other rules
└── RecordFailed      a record that a running query cannot process
"""

from collections.abc import Iterator
from contextlib import contextmanager

from broker.errors import MillstreamError
from sql.connector_masks import hidden_values, masked

SHOWN_MAX = 100  # characters of a line that are shown around a position


class SqlError(MillstreamError):
    """A mistake in SQL; `line` and `column` count from 1, or are 0 without a single position."""

    def __init__(self, message: str, *, line: int = 0, column: int = 0, hint: str = "") -> None:
        at = f"line {line}, column {column}" if line else ""
        super().__init__(message, at=at, hint=hint)
        self.line = line
        self.column = column
        # The failed statement of a script, and the results of those before it.
        self.statement = ""
        self.answers: tuple[object, ...] = ()

    def show(self, text: str) -> str:
        """The error with the line of the SQL text, and a mark below the position.

        >>> print(SqlError("what?", line=1, column=8).show("SELECT ? FROM s"))
        what?
          at: line 1, column 8:  SELECT ? FROM s
                                        ^
        """
        lines = text.split("\n")
        if not 0 < self.line <= len(lines):
            return str(self)
        shown, place = _around(lines[self.line - 1], self.column - 1)
        at = f"  at: {self.at}:  "
        parts = [self.message.rstrip(), at + shown, " " * (len(at) + place) + "^"]
        if self.hint:
            parts.append(f"  hint: {self.hint}")
        return "\n".join(parts)


class SyntaxFailed(SqlError):
    """The text is not a valid statement."""


class StatementFailed(SqlError):
    """A statement that cannot be executed."""


class RecordFailed(SqlError):
    """A record that a running query cannot process."""


@contextmanager
def of_statement(text: str) -> Iterator[None]:
    """Errors inside the block name their statement."""
    try:
        yield
    except SqlError as error:
        error.statement = error.statement or masked(text)
        for value in hidden_values(text):
            error.message = error.message.replace(value, "[string]")
            error.hint = error.hint.replace(value, "[string]")
        raise


def _around(line: str, place: int) -> tuple[str, int]:
    """The part of a line around a position, one column per character, and the position in it."""
    start = max(0, min(place - SHOWN_MAX // 2, len(line) - SHOWN_MAX))
    before, after = "..." if start else "", "..." if start + SHOWN_MAX < len(line) else ""
    part = line[start : start + SHOWN_MAX]
    shown = "".join(sign if sign.isprintable() else " " for sign in part)
    return f"{before}{shown}{after}", len(before) + place - start
