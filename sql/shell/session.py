"""ShellSession: executes the shell's statements on an engine in this process or on a server.

Both return JSON as in ksqlDB's REST API, so that the shell does not depend on which one it uses.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

# Any: JSON values have any type.
EntityJson = dict[str, Any]


@dataclass(slots=True)
class SessionScope:
    """Properties of SET and variables of DEFINE; names of variables are in upper case."""

    properties: dict[str, object] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of a result, with its SQL type."""

    name: str
    type: str


class QueryRows(Protocol):
    """The result of a query; the caller closes it."""

    @property
    def columns(self) -> Sequence[ShownColumn]: ...

    @property
    def final_message(self) -> str | None:
        """The final message, once it is available."""
        ...

    def rows(self) -> Iterator[Sequence[object]]:
        """The rows as JSON values, until the end or the timeout."""
        ...

    def close(self) -> None:
        """Stop the query."""
        ...


class PrintedLines(Protocol):
    """The result of a PRINT."""

    def lines(self) -> Iterator[str]:
        """The lines, until the end or the timeout."""
        ...

    def close(self) -> None:
        """Stop the PRINT."""
        ...


class ShellSession(Protocol):
    """Executes statements, one at a time."""

    @property
    def where(self) -> str:
        """The target of statements, for messages."""
        ...

    def version(self) -> str:
        """The version of the engine or server."""
        ...

    def execute(self, text: str, scope: SessionScope) -> list[EntityJson]:
        """Execute a statement that is not a query."""
        ...

    def query(self, text: str, scope: SessionScope, timeout_ms: int | None) -> QueryRows:
        """Start a query."""
        ...

    def print_topic(self, text: str, scope: SessionScope, timeout_ms: int | None) -> PrintedLines:
        """Start a PRINT."""
        ...

    def check_property(self, name: str, value: str) -> None:
        """Refuse properties that SET may not set."""
        ...

    def close(self) -> None:
        """End the session."""
        ...
