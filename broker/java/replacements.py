"""Replacement strings of Java's regular expressions: $1 and ${name} refer to groups."""

import re
from collections.abc import Callable
from functools import lru_cache

from broker.java.patterns import compile_pattern
from broker.linear_patterns import Match

_PIECE = re.compile(
    r"\\(?P<sign>.)|\$(?P<number>[0-9]+)|\$\{(?P<name>[A-Za-z][A-Za-z0-9]*)\}|(?P<wrong>[\\$])|[^\\$]+",
    re.DOTALL | re.ASCII,
)


@lru_cache(maxsize=1000)
def replacement_filler(pattern: str, replacement: str) -> Callable[[Match], str]:
    """A function that fills the groups of a match into a replacement."""
    compiled = compile_pattern(pattern)
    parts: list[str | int] = []
    for found in _PIECE.finditer(replacement):
        if found["wrong"] is not None:
            raise ValueError(f"Illegal group reference in '{replacement}'")
        if found["sign"] is not None:
            parts.append(found["sign"])
        elif found["number"] is not None:
            parts += _numbered(found["number"], compiled.groups)
        elif found["name"] is not None:
            if found["name"] not in compiled.groupindex:
                raise ValueError(f"No group with name {{{found['name']}}}")
            parts.append(compiled.groupindex[found["name"]])
        else:
            parts.append(found[0])
    if all(isinstance(each, str) for each in parts):
        text = "".join(map(str, parts))
        return lambda found: text
    return lambda found: "".join(
        [each if isinstance(each, str) else found[each] or "" for each in parts]
    )


def _numbered(digits: str, groups: int) -> list[str | int]:
    """A group number has as many digits as there is a group for."""
    number, used = int(digits[0]), 1
    if number > groups:
        raise ValueError(f"No group {number}")
    while used < len(digits) and number * 10 + int(digits[used]) <= groups:
        number = number * 10 + int(digits[used])
        used += 1
    return [number, digits[used:]]
