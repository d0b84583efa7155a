"""TopicPattern: regular expressions over names, in RE2's syntax, matched in linear time.

Patterns come from clients and are matched inside the broker, so Python's `re` is out: one line can
keep it busy for hours. This compiles to a nondeterministic automaton and walks all its states at
once; the work is at most states times characters. Topic names have 65 different characters, so
every class is a plain set of them; for other names the characters they have are given. A name must
match as a whole.

    alternation   a|b          repetition    x* x+ x? x{2} x{2,} x{2,5}, each also lazy (x*?)
    group         (x) (?:x) (?P<n>x) (?<n>x)          flags   (?i) (?i:x); s, m and U change nothing
    class         . [a-z] [^a] \\d \\D \\w \\W \\s \\S [[:alpha:]]
    position      ^ $ \\A \\z \\b \\B                      literal \\. \\x2d \\x{2d} \\Q..\\E
"""

import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from broker.errors import BrokerError, ErrorCode

ALPHABET = frozenset(string.ascii_letters + string.digits + "._-")
DIGITS = frozenset(string.digits)
WORD = frozenset(string.ascii_letters + string.digits + "_")
SPACE = frozenset("\t\n\f\r ")
NONE: frozenset[str] = frozenset()

TEXT_LENGTH_MAX = 2000
STATES_MAX = 5000
REPEAT_MAX = 1000
DEPTH_MAX = 100

CLASSES = {"d": DIGITS, "w": WORD, "s": SPACE}
POSIX = {
    "alnum": WORD - {"_"}, "alpha": frozenset(string.ascii_letters),
    "ascii": frozenset(map(chr, range(128))), "blank": frozenset(" \t"),
    "cntrl": frozenset(map(chr, [*range(32), 127])), "digit": DIGITS,
    "graph": frozenset(map(chr, range(33, 127))), "lower": frozenset(string.ascii_lowercase),
    "print": frozenset(map(chr, range(32, 127))), "punct": frozenset(string.punctuation),
    "space": SPACE | {"\v"}, "upper": frozenset(string.ascii_uppercase), "word": WORD,
    "xdigit": frozenset(string.hexdigits),
}  # fmt: skip
CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
POSITIONS = {"^": "start", "$": "end", "A": "start", "z": "end", "b": "edge", "B": "inside"}


@dataclass(slots=True)
class State:
    """A step of the automaton: read one of `chars`, or stand at `position`, or go on freely."""

    chars: frozenset[str] | None = None
    position: str = ""
    next: tuple[int, ...] = ()


# A fragment is built once it is known where to go on: given that state, it returns its own first.
Fragment = Callable[[int], int]


class TopicPattern:
    """A compiled pattern; one that cannot be compiled raises INVALID_REGULAR_EXPRESSION."""

    def __init__(self, text: str, alphabet: frozenset[str] = ALPHABET) -> None:
        """Compile, for names that have no characters but those of the alphabet."""
        self.text = text
        self._states: list[State] = [State()]
        parser = _Parser(text, self._add, alphabet)
        self._start = parser.whole()(0)

    def matches(self, name: str) -> bool:
        """Whether the whole name matches."""
        current = self._closure({self._start}, name, 0)
        for index, char in enumerate(name):
            reached: set[int] = set()
            for number in current:
                state = self._states[number]
                if state.chars is not None and char in state.chars:
                    reached.update(state.next)
            if not reached:
                return False
            current = self._closure(reached, name, index + 1)
        return 0 in current

    def _closure(self, numbers: set[int], name: str, index: int) -> set[int]:
        """The states reached without reading; state 0 is the end of the pattern."""
        found: set[int] = set()
        waiting = list(numbers)
        while waiting:
            number = waiting.pop()
            if number in found:
                continue
            found.add(number)
            state = self._states[number]
            if state.chars is None and _stands(state.position, name, index):
                waiting.extend(state.next)
        return found

    def _add(self, state: State) -> int:
        if len(self._states) >= STATES_MAX:
            _refuse(self.text, "it is too large")
        self._states.append(state)
        return len(self._states) - 1


