"""Screen: the output of the shell: the terminal and, optionally, a spool file."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO

from rich.console import Console, RenderableType
from rich.text import Text

from sql.errors import StatementFailed

# For output without a terminal: columns with unknown values share this width.
PLAIN_WIDTH = 120
# For output without a terminal: tables are as wide as their values, without cuts or wraps.
UNBOUNDED_WIDTH = 1_000_000


class OutputFormat(Enum):
    """The format of results."""

    TABULAR = "TABULAR"
    JSON = "JSON"


@dataclass(slots=True)
class DisplaySettings:
    """The settings of `output` and `set cli`."""

    format: OutputFormat = OutputFormat.TABULAR
    wrap: bool = True
    column_width: int = 0  # 0: as the terminal allows


class ShellConsole(Console):
    """A console that raises an error for a closed pipe, instead of ending the process."""

    def on_broken_pipe(self) -> None:
        """Raise the error as for any other output."""
        raise BrokenPipeError


class Screen:
    """Writes results. One thread uses it."""

    def __init__(
        self, console: Console, look: DisplaySettings | None = None, *, is_bounded: bool = True
    ) -> None:
        """The spool file has the width of the console, and no colours."""
        self.console = console
        # Whether lines must fit the width: not in a file or a pipe.
        self.is_bounded = is_bounded
        self.look = look or DisplaySettings()
        self._spool: IO[str] | None = None
        self._spool_console: Console | None = None

    @staticmethod
    def of(file: IO[str] | None = None, *, width: int | None = None) -> "Screen":
        """A screen on a file or standard output; plain and unbounded if it is not a terminal."""
        console = ShellConsole(file=file, highlight=False, width=width)
        if console.is_terminal or width is not None:
            return Screen(console)
        plain = ShellConsole(file=file, highlight=False, color_system=None, width=UNBOUNDED_WIDTH)
        return Screen(plain, is_bounded=False)

    @property
    def is_terminal(self) -> bool:
        """Whether the output is a terminal."""
        return self.console.is_terminal

    @property
    def width(self) -> int:
        """The current number of characters per line."""
        return self.console.width if self.is_bounded else PLAIN_WIDTH

    @property
    def as_json(self) -> bool:
        """Whether results are lines of JSON."""
        return self.look.format is OutputFormat.JSON

    def show(self, what: RenderableType) -> None:
        """Write a table or a styled text."""
        self.console.print(what)
        if self._spool_console is not None:
            self._spool_console.print(what)

    def line(self, text: str, style: str = "") -> None:
        """Write a line without wrapping."""
        shown = Text(clean(text, keep="\n"), style)
        self.console.print(shown, soft_wrap=True)
        if self._spool_console is not None:
            self._spool_console.print(shown, soft_wrap=True)

    def clear(self) -> None:
        """Clear the terminal."""
        self.console.clear()

    def spool(self, path: Path | None) -> None:
        """Also write everything to a file; None ends this."""
        if self._spool is not None:
            self._spool.close()
            self._spool = self._spool_console = None
        if path is None:
            return
        try:
            self._spool = path.expanduser().open("a", encoding="utf-8")
        except OSError as error:
            raise StatementFailed(f"cannot write to {path}: {error.strerror}") from error
        self._spool_console = Console(
            file=self._spool, highlight=False, color_system=None, width=self.console.width
        )


def clean(text: str, keep: str = "") -> str:
    r"""A string without terminal control characters.

    >>> clean("red: \x1b[31m")
    'red:  [31m'
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in keep else " " for sign in text)
