"""The output of commands: tables or JSON, with progress on standard error.

Names and values are data: they are never interpreted as markup. In a terminal, tables are at most
as wide as the terminal; in a file or a pipe they are as wide as their values, so that nothing is
truncated.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import click
import orjson
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

Row = Mapping[str, object]

# The width of output that is not a terminal.
UNBOUNDED_WIDTH = 1_000_000


class PlainConsole(Console):
    """A console without markup, which leaves a closed pipe to the command."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)
        if not self.is_terminal:
            self._color_system = None
            self.width = UNBOUNDED_WIDTH

    def on_broken_pipe(self) -> None:
        """Raise, as other output does, so that the command closes everything and ends."""
        raise BrokenPipeError


class Output:
    """Prints the results of one command, as tables or, with `--json`, as JSON."""

    def __init__(self, *, as_json: bool) -> None:
        """Results on standard output, everything else on standard error."""
        self.as_json = as_json
        self.console = PlainConsole()
        self.progress_console = PlainConsole(stderr=True)

    def rows(self, rows: Sequence[Row], *, title: str = "", empty: str = "nothing found") -> None:
        """Print rows: a table, or a JSON array."""
        if self.as_json:
            self._json(list(rows))
        elif not rows:
            self.console.print(Text(empty, "dim"))
        else:
            self.console.print(table(rows, title))

    def record(self, record: Row, *, title: str = "") -> None:
        """Print one record: its fields, or a JSON object."""
        if self.as_json:
            self._json(record)
            return
        table = _table(title, show_header=False)
        table.add_column(overflow="fold")
        table.add_column(overflow="fold")
        for name, value in record.items():
            table.add_row(Text(name), _text(value))
        self.console.print(table)

    def line(self, record: Row, text: str) -> None:
        """Print one of many records: a line of text, or a line of JSON."""
        if self.as_json:
            self._json(record)
        else:
            click.echo(text, color=True)  # data is printed unchanged, with its control characters

    def done(self, text: str, **fields: object) -> None:
        """Report a change: a sentence, or a JSON object."""
        if self.as_json:
            self._json({"ok": True, **fields})
        else:
            self.console.print(Text.assemble(("✓", "green"), f" {text}"), soft_wrap=True)

    def _json(self, value: object) -> None:
        click.echo(json_text(value))

    @contextmanager
    def progress(self, text: str) -> Iterator[None]:
        """A spinner with the elapsed time, on a terminal."""
        if self.as_json or not sys.stderr.isatty():
            yield
            return
        shown = TextColumn("{task.description}", markup=False)
        columns = (SpinnerColumn(), shown, TimeElapsedColumn())
        with Progress(*columns, console=self.progress_console, transient=True) as progress:
            progress.add_task(text)
            yield

    @contextmanager
    def counting(self, text: str, total: int) -> Iterator[Callable[[str], None]]:
        """A progress bar that moves by one at each call, with a description, on a terminal."""
        if self.as_json or not sys.stderr.isatty():
            yield lambda _: None
            return
        shown = TextColumn("{task.description}", markup=False)
        columns = (shown, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.progress_console, transient=True) as progress:
            task = progress.add_task(text, total=total)
            yield lambda words: progress.update(task, advance=1, description=f"{text}: {words}")


def json_text(value: object) -> str:
    """A line of JSON."""
    return orjson.dumps(value, default=str).decode()


def table(rows: Sequence[Row], title: str) -> Table:
    """Format rows as a table, with their names as headings."""
    shown = _table(title, show_header=True)
    for name in rows[0] if rows else ():
        numeric = all(isinstance(row.get(name), int | float | None) for row in rows)
        heading = Text(name.replace("_", " "))
        shown.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(_text(row.get(name)) for name in rows[0]))
    return shown


def _table(title: str, *, show_header: bool) -> Table:
    return Table(
        title=Text(title) if title else None,
        title_justify="left",
        header_style="bold",
        show_header=show_header,
    )


def _text(value: object) -> Text:
    """A cell: Text, because a string would be interpreted as markup."""
    return Text(_string(value))


def _string(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_string(item) for item in value)
    return str(value)
