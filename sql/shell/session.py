"""Session: what carries out the shell's statements, an engine in this process or a server.

Answers are JSON as ksqlDB's REST API has it, whichever it is: nobody else has to know.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

# Any: JSON holds values of all kinds.
EntityJson = dict[str, Any]


@dataclass(slots=True)
class Scope:
    """What SET and DEFINE have said; names of variables are in upper case."""

    properties: dict[str, object] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of a result, and its type as text."""

    name: str
    type: str


class Rows(Protocol):
    """The answer of a query; closed when nobody wants it any more."""

    @property
    def columns(self) -> Sequence[ShownColumn]:
        """What its rows have."""
        ...

    @property
    def final_message(self) -> str | None:
        """What is said at the end, once it is there."""
        ...

    def rows(self) -> Iterator[Sequence[object]]:
        """The rows as values of JSON, until the end or until the time is up."""
        ...

    def close(self) -> None:
        """Stop."""
        ...


class Lines(Protocol):
    """The answer of a PRINT."""

    def lines(self) -> Iterator[str]:
        """The lines, until the end or until the time is up."""
        ...

    def close(self) -> None:
        """Stop."""
        ...


class Session(Protocol):
    """Carries out statements, one at a time."""

    @property
    def where(self) -> str:
        """What statements are sent to, for people."""
        ...

    def version(self) -> str:
        """The version of what carries out the statements."""
        ...

    def execute(self, text: str, scope: Scope) -> list[EntityJson]:
        """Carry out a statement that is no query."""
        ...

    def query(self, text: str, scope: Scope, timeout_ms: int | None) -> Rows:
        """Begin a query."""
        ...

    def print_topic(self, text: str, scope: Scope, timeout_ms: int | None) -> Lines:
        """Begin a PRINT."""
        ...

    def check_property(self, name: str, value: str) -> None:
        """Refuse what SET may not set."""
        ...

    def close(self) -> None:
        """Leave."""
        ...
