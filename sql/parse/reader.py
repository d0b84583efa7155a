"""Reader: walks over the tokens of a text, and says what it expected when it cannot go on."""

from dataclasses import dataclass
from typing import NoReturn

from sql.errors import SyntaxFailed
from sql.parse.failures import refused, unexpected
from sql.parse.tokens import Tokens, unquoted
from sql.syntax.node import Position

# A tree may be this deep, so that every later phase may walk it by recursion, and this many
# brackets, calls and CASEs may be open at once while it is read.
DEPTH_MAX = 150
NESTED_MAX = 100
WHOLE_MAX = 2**63 - 1
DIGITS_MAX = 400  # of a number; no type holds more


@dataclass(frozen=True, slots=True)
class VariableUse:
    """A ${variable} outside quotes: where its token is, and whether it stands for a name."""

    index: int
    is_name: bool


class Reader:
    """The current token is `word` (keywords and symbols, in upper case) and `kind`.

    `height` is that of the last expression read. With `uses`, variables are noted there instead of
    refused.
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
        """Stand on another token."""
        self.index = index
        self.word = self.tokens.words[index]
        self.kind = self.tokens.kinds[index]

    def advance(self) -> None:
        """Advance to the next token, which must not be past the end."""
        self.index = index = self.index + 1
        self.word = self.tokens.words[index]
        self.kind = self.tokens.kinds[index]

    def next_word(self, distance: int = 1) -> str:
        """The word of a token further on."""
        place = self.index + distance
        return self.tokens.words[place] if place < len(self.tokens.words) else ""

    def next_kind(self, distance: int = 1) -> str:
        """The kind of a token further on."""
        place = self.index + distance
        return self.tokens.kinds[place] if place < len(self.tokens.kinds) else "end"

    def position(self) -> Position:
        """Where the current token begins."""
        return Position(self.tokens.lines[self.index], self.tokens.columns[self.index])

    def accept(self, word: str) -> bool:
        """Take the word if it is there."""
        if self.word != word:
            return False
        self.advance()
        return True

    def accept_all(self, *words: str) -> bool:
        """Take all these words if they are there, one after the other."""
        for distance, word in enumerate(words):
            if self.next_word(distance) != word:
                return False
        self.go_to(self.index + len(words))
        return True

    def expect(self, *words: str) -> None:
        """Take these words, which must be there."""
        for word in words:
            if self.word != word:
                self.fail(word)
            self.advance()

    def fail(self, *expected: str) -> NoReturn:
        """The current token cannot stand here; these could, if they are few."""
        if self.kind == "variable":
            self.fail_at(self.position(), f"variable {self.token_text()} is not allowed here")
        raise unexpected(self.tokens, self.index, expected)

    def fail_at(self, place: Position, message: str, *, hint: str = "") -> NoReturn:
        """What was read says something impossible."""
        raise refused(message, place, hint=hint)

    def refuse_column(self, place: Position, message: str) -> NoReturn:
        """A column is defined in a way that its source cannot have."""
        shown = f"Failed to prepare statement: Line: {place.line}, Col: {place.column}: {message}"
        raise SyntaxFailed(shown, line=place.line, column=place.column)

    def token_text(self) -> str:
        """The current token as it is written."""
        return self.tokens.raw[self.index]

    def enter(self) -> None:
        """One more bracket, call or CASE is open."""
        self.nested += 1
        if self.nested > NESTED_MAX:
            raise self.too_deep()

    def leave(self, height: int) -> None:
        """It is closed; its tree is this high."""
        self.nested -= 1
        self.grow(height)

    def grow(self, height: int) -> None:
        """The last expression is this high."""
        self.height = height
        if height > DEPTH_MAX:
            raise self.too_deep()

    def too_deep(self) -> SyntaxFailed:
        """What is nested is nested too deeply."""
        place = self.position()
        return SyntaxFailed(
            f"line {place.line}:{place.column}: the expression is nested too deeply",
            line=place.line,
            column=place.column,
            hint=f"at most {NESTED_MAX} parentheses can be open and {DEPTH_MAX} operators can "
            "follow each other; split it over several queries",
        )

    def at_name(self) -> bool:
        """Whether a name stands here."""
        return self.kind in ("name", "quoted") or (self.kind == "variable" and self._notes())

    def name(self) -> str:
        """A name: upper case unless it is quoted."""
        if self.kind == "name":
            name = self.word
        elif self.kind == "quoted":
            name = unquoted(self.token_text())
            if not name:
                self.fail_at(self.position(), "a name cannot be empty")
        elif self.kind == "variable" and self._notes():
            name = self._variable(is_name=True)
        else:
            self.fail("name")
        self.advance()
        return name

    def name_as_written(self) -> str:
        """A name whose case is kept, or what stands in quotes instead of one."""
        if self.kind == "text":
            return self.text()
        written = self.token_text()
        name = self.name()
        return written if name == written.upper() else name

    def name_or_text(self) -> str:
        """A name, or what stands in quotes instead of one."""
        return self.text() if self.kind == "text" else self.name()

    def text(self) -> str:
        """A text in single quotes."""
        if self.kind == "variable" and self._notes():
            text = self._variable(is_name=False)
        elif self.kind == "text":
            text = unquoted(self.token_text())
        else:
            self.fail("text")
        self.advance()
        return text

    def whole(self, *, negative: bool = False) -> int:
        """A whole number; a minus that was read before it is the caller's."""
        if self.kind == "variable" and self._notes():
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
        """The number at hand is none of ours."""
        if negative:
            self.go_to(self.index - 1)
        sign = "-" if negative else ""
        self.fail_at(self.position(), f"{why}: {sign}{text[:DIGITS_MAX]}")

    def literal_variable(self) -> bool:
        """Whether a variable stands here for a literal; it is taken then."""
        if self.kind != "variable" or not self._notes():
            return False
        self._variable(is_name=False)
        self.advance()
        return True

    def _notes(self) -> bool:
        if self.uses is None:
            self.fail_at(
                self.position(),
                f"variable {self.token_text()} has no value",
                hint="DEFINE it first",
            )
        return True

    def _variable(self, *, is_name: bool) -> str:
        assert self.uses is not None, "only noted variables are taken"
        self.uses.append(VariableUse(self.index, is_name))
        return "VARIABLE"
