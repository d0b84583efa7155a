"""What the command prints: tables for people, JSON for programs, progress on standard error."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import click
import orjson
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

Row = Mapping[str, object]


class Output:
    """Where the results of one command go; `--json` switches from tables to JSON."""

    def __init__(self, *, as_json: bool) -> None:
        """Results on standard output, everything else on standard error."""
        self.as_json = as_json
        self.console = Console(highlight=False)
        self.progress_console = Console(stderr=True, highlight=False)

    def rows(self, rows: Sequence[Row], *, title: str = "", empty: str = "nothing found") -> None:
        """A list of things: a table, or a JSON array."""
        if self.as_json:
            self._json(list(rows))
        elif not rows:
            self.console.print(empty, style="dim")
        else:
            self.console.print(table(rows, title))

    def record(self, record: Row, *, title: str = "") -> None:
        """One thing: its fields, or a JSON object."""
        if self.as_json:
            self._json(record)
            return
        table = Table(title=title or None, show_header=False, title_justify="left")
        for name, value in record.items():
            table.add_row(name, _text(value), style=None)
        self.console.print(table)

    def line(self, record: Row, text: str) -> None:
        """One of many, as it comes: a line of text, or a line of JSON."""
        if self.as_json:
            self._json(record)
        else:
            self.console.print(text, markup=False, soft_wrap=True)

    def done(self, text: str, **facts: object) -> None:
        """A change was made: a sentence, or an object with the facts."""
        if self.as_json:
            self._json({"ok": True, **facts})
        else:
            self.console.print(f"[green]✓[/green] {text}")

    def _json(self, value: object) -> None:
        click.echo(orjson.dumps(value, default=str).decode())

    @contextmanager
    def progress(self, text: str) -> Iterator[None]:
        """A spinner with the time taken, when somebody looks."""
        if self.as_json or not sys.stderr.isatty():
            yield
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=self.progress_console, transient=True) as progress:
            progress.add_task(text)
            yield


def table(rows: Sequence[Row], title: str) -> Table:
    """Rows as a table; their names head the columns."""
    shown = Table(title=title or None, title_justify="left", header_style="bold")
    for name in rows[0] if rows else ():
        numeric = all(isinstance(row.get(name), int | float | None) for row in rows)
        shown.add_column(name.replace("_", " "), justify="right" if numeric else "left")
    for row in rows:
        shown.add_row(*(_text(row.get(name)) for name in rows[0]))
    return shown


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in value)
    return str(value)