def _stands(position: str, name: str, index: int) -> bool:
    if position == "start":
        return index == 0
    if position == "end":
        return index == len(name)
    if position:
        before = index > 0 and name[index - 1] in WORD
        after = index < len(name) and name[index] in WORD
        return (before != after) == (position == "edge")
    return True


def _refuse(text: str, reason: str) -> NoReturn:
    raise BrokerError(
        ErrorCode.INVALID_REGULAR_EXPRESSION, f'pattern "{text[:200]}" is wrong: {reason}'
    )


class _Parser:
    """Recursive descent over the text."""

    def __init__(self, text: str, add: Callable[[State], int], alphabet: frozenset[str]) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._folds = False
        self._add = add
        self._alphabet = alphabet

    def whole(self) -> Fragment:
        if len(self._text) > TEXT_LENGTH_MAX:
            _refuse(self._text, f"it has more than {TEXT_LENGTH_MAX} characters")
        found = self._alternatives()
        if self._at < len(self._text):
            _refuse(self._text, 'a ")" without "("')
        return found

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, what: str) -> bool:
        if self._text.startswith(what, self._at):
            self._at += len(what)
            return True
        return False

    def _until(self, end: str, reason: str) -> str:
        stop = self._text.find(end, self._at)
        if stop < 0:
            _refuse(self._text, reason)
        found = self._text[self._at : stop]
        self._at = stop + len(end)
        return found

    def _alternatives(self) -> Fragment:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            _refuse(self._text, "groups are too deep")
        folds = self._folds
        choices = [self._sequence()]
        while self._take("|"):
            choices.append(self._sequence())
        self._folds = folds
        self._depth -= 1
        if len(choices) == 1:
            return choices[0]
        return lambda after: self._add(State(next=tuple(choice(after) for choice in choices)))

    def _sequence(self) -> Fragment:
        parts: list[Fragment] = []
        while self._at < len(self._text) and self._peek() not in "|)":
            if self._take("\\Q"):
                stop = self._text.find("\\E", self._at)
                literal = self._text[self._at : stop if stop >= 0 else None]
                self._at += len(literal) + (2 if stop >= 0 else 0)
                parts.extend(self._reads(frozenset(char)) for char in literal)
            else:
                parts.append(self._repeated(self._atom()))

        def build(after: int) -> int:
            for part in reversed(parts):
                after = part(after)
            return after

        return build

    def _repeated(self, part: Fragment) -> Fragment:
        while True:
            bounds = self._bounds()
            if bounds is None:
                return part
            self._take("?")  # lazy: which match comes first does not matter here
            if self._peek() and self._peek() in "*+?":
                _refuse(self._text, "a repetition of a repetition")
            part = self._repeat(part, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        start = self._at
        if not self._take("{"):
            return None
        low, comma, high = self._text[self._at :].partition("}")[0].partition(",")
        closed = "}" in self._text[self._at :]
        numbers = low.isdecimal() and (not high or high.isdecimal())
        if not closed or not numbers:
            self._at = start  # a brace that bounds nothing is a brace
            return None
        self._at += len(low) + len(comma) + len(high) + 1
        least = int(low[:6])
        most = least if not comma else int(high[:6]) if high else None
        if least > REPEAT_MAX or (most is not None and not least <= most <= REPEAT_MAX):
            _refuse(self._text, "repetition bounds are wrong or too large")
        return least, most

    def _repeat(self, part: Fragment, least: int, most: int | None) -> Fragment:
        def build(after: int) -> int:
            if most is None:
                loop = State()
                number = self._add(loop)
                loop.next = (part(number), after)
                after = number
            else:
                end = after
                for _ in range(most - least):
                    after = self._add(State(next=(part(after), end)))
            for _ in range(least):
                # Every round adds a state, even of an empty part, so STATES_MAX bounds nesting too.
                after = self._add(State(next=(part(after),)))
            return after

        return build

    def _atom(self) -> Fragment:
        char = self._peek()
        self._at += 1
        if char == "(":
            return self._group()
        if char == "[":
            return self._reads(self._set())
        if char == ".":
            return self._reads(self._alphabet)
        if char in "^$":
            return self._stands(POSITIONS[char])
        if char in "*+?":
            _refuse(self._text, f'nothing to repeat before "{char}"')
        if char == "\\":
            following = self._peek()
            if following and following in "AzbB":
                self._at += 1
                return self._stands(POSITIONS[following])
            return self._reads(self._escape())
        return self._reads(frozenset(char))

    def _group(self) -> Fragment:
        folds = self._folds
        if self._take("?"):
            if self._take("P<") or self._take("<"):
                name = self._until(">", "the name of a group does not end")
                if not name.isidentifier():
                    _refuse(self._text, "a group has a wrong name")
            elif not self._flags():
                return lambda after: after
        found = self._alternatives()
        self._folds = folds
        if not self._take(")"):
            _refuse(self._text, 'a "(" without ")"')
        return found

    def _flags(self) -> bool:
        """Read flags; whether a group follows them, else they hold for the rest."""
        value = True
        while self._at < len(self._text):
            char = self._peek()
            self._at += 1
            if char == ":":
                return True
            if char == ")":
                return False
            if char == "-":
                value = False
            elif char == "i":
                self._folds = value
            elif char not in "smU":
                break
        _refuse(self._text, 'what follows "(?" is not supported')

    def _escape(self) -> frozenset[str]:
        char = self._peek()
        self._at += 1
        if char in CLASSES:
            return CLASSES[char]
        if char.lower() in CLASSES:
            return self._alphabet - CLASSES[char.lower()]
        if char in CONTROLS:
            return frozenset(CONTROLS[char])
        if char == "x":
            braced = self._take("{")
            digits = self._until("}", "\\x{ does not end") if braced else self._text[self._at :][:2]
            self._at += 0 if braced else 2
            if (
                not digits
                or len(digits) > 6
                or any(sign not in string.hexdigits for sign in digits)
            ):
                _refuse(self._text, "\\x needs hexadecimal digits")
            number = int(digits, 16)
            return frozenset(chr(number)) if number < 128 else NONE
        if not char or char.isalnum():
            _refuse(self._text, f'"\\{char}" is not supported')
        return frozenset(char)

    def _set(self) -> frozenset[str]:
        negated = self._take("^")
        found: set[str] = set()
        first = True
        while first or self._peek() != "]":
            first = False
            if not self._peek():
                _refuse(self._text, 'a "[" without "]"')
            found |= self._set_item()
        self._at += 1
        if self._folds:
            found = {form for char in found for form in (char.lower(), char.upper())}
        return self._alphabet - found if negated else frozenset(found)

    def _set_item(self) -> frozenset[str]:
        if self._take("[:"):
            name = self._until(":]", "a class name does not end")
            negated = name.startswith("^")
            if name.lstrip("^") not in POSIX:
                _refuse(self._text, f'class "{name}" is not known')
            found = POSIX[name.lstrip("^")]
            return self._alphabet - found if negated else found
        low = self._set_char()
        ends = self._text[self._at + 1 : self._at + 2]
        if self._peek() != "-" or ends in ("]", "") or len(low) != 1:
            return low
        self._at += 1
        high = self._set_char()
        if len(high) != 1 or min(low) > min(high):
            _refuse(self._text, "a range of characters goes backwards")
        return frozenset(char for char in self._alphabet if min(low) <= char <= min(high))

    def _set_char(self) -> frozenset[str]:
        char = self._peek()
        self._at += 1
        return self._escape() if char == "\\" else frozenset(char)

    def _reads(self, chars: frozenset[str]) -> Fragment:
        if self._folds:
            chars = frozenset(form for char in chars for form in (char.lower(), char.upper()))
        return lambda after: self._add(State(chars=chars, next=(after,)))

    def _stands(self, position: str) -> Fragment:
        return lambda after: self._add(State(position=position, next=(after,)))
