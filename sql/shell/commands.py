"""Commands of the shell itself: help, exit, output, spool and so on."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from sql.client import SqlClient
from sql.errors import StatementFailed
from sql.shell.help import help_lines
from sql.shell.remote import RemoteSession
from sql.shell.screen import OutputFormat
from sql.shell.shell import ExitShell, Shell
from sql.shell.statements import ShellInput

SCRIPT_DEPTH_MAX = 10
COLUMN_WIDTH_MAX = 10_000
ON_OFF = {"ON": True, "OFF": False}
depth: ContextVar[int] = ContextVar("depth", default=0)


def run_command(shell: Shell, asked: ShellInput) -> None:
    """Execute a shell command."""
    COMMANDS[asked.words[0]](shell, asked.argument)


def _help(shell: Shell, argument: str) -> None:
    for line in help_lines(argument):
        shell.screen.line(line)


def _exit(shell: Shell, argument: str) -> None:
    raise ExitShell


def _clear(shell: Shell, argument: str) -> None:
    shell.screen.clear()


def _history(shell: Shell, argument: str) -> None:
    for number, text in enumerate(shell.history(), start=1):
        shell.screen.line(f"{number:4}  {text}")


def _version(shell: Shell, argument: str) -> None:
    shell.screen.line(shell.session.version())


def _output(shell: Shell, argument: str) -> None:
    look = shell.screen.look
    if argument:
        try:
            look.format = OutputFormat(argument.upper())
        except ValueError:
            raise StatementFailed(
                f'unknown output format "{argument}": use TABULAR or JSON'
            ) from None
    shell.screen.line(f"output is {look.format.value}")


def _server(shell: Shell, argument: str) -> None:
    if argument:
        opened = RemoteSession(SqlClient(_unquoted(argument)))
        before, shell.session = shell.session, opened
        before.close()
        shell.on_catalog_change()
    shell.screen.line(shell.session.where)


def _spool(shell: Shell, argument: str) -> None:
    if not argument:
        raise StatementFailed("spool needs a file or OFF")
    off = argument.upper() == "OFF"
    shell.screen.spool(None if off else Path(_unquoted(argument)))
    shell.screen.line("spooling ended" if off else f"spooling to {_unquoted(argument)}")


def _request_pipelining(shell: Shell, argument: str) -> None:
    shell.screen.line("request-pipelining is OFF: each statement waits for the previous one")


def _run(shell: Shell, argument: str) -> None:
    file = "".join(argument.split(None, 1)[1:])  # after "script"
    run_script(shell, Path(_unquoted(file)))


def run_script(shell: Shell, path: Path) -> None:
    """Execute the statements of a file."""
    with _nested():
        shell.run(script_text(path))


def script_text(path: Path) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StatementFailed(f'cannot read the script "{path}": {error}') from error


@contextmanager
def _nested() -> Iterator[None]:
    if depth.get() >= SCRIPT_DEPTH_MAX:
        raise StatementFailed("the scripts run each other in a loop")
    before = depth.set(depth.get() + 1)
    try:
        yield
    finally:
        depth.reset(before)


def _set(shell: Shell, argument: str) -> None:
    words = [each.strip("'").upper() for each in argument.split()[1:]]  # after "cli"
    name, value = words if len(words) == 2 else ("", "")
    look = shell.screen.look
    if name == "WRAP" and value in ON_OFF:
        look.wrap = ON_OFF[value]
    elif name == "COLUMN-WIDTH" and value.isdecimal() and int(value) <= COLUMN_WIDTH_MAX:
        look.column_width = int(value)
    else:
        raise StatementFailed(
            f"unknown shell setting: {' '.join(words).lower()}",
            hint="set cli wrap on | off, set cli column-width n",
        )
    shell.screen.line(f"{name.lower()} is {value.lower()}")


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


COMMANDS: Mapping[str, Callable[[Shell, str], None]] = {
    "HELP": _help,
    "EXIT": _exit,
    "QUIT": _exit,
    "CLEAR": _clear,
    "HISTORY": _history,
    "VERSION": _version,
    "OUTPUT": _output,
    "SERVER": _server,
    "SPOOL": _spool,
    "REQUEST": _request_pipelining,
    "RUN": _run,
    "SET": _set,
}
