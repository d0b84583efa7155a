"""Prompt: reads lines until a statement is complete, then executes it."""

from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import Output

from sql.shell.completion import SourceNames, SqlCompleter
from sql.shell.session import SessionScope
from sql.shell.shell import ExitShell, Shell
from sql.shell.statements import is_finished

PROMPT = "sql> "
CONTINUED = "  -> "


def history_in(path: Path | None) -> History:
    """The history of statements, in a file if it can be written."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)  # statements may hold passwords
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


class Prompt:
    """An interactive shell."""

    def __init__(
        self,
        shell: Shell,
        history: History,
        *,
        typed: Input | None = None,
        drawn: Output | None = None,
    ) -> None:
        """Uses the terminal, or another input and output."""
        self._shell = shell
        catalog = SourceNames(lambda text: shell.session.execute(text, SessionScope()))
        shell.interactive = True
        shell.on_catalog_change = catalog.forget
        shell.history = lambda: history.get_strings()
        self._prompts: PromptSession[str] = PromptSession(
            PROMPT,
            history=history,
            # Enter starts a new line until the statement is complete.
            multiline=Condition(lambda: not is_finished(get_app().current_buffer.text)),
            prompt_continuation=CONTINUED,
            completer=ThreadedCompleter(SqlCompleter(catalog)),
            complete_while_typing=False,
            lexer=PygmentsLexer.from_filename("statement.sql"),
            input=typed,
            output=drawn,
        )

    def run(self) -> None:
        """Execute statements until the user exits."""
        while True:
            try:
                text = self._prompts.prompt()
            except KeyboardInterrupt:
                continue  # discard the input
            except EOFError:
                return
            try:
                self._shell.attempt(text)
            except ExitShell:
                return
