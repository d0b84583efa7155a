"""Screen: where the shell writes: the terminal, and a spool file beside it."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import IO

from rich.console import Console, RenderableType
from rich.text import Text

from sql.errors import StatementFailed

# Of output that no terminal shows: columns whose values are not known yet share this width.
PLAIN_WIDTH = 120
# There tables are as wide as what is in them: nothing is cut or wrapped.
UNBOUNDED_WIDTH = 1_000_000


class OutputFormat(Enum):
    """How answers are written."""

    TABULAR = "TABULAR"
    JSON = "JSON"


@dataclass(slots=True)
class DisplaySettings:
    """What `output` and `set cli` change."""

    format: OutputFormat = OutputFormat.TABULAR
    wrap: bool = True
    column_width: int = 0  # 0: as the terminal allows


class ShellConsole(Console):
    """A console that leaves a closed pipe to the command, instead of ending the process."""

    def on_broken_pipe(self) -> None:
        """As any other output."""
        raise BrokenPipeError


class Screen:
    """Writes answers. One thread uses it."""

    def __init__(
        self, console: Console, look: DisplaySettings | None = None, *, is_bounded: bool = True
    ) -> None:
        """To a console; what is spooled has its width, and no colours."""
        self.console = console
        # Whether lines must fit: those of a file or a pipe need not.
        self.is_bounded = is_bounded
        self.look = look or DisplaySettings()
        self._spool: IO[str] | None = None
        self._spool_console: Console | None = None

    @staticmethod
    def of(file: IO[str] | None = None, *, width: int | None = None) -> "Screen":
        """A screen on a file or standard output; plain and of any width if no terminal."""
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
        """Characters in a line, as it is now."""
        return self.console.width if self.is_bounded else PLAIN_WIDTH

    @property
    def as_json(self) -> bool:
        """Whether answers are lines of JSON."""
        return self.look.format is OutputFormat.JSON

    def show(self, what: RenderableType) -> None:
        """Write a table or a styled text."""
        self.console.print(what)
        if self._spool_console is not None:
            self._spool_console.print(what)

    def line(self, text: str, style: str = "") -> None:
        """Write a line as it is, however long."""
        shown = Text(clean(text, keep="\n"), style)
        self.console.print(shown, soft_wrap=True)
        if self._spool_console is not None:
            self._spool_console.print(shown, soft_wrap=True)

    def clear(self) -> None:
        """Empty the terminal."""
        self.console.clear()

    def spool(self, path: Path | None) -> None:
        """Write everything into a file, too; None: no more."""
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
    """A string without characters that control a terminal.

    >>> clean("red: \\x1b[31m")
    'red:  [31m'
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in keep else " " for sign in text)
