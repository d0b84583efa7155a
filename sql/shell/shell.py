"""Shell: executes statements and shows their results."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice

from rich.text import Text

from broker.clock import Clock, SystemClock
from broker.errors import MillstreamError
from sql.errors import SqlError, StatementFailed
from sql.functions.json_documents import document_text
from sql.parse import parse_statement
from sql.shell.rendering import failed, rendered
from sql.shell.row_table import RowTable, cell_text, fitted_widths, row_json, shared_widths
from sql.shell.screen import Screen
from sql.shell.session import EntityJson, QueryRows, SessionScope, ShellSession
from sql.shell.statements import ShellInput, shell_input, with_semicolon
from sql.syntax.statements import DefineVariable, SetProperty, UndefineVariable, UnsetProperty
from sql.variables import split_statements, substitute

logger = logging.getLogger(__name__)

SESSION_WORDS = frozenset({"SET", "UNSET", "DEFINE", "UNDEFINE"})
CATALOG_WORDS = frozenset({"CREATE", "DROP", "ALTER"})
# The rows of a pull query that determine the widths of columns.
SIZED_ROWS = 1_000


class ExitShell(Exception):
    """Raised by the command `exit`."""


class CommandFailed(StatementFailed):
    """A statement in the command log failed; its result was shown."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The limits after which the shell ends queries."""

    rows: int | None = None
    timeout_ms: int | None = None


