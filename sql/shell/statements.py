"""What the shell has to know of a statement before it is sent: its first words, and its end."""

from dataclasses import dataclass
from itertools import pairwise

from sql.errors import SyntaxFailed
from sql.parse.tokens import TOKEN
from sql.variables import split_statements

COMMAND_WORDS = frozenset(
    {
        *("HELP", "EXIT", "QUIT", "CLEAR", "HISTORY", "VERSION", "OUTPUT", "SERVER", "SPOOL"),
        "REQUEST",  # request-pipelining, whose sign ends the word
    }
)
COMMAND_PAIRS = frozenset({("SET", "CLI"), ("RUN", "SCRIPT")})
WORDS_MAX = 2


@dataclass(frozen=True, slots=True)
class ShellInput:
    """A statement or command without comments before it, and its first words in upper case."""

    text: str
    words: tuple[str, ...]

    @property
    def is_command(self) -> bool:
        """Whether it is a shell command, which needs no semicolon."""
        return self.words[:1] != () and (
            self.words[0] in COMMAND_WORDS or self.words in COMMAND_PAIRS
        )

    @property
    def argument(self) -> str:
        """What follows a command's word."""
        return "".join(self.text.rstrip("; \n").split(None, 1)[1:])

    @property
    def is_push(self) -> bool:
        """Whether rows come until someone stops it."""
        words = _words(self.text)
        pairs = pairwise(words)
        return any(pair in (("EMIT", "CHANGES"), ("EMIT", "FINAL")) for pair in pairs)


def said(text: str) -> ShellInput:
    """What a part of a script begins with."""
    for match in TOKEN.finditer(text):
        if match.lastgroup != "space":
            plain = text[match.start() :]
            return ShellInput(plain, tuple(_words(plain, WORDS_MAX)))
    return ShellInput("", ())


def ended(text: str) -> str:
    """A statement with the semicolon that it lacks, which may not be part of a comment."""
    return f"{text}\n;" if "--" in text.rpartition("\n")[2] else f"{text};"


def is_finished(text: str) -> bool:
    """Whether Enter executes what was typed: nothing, a command, or whole statements."""
    try:
        parts = split_statements(text)
    except SyntaxFailed:
        return True  # the engine says what is wrong
    if not parts or parts[-1].is_complete:
        return True
    last = said(parts[-1].text)
    return last.is_command


def _words(text: str, count: int | None = None) -> list[str]:
    found: list[str] = []
    for match in TOKEN.finditer(text):
        if match.lastgroup == "word":
            found.append(match.group().upper())
        elif match.lastgroup != "space":
            found.append("")  # a sign between two words parts them
        if count is not None and len(found) >= count:
            break
    return found
