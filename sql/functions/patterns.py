"""Functions of regular expressions, with Java's syntax."""

from broker.java.patterns import bounded, compile_pattern
from broker.java.replacements import replacement_filler
from broker.linear_patterns import Match, Pattern
from sql.functions.registry import Family

patterns = Family("REGULAR EXPRESSION")

RESULT_MAX = 10 * 1024 * 1024


@patterns.scalar(
    "REGEXP_EXTRACT(pattern STRING, text STRING) -> STRING",
    "The first match of a pattern in a string, or a group of it.",
)
@patterns.scalar("REGEXP_EXTRACT(pattern STRING, text STRING, group INT) -> STRING")
def extract(pattern: str, text: str, group: int = 0) -> str | None:
    """A group of the first match; null if there is none."""
    compiled = compile_pattern(pattern)
    if group > compiled.groups:
        return None
    found = compiled.search(bounded(text))
    return None if found is None else _group(found, group)


def _group(found: Match, group: int) -> str | None:
    if group < 0:
        raise ValueError(f"No group {group}")
    return found.group(group)


@patterns.scalar(
    "REGEXP_EXTRACT_ALL(pattern STRING, text STRING) -> ARRAY<STRING>",
    "All matches of a pattern in a string, or a group of each.",
)
@patterns.scalar("REGEXP_EXTRACT_ALL(pattern STRING, text STRING, group INT) -> ARRAY<STRING>")
def extract_all(pattern: str, text: str, group: int = 0) -> list[str | None] | None:
    """A group of all matches; null if the pattern has no such group."""
    compiled = compile_pattern(pattern)
    if group > compiled.groups:
        return None
    return [_group(found, group) for found in compiled.finditer(bounded(text))]


@patterns.scalar(
    "REGEXP_REPLACE(text STRING, pattern STRING, replacement STRING) -> STRING",
    "Replaces all matches of a pattern; $1 in the replacement stands for a group.",
)
def replace(text: str, pattern: str, replacement: str) -> str:
    compiled = compile_pattern(pattern)
    matches = list(compiled.finditer(bounded(text)))
    if not matches:
        return text
    fill = replacement_filler(pattern, replacement)
    if len(matches) * len(replacement) > RESULT_MAX:
        raise ValueError(f"the result would be longer than {RESULT_MAX} characters")
    parts: list[str] = []
    place = 0
    for found in matches:
        parts += (text[place : found.start()], fill(found))
        place = found.end()
    return "".join([*parts, text[place:]])


@patterns.scalar(
    "REGEXP_SPLIT_TO_ARRAY(text STRING, pattern STRING) -> ARRAY<STRING>",
    "Splits a string at the matches of a pattern.",
)
def split(text: str, pattern: str) -> list[str]:
    """The parts between matches, including empty ones, unless the pattern only matches empty."""
    compiled, text = compile_pattern(pattern), bounded(text)
    if compiled.fullmatch(""):
        return _split_loosely(compiled, text)
    parts: list[str] = []
    start, is_empty = 0, False
    for found in compiled.finditer(text):
        is_empty = found.end() == found.start()
        if found.end() > start:  # not an empty match where the last one ended
            parts.append(text[start : found.start()])
            start = found.end()
    return parts if is_empty and start == len(text) else [*parts, text[start:]]


def _split_loosely(compiled: Pattern, text: str) -> list[str]:
    """Like String.split: without empty parts at the end."""
    parts, place = [], 0
    for found in compiled.finditer(text):
        if found.end() == 0:
            continue
        parts.append(text[place : found.start()])
        place = found.end()
    if not place:
        return [text]
    parts.append(text[place:])
    while parts and not parts[-1]:
        parts.pop()
    return parts
