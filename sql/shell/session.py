"""ShellSession: executes the shell's statements on an engine in this process or on a server.

Both give responses as JSON of ksqlDB's REST API, so the shell need not know which one it uses.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

# Any: JSON holds values of all kinds.
EntityJson = dict[str, Any]


@dataclass(slots=True)
class SessionScope:
    """Properties of SET and variables of DEFINE; names of variables are in upper case."""

    properties: dict[str, object] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of a result, and its type as text."""

    name: str
    type: str


class QueryRows(Protocol):
    """The result of a query; the caller closes it."""

    @property
    def columns(self) -> Sequence[ShownColumn]:
        """What its rows have."""
        ...

    @property
    def final_message(self) -> str | None:
        """The final message, once it is there."""
        ...

    def rows(self) -> Iterator[Sequence[object]]:
        """The rows as values of JSON, until the end or until the time is up."""
        ...

    def close(self) -> None:
        """Stop."""
        ...


class PrintedLines(Protocol):
    """The answer of a PRINT."""

    def lines(self) -> Iterator[str]:
        """The lines, until the end or until the time is up."""
        ...

    def close(self) -> None:
        """Stop."""
        ...


class ShellSession(Protocol):
    """Executes statements, one at a time."""

    @property
    def where(self) -> str:
        """What statements are sent to, for people."""
        ...

    def version(self) -> str:
        """The version of the engine or server."""
        ...

    def execute(self, text: str, scope: SessionScope) -> list[EntityJson]:
        """Execute a statement that is not a query."""
        ...

    def query(self, text: str, scope: SessionScope, timeout_ms: int | None) -> QueryRows:
        """Begin a query."""
        ...

    def print_topic(self, text: str, scope: SessionScope, timeout_ms: int | None) -> PrintedLines:
        """Begin a PRINT."""
        ...

    def check_property(self, name: str, value: str) -> None:
        """Refuse what SET may not set."""
        ...

    def close(self) -> None:
        """Leave."""
        ...
