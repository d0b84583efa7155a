"""Random SQL text, generated from the grammar."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random

from lark import Lark
from lark.grammar import NonTerminal, Symbol

import sql.parse
from sql.syntax.keywords import RESERVED

# Samples of the terminals that are regular expressions.
SAMPLES = {
    "NAME": ("a", "orders", "x1", "Total"),
    "BACKQUOTED": ("`b`", "`from`"),
    "QUOTED": ('"c"',),
    "TEXT": ("'t'", "'it''s'"),
    "WHOLE": ("1", "42"),
    "FRACTION": ("1.5", "0.10"),
    "EXPONENT": ("1e3", "2.5E-1"),
    "UNITS": ("DAYS", "SECONDS"),
    "UNIT": ("DAY", "MINUTE"),
    "LAMBDA": ("x =>", "(k, v) =>"),
    "COMPARISON": ("<=", "!="),
}
DEPTH_MAX = 14


@cache
def grammar() -> Lark:
    """The grammar; cached, because parsing it takes seconds."""
    text = Path(sql.parse.__file__).with_name("grammar.lark").read_text()
    reserved = f"({'|'.join(sorted(RESERVED))})"
    return Lark(text.replace("(RESERVED)", reserved), parser="lalr", start="script")


class Writer:
    """Generates random statements; below a certain depth it takes the shortest expansion."""

    def __init__(self, chance: Random, samples: Mapping[str, Sequence[str]] = SAMPLES) -> None:
        self._chance = chance
        self._samples = samples
        self._rules: dict[str, list[Sequence[Symbol]]] = {}
        for rule in grammar().rules:
            self._rules.setdefault(rule.origin.name, []).append(rule.expansion)
        self._heights = _heights(self._rules)

    def text(self) -> str:
        """One statement."""
        return " ".join(self._write("bounded", 0)) + ";"

    def _write(self, name: str, depth: int) -> list[str]:
        choices = self._rules[name]
        if depth > DEPTH_MAX:
            lowest = min(self._height(each) for each in choices)
            choices = [each for each in choices if self._height(each) == lowest]
        words: list[str] = []
        for symbol in self._chance.choice(choices):
            if isinstance(symbol, NonTerminal):
                words += self._write(symbol.name, depth + 1)
            else:
                words.append(self._sample(symbol.name))
        return words

    def _height(self, expansion: Sequence[Symbol]) -> int:
        return max((self._heights.get(each.name, 0) for each in expansion), default=0)

    def _sample(self, name: str) -> str:
        if name in self._samples:
            return self._chance.choice(self._samples[name])
        pattern: str = grammar().get_terminal(name).pattern.value
        return pattern


def _heights(rules: dict[str, list[Sequence[Symbol]]]) -> dict[str, int]:
    """The minimum number of levels of each rule."""
    heights: dict[str, int] = {}
    while len(heights) < len(rules):
        for name, choices in rules.items():
            known = [
                max(
                    (heights[each.name] for each in choice if isinstance(each, NonTerminal)),
                    default=0,
                )
                for choice in choices
                if all(each.name in heights for each in choice if isinstance(each, NonTerminal))
            ]
            if known:
                heights.setdefault(name, min(known) + 1)
    return heights
