"""Errors of SQL: what is wrong, where in the text, what to do.

SqlError (MillstreamError)
├── SyntaxFailed      the text is no statement
├── StatementFailed   a statement that says something impossible: unknown names, wrong types, rules
└── ProcessingFailed  a record that a running query cannot process
"""

from broker.errors import MillstreamError


class SqlError(MillstreamError):
    """A mistake in SQL; `line` and `column` count from 1, or are 0 when there is no one place."""

    def __init__(self, message: str, *, line: int = 0, column: int = 0, hint: str = "") -> None:
        """The place is shown as text by who has the text."""
        at = f"line {line}, column {column}" if line else ""
        super().__init__(message, at=at, hint=hint)
        self.line = line
        self.column = column


class SyntaxFailed(SqlError):
    """The text is no statement."""


class StatementFailed(SqlError):
    """A statement that cannot be carried out."""


class ProcessingFailed(SqlError):
    """A record that a running query cannot process."""
