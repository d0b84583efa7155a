"""A session whose answers are given, and screens that are texts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO

from rich.console import Console

from sql.errors import StatementFailed
from sql.shell.commands import run_command
from sql.shell.screen import Screen
from sql.shell.session import EntityJson, SessionScope, ShownColumn
from sql.shell.shell import QueryLimits, Shell

WIDTH = 60


class GivenRows:
    """Rows that are known; `interrupted`: Ctrl-C is pressed after the last."""

    def __init__(
        self,
        columns: Sequence[ShownColumn],
        found: Sequence[Sequence[object]],
        *,
        final_message: str | None = None,
        interrupted: bool = False,
    ) -> None:
        self.columns = columns
        self.final_message = final_message
        self.closed = False
        self._found = found
        self._interrupted = interrupted

    def rows(self) -> Iterator[Sequence[object]]:
        yield from self._found
        if self._interrupted:
            # The signal itself would do nothing in a run that was started in the background.
            raise KeyboardInterrupt

    def lines(self) -> Iterator[str]:
        for row in self.rows():
            yield str(row[0])

    def close(self) -> None:
        self.closed = True


@dataclass
class GivenSession:
    """Answers by statement; see Session."""

    entities: dict[str, list[EntityJson]] = field(default_factory=dict)
    answers: dict[str, GivenRows] = field(default_factory=dict)
    executed: list[str] = field(default_factory=list)
    scopes: list[SessionScope] = field(default_factory=list)
    timeouts: list[int | None] = field(default_factory=list)
    where: str = "nowhere"
    closed: bool = False

    def version(self) -> str:
        return "1.2.3"

    def execute(self, text: str, scope: SessionScope) -> list[EntityJson]:
        self.executed.append(text)
        self.scopes.append(SessionScope(dict(scope.properties), dict(scope.variables)))
        return self.entities.get(text, [])

    def query(self, text: str, scope: SessionScope, timeout_ms: int | None) -> GivenRows:
        self.executed.append(text)
        self.timeouts.append(timeout_ms)
        if text not in self.answers:
            raise StatementFailed("no such query", line=1, column=8, hint="ask another")
        return self.answers[text]

    def print_topic(self, text: str, scope: SessionScope, timeout_ms: int | None) -> GivenRows:
        return self.query(text, scope, timeout_ms)

    def check_property(self, name: str, value: str) -> None:
        if not name.startswith("known"):
            raise StatementFailed(f"Unknown property: {name}")

    def close(self) -> None:
        self.closed = True


def plain_screen(width: int = WIDTH) -> tuple[Screen, StringIO]:
    """A screen as programs see it, and what was written."""
    written = StringIO()
    return Screen(Console(file=written, width=width, color_system=None, highlight=False)), written


def shell_of(
    session: GivenSession, limits: QueryLimits | None = None, *, width: int = WIDTH
) -> tuple[Shell, StringIO]:
    """A shell on a session, and what it writes."""
    screen, written = plain_screen(width)
    return Shell(session, screen, run_command, limits or QueryLimits()), written


ID = ShownColumn("ID", "STRING")
TOTAL = ShownColumn("TOTAL", "BIGINT")