@dataclass(slots=True)
class Shell:
    """Executes the statements of one user. One thread uses it."""

    session: ShellSession
    screen: Screen
    # Executes shell commands, which are not statements.
    command: Callable[["Shell", ShellInput], None]
    limits: QueryLimits = QueryLimits()
    scope: SessionScope = field(default_factory=SessionScope)
    clock: Clock = field(default_factory=SystemClock)
    # Whether Ctrl-C ends only the running query.
    interactive: bool = False
    history: Callable[[], Sequence[str]] = tuple
    # Called before each SELECT and PRINT: a bounded engine must run its queries first.
    before_query: Callable[[], None] = lambda: None
    on_catalog_change: Callable[[], None] = lambda: None

    def run(self, text: str) -> None:
        """Execute all statements and commands of a text; the first error ends it."""
        for part in split_statements(text):
            self._run(shell_input(part.text if part.is_complete else with_semicolon(part.text)))

    def attempt(self, text: str) -> None:
        """The same, but shows errors instead of raising them."""
        try:
            self.run(text)
        except CommandFailed:
            return
        except (MillstreamError, OSError) as error:
            self.screen.line(f"error: {error}", "red")
        except KeyboardInterrupt:
            self.screen.line("interrupted", "yellow")
        except ExitShell:
            raise
        except Exception as error:
            # A bug: the shell and its queries continue.
            logger.exception("a statement failed unexpectedly")
            self.screen.line(f"error: {type(error).__name__}: {error}", "red")

    def _run(self, asked: ShellInput) -> None:
        if asked.is_command:
            self.command(self, asked)
            return
        try:
            self._execute(asked)
        except SqlError as error:
            if not error.line:
                raise
            raise _LocatedError(error, asked.text) from error

    def _execute(self, asked: ShellInput) -> None:
        first = asked.words[0] if asked.words else ""
        if first in SESSION_WORDS:
            self._change_scope(asked.text)
        elif first == "SELECT":
            self.before_query()
            self._query(asked)
        elif first == "PRINT":
            self.before_query()
            self._print(asked.text)
        else:
            for entity in self.session.execute(asked.text, self.scope):
                self.show_entity(entity)
            if first in CATALOG_WORDS:
                self.on_catalog_change()

    def show_entity(self, entity: EntityJson) -> None:
        """Show the result of a statement."""
        if self.screen.as_json:
            self.screen.line(document_text(entity, plain=True))
        else:
            self.screen.show(rendered(entity, plain=not self.screen.is_terminal))
        if failed(entity):
            raise CommandFailed(str(entity["commandStatus"].get("message")))

    # --- SET and DEFINE -----------------------------------------------------------------------

    def _change_scope(self, text: str) -> None:
        scope = self.scope
        statement = parse_statement(substitute(text, scope.variables))
        match statement:
            case SetProperty(name=name, value=value):
                self.session.check_property(name, value)
                before = scope.properties.get(name)
                scope.properties[name] = value
                was = "" if before is None else f" (it was '{before}')"
                self._say(f"'{name}' is set to '{value}'{was}")
            case UnsetProperty(name=name):
                known = scope.properties.pop(name, None) is not None
                self._say(f"'{name}' is {'unset' if known else 'not set'}")
            case DefineVariable(name=name, value=value):
                scope.variables[name.upper()] = value
            case UndefineVariable(name=name):
                if scope.variables.pop(name.upper(), None) is None:
                    raise StatementFailed(
                        f"Cannot undefine variable '{name}' which was never defined"
                    )

    def _say(self, text: str) -> None:
        """Show a line, unless the output is JSON."""
        if not self.screen.as_json:
            self.screen.line(text, "green")

    # --- queries ------------------------------------------------------------------------------

    def _query(self, asked: ShellInput) -> None:
        started_ms = self.clock.monotonic_ms()
        count = 0
        stopped = False
        with closing(self._begin(asked.text)) as answer:
            shown = self._shown_rows(answer, push=asked.is_push)
            try:
                for lines in shown:
                    for line in lines:
                        self.screen.line(line)
                    count += 1
            except KeyboardInterrupt:
                if not self.interactive:
                    raise
                stopped = True
            message = answer.final_message
        self._end(count, message, started_ms, stopped=stopped)

    def _begin(self, text: str) -> QueryRows:
        return self.session.query(text, self.scope, self.limits.timeout_ms)

    def _shown_rows(self, answer: QueryRows, *, push: bool) -> Iterator[Iterator[str]]:
        """The lines of each row; shows the header first."""
        names = [each.name for each in answer.columns]
        rows = islice(answer.rows(), self.limits.rows)
        if self.screen.as_json:
            yield from (iter((row_json(names, row),)) for row in rows)
            return
        cells = (list(map(cell_text, row)) for row in rows)
        look, width = self.screen.look, self.screen.width
        known: list[list[str]] = []
        if push:
            widths = shared_widths(len(names), width, look)
        else:
            known = list(islice(cells, SIZED_ROWS))
            widths = fitted_widths([names, *known], self.screen.console.width, look)
        is_bounded = self.screen.is_bounded or bool(look.column_width) or not look.wrap
        table = RowTable(widths, wrap=look.wrap, is_bounded=is_bounded)
        for line in table.header(names):
            self.screen.line(line, "bold")
        yield from map(table.row, known)
        yield from map(table.row, cells)
        self.screen.line(table.rule())

    def _end(self, count: int, message: str | None, started_ms: float, *, stopped: bool) -> None:
        if self.screen.as_json:
            return
        said_last = "Query terminated" if stopped else message
        parts = [said_last] if said_last else []
        parts.append(f"{count} {'row' if count == 1 else 'rows'}")
        text = ", ".join(parts)
        if self.screen.is_terminal:  # other output must be reproducible
            text += f" in {(self.clock.monotonic_ms() - started_ms) / 1000:.2f} s"
        self.screen.show(Text(text, "dim"))

    def _print(self, text: str) -> None:
        found = self.session.print_topic(text, self.scope, self.limits.timeout_ms)
        with closing(found) as printed:
            try:
                for line in islice(printed.lines(), self.limits.rows):
                    self.screen.line(line)
            except KeyboardInterrupt:
                if not self.interactive:
                    raise
                self._say("PRINT stopped")


class _LocatedError(StatementFailed):
    """An error with its position in the statement."""

    def __init__(self, error: SqlError, text: str) -> None:
        super().__init__(error.message, hint=error.hint)
        self._text = error.show(text)

    def __str__(self) -> str:
        return self._text
