"""The first words and the end of statements, as the shell needs them."""

from dataclasses import dataclass
from itertools import pairwise

from sql.errors import SyntaxFailed
from sql.parse.tokens import TOKEN
from sql.variables import split_statements

COMMAND_WORDS = frozenset(
    {
        *("HELP", "EXIT", "QUIT", "CLEAR", "HISTORY", "VERSION", "OUTPUT", "SERVER", "SPOOL"),
        "REQUEST",  # request-pipelining, whose hyphen ends the word
    }
)
COMMAND_PAIRS = frozenset({("SET", "CLI"), ("RUN", "SCRIPT")})
WORDS_MAX = 2


@dataclass(frozen=True, slots=True)
class ShellInput:
    """A statement or command without leading comments, with its first words in upper case."""

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
        """The rest of a command after its word."""
        return "".join(self.text.rstrip("; \n").split(None, 1)[1:])

    @property
    def is_push(self) -> bool:
        """Whether rows arrive until the query is stopped."""
        words = _words(self.text)
        pairs = pairwise(words)
        return any(pair in (("EMIT", "CHANGES"), ("EMIT", "FINAL")) for pair in pairs)


def shell_input(text: str) -> ShellInput:
    """The input of a part of a script."""
    for match in TOKEN.finditer(text):
        if match.lastgroup != "space":
            plain = text[match.start() :]
            return ShellInput(plain, tuple(_words(plain, WORDS_MAX)))
    return ShellInput("", ())


def with_semicolon(text: str) -> str:
    """A statement with an added semicolon, which must not be part of a comment."""
    return f"{text}\n;" if "--" in text.rpartition("\n")[2] else f"{text};"


def is_finished(text: str) -> bool:
    """Whether Enter executes the input: it is empty, a command, or complete statements."""
    try:
        parts = split_statements(text)
    except SyntaxFailed:
        return True  # the engine reports the error
    if not parts or parts[-1].is_complete:
        return True
    last = shell_input(parts[-1].text)
    return last.is_command


def _words(text: str, count: int | None = None) -> list[str]:
    result: list[str] = []
    for match in TOKEN.finditer(text):
        if match.lastgroup == "word":
            result.append(match.group().upper())
        elif match.lastgroup != "space":
            result.append("")  # another token separates words
        if count is not None and len(result) >= count:
            break
    return result
