"""Reader: reads the tokens of SQL text, and raises errors with the expected ones."""

from dataclasses import dataclass
from typing import NoReturn

from sql.errors import SyntaxFailed
from sql.parse.failures import refused, unexpected
from sql.parse.tokens import Tokens, unquoted
from sql.syntax.node import Position

# The maximum depth of trees, so that later phases can use recursion, and the maximum number of open
# parentheses, calls and CASEs.
DEPTH_MAX = 150
NESTED_MAX = 100
WHOLE_MAX = 2**63 - 1
DIGITS_MAX = 400  # of a number; no type has more


@dataclass(frozen=True, slots=True)
class VariableUse:
    """A ${variable} outside quotes: the index of its token, and whether it is used as a name."""

    index: int
    is_name: bool


class Reader:
    """The current token is `word` (keywords and symbols, in upper case) and `kind`.

    `height` is that of the last expression. With `uses`, variables are recorded instead of refused.
    """

    __slots__ = ("height", "index", "kind", "nested", "testing", "tokens", "uses", "word")

    def __init__(
        self, tokens: Tokens, *, testing: bool = False, uses: list[VariableUse] | None = None
    ) -> None:
        self.tokens = tokens
        self.testing = testing
        self.uses = uses
        self.height = 0
        self.nested = 0
        self.go_to(0)

    def go_to(self, index: int) -> None:
        """Move to another token."""
        self.index = index
        self.word = self.tokens.words[index]
        self.kind = self.tokens.kinds[index]

    def advance(self) -> None:
        """Move to the next token; the current one must not be the end."""
        self.index = index = self.index + 1
        self.word = self.tokens.words[index]
        self.kind = self.tokens.kinds[index]

    def next_word(self, distance: int = 1) -> str:
        """The word of a later token."""
        place = self.index + distance
        return self.tokens.words[place] if place < len(self.tokens.words) else ""

    def next_kind(self, distance: int = 1) -> str:
        """The kind of a later token."""
        place = self.index + distance
        return self.tokens.kinds[place] if place < len(self.tokens.kinds) else "end"

    def position(self) -> Position:
        """The position of the current token."""
        return Position(self.tokens.lines[self.index], self.tokens.columns[self.index])

    def accept(self, word: str) -> bool:
        """Skip the word, if it is the current one."""
        if self.word != word:
            return False
        self.advance()
        return True

    def accept_all(self, *words: str) -> bool:
        """Skip these consecutive words, if they are all present."""
        for distance, word in enumerate(words):
            if self.next_word(distance) != word:
                return False
        self.go_to(self.index + len(words))
        return True

    def expect(self, *words: str) -> None:
        """Skip these words; SyntaxFailed if one is missing."""
        for word in words:
            if self.word != word:
                self.fail(word)
            self.advance()

    def fail(self, *expected: str) -> NoReturn:
        """Raise an error for the current token; lists the expected words if they are few."""
        if self.kind == "variable":
            self.fail_at(self.position(), f"variable {self.token_text()} is not allowed here")
        raise unexpected(self.tokens, self.index, expected)

    def fail_at(self, place: Position, message: str, *, hint: str = "") -> NoReturn:
        """Raise an error for syntax that is not allowed."""
        raise refused(message, place, hint=hint)

    def refuse_column(self, place: Position, message: str) -> NoReturn:
        """Raise an error for a column that its source cannot have."""
        shown = f"Failed to prepare statement: Line: {place.line}, Col: {place.column}: {message}"
        raise SyntaxFailed(shown, line=place.line, column=place.column)

    def token_text(self) -> str:
        """The text of the current token."""
        return self.tokens.raw[self.index]

    def enter(self) -> None:
        """Open a parenthesis, call or CASE."""
        self.nested += 1
        if self.nested > NESTED_MAX:
            raise self.too_deep()

    def leave(self, height: int) -> None:
        """Close it; its tree has this height."""
        self.nested -= 1
        self.grow(height)

    def grow(self, height: int) -> None:
        """Set the height of the last expression."""
        self.height = height
        if height > DEPTH_MAX:
            raise self.too_deep()

    def too_deep(self) -> SyntaxFailed:
        """The error for expressions that are nested too deeply."""
        place = self.position()
        return SyntaxFailed(
            f"line {place.line}:{place.column}: the expression is nested too deeply",
            line=place.line,
            column=place.column,
            hint=f"at most {NESTED_MAX} parentheses can be open and {DEPTH_MAX} operators can "
            "follow each other; split it over several queries",
        )

    def at_name(self) -> bool:
        """Whether the current token is a name."""
        return self.kind in ("name", "quoted") or (
            self.kind == "variable" and self._records_variable()
        )

    def name(self) -> str:
        """Parse a name, in upper case unless it is quoted."""
        if self.kind == "name":
            name = self.word
        elif self.kind == "quoted":
            name = unquoted(self.token_text())
            if not name:
                self.fail_at(self.position(), "a name cannot be empty")
        elif self.kind == "variable" and self._records_variable():
            name = self._variable(is_name=True)
        else:
            self.fail("name")
        self.advance()
        return name

    def name_as_written(self) -> str:
        """Parse a name without changing its case, or a quoted string."""
        if self.kind == "text":
            return self.text()
        written = self.token_text()
        name = self.name()
        return written if name == written.upper() else name

    def name_or_text(self) -> str:
        """Parse a name or a quoted string."""
        return self.text() if self.kind == "text" else self.name()

    def text(self) -> str:
        """Parse a string in single quotes."""
        if self.kind == "variable" and self._records_variable():
            text = self._variable(is_name=False)
        elif self.kind == "text":
            text = unquoted(self.token_text())
        else:
            self.fail("text")
        self.advance()
        return text

    def whole(self, *, negative: bool = False) -> int:
        """Parse a whole number; the caller has parsed a minus before it."""
        if self.kind == "variable" and self._records_variable():
            self._variable(is_name=False)
            self.advance()
            return 0
        if self.kind != "whole":
            self.fail("whole")
        text = self.token_text()
        if len(text) > DIGITS_MAX or int(text) > WHOLE_MAX + negative:
            self.refuse_number(text, negative=negative)
        self.advance()
        return -int(text) if negative else int(text)

    def refuse_number(
        self, text: str, *, negative: bool, why: str = "Invalid numeric literal"
    ) -> NoReturn:
        """Raise an error for the current number."""
        if negative:
            self.go_to(self.index - 1)
        sign = "-" if negative else ""
        self.fail_at(self.position(), f"{why}: {sign}{text[:DIGITS_MAX]}")

    def literal_variable(self) -> bool:
        """Skip a variable in place of a literal; whether there was one."""
        if self.kind != "variable" or not self._records_variable():
            return False
        self._variable(is_name=False)
        self.advance()
        return True

    def _records_variable(self) -> bool:
        if self.uses is None:
            self.fail_at(
                self.position(),
                f"variable {self.token_text()} has no value",
                hint="DEFINE it first",
            )
        return True

    def _variable(self, *, is_name: bool) -> str:
        assert self.uses is not None, "only recorded variables are skipped"
        self.uses.append(VariableUse(self.index, is_name))
        return "VARIABLE"
