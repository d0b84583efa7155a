"""JSON documents in strings: parsed with exact numbers, searched by path, printed like Jackson.

A path is $ and steps: .name, ["any name"], [0]. Numbers keep their digits, so 1.10 stays 1.10.
Characters after a complete document are ignored.
"""

import json
import re
from decimal import Decimal
from functools import lru_cache
from unicodedata import category

import msgspec

from broker.java.number_text import decimal_text, double_text

TEXT_MAX = 10 * 1024 * 1024
DEPTH_MAX = 300
SPACES = " \t\r\n"
# The document of a blank string.
MISSING = object()

_FAST = msgspec.json.Decoder(float_hook=Decimal)
_ESCAPED = re.compile(r'[\x00-\x1f"\\]')
_ESCAPES = {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
}
_QUOTED_STEP = re.compile(r'((?:[^"\\]|\\["\\])*)"\]', re.DOTALL)
_INDEX = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)


def _no_constant(name: str) -> object:
    raise ValueError(f"JSON has no {name}")


_EXACT = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant)


def read_document(text: str) -> object:
    """Parse a JSON string; MISSING if it is blank, ValueError if it is invalid."""
    if len(text) > TEXT_MAX:
        raise ValueError(f"the JSON text is longer than {TEXT_MAX} characters")
    try:
        result = _read(text)
        if text.count("[") + text.count("{") > DEPTH_MAX:
            _check_depth(result)
    except RecursionError:
        raise ValueError(f"the JSON text is nested deeper than {DEPTH_MAX} levels") from None
    return result


def _read(text: str) -> object:
    try:
        result: object = _FAST.decode(text)
        return result
    except (msgspec.DecodeError, UnicodeError, ValueError, ArithmeticError):
        pass  # the slower decoder may accept it: it ignores the rest of the string
    start = len(text) - len(text.lstrip(SPACES))
    if start == len(text):
        return MISSING
    try:
        result, end = _EXACT.raw_decode(text, start)
    except (ValueError, ArithmeticError):
        raise ValueError(f"Invalid JSON format:{text}") from None
    if not isinstance(result, dict | list | str) and text[end : end + 1] not in ("", *SPACES):
        raise ValueError(f"Invalid JSON format:{text}")
    return result


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [inner for each in level for inner in _inner(each)]
        if not level:
            return
    raise ValueError(f"the JSON text is nested deeper than {DEPTH_MAX} levels")


def _inner(value: object) -> list[object]:
    if type(value) is dict:
        return list(value.values())
    return value if type(value) is list else []


def quoted(text: str) -> str:
    if _ESCAPED.search(text):
        text = _ESCAPED.sub(_escape, text)
    return f'"{text}"'


def _escape(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04X}"


def document_text(value: object, *, plain: bool = False) -> str:
    """A JSON value as compact JSON; plain numbers have no exponents."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    match value:
        case str():
            return quoted(value)
        case int():
            return str(value)
        case float():
            text = double_text(value)
            return text if text[-1].isdigit() else f'"{text}"'
        case Decimal():
            number = value if value else value.copy_abs()
            return decimal_text(number) if plain else str(number)
        case list():
            return f"[{','.join([document_text(each, plain=plain) for each in value])}]"
        case dict():
            pairs = [f"{quoted(k)}:{document_text(v, plain=plain)}" for k, v in value.items()]
            return f"{{{','.join(pairs)}}}"
    raise ValueError(f"{type(value).__name__} cannot be part of a JSON document")


@lru_cache(maxsize=1024)
def parse_path(path: str) -> tuple[str, ...]:
    """The steps of a path; ValueError if it is invalid."""
    if not path.startswith("$"):
        raise ValueError(f"Invalid JSON path: '{path}'")
    steps, place = [], 1
    while place < len(path):
        if path[place] == ".":
            end = _name_end(path, place + 1, "_:@")
            steps.append(path[place + 1 : end])
        elif path.startswith('["', place):
            step, end = _quoted_step(path, place + 2)
            steps.append(step)
        elif path[place] == "[":
            end = _name_end(path, place + 1, "_")
            steps.append(path[place + 1 : end])
            if path[end : end + 1] != "]":
                raise ValueError(f"Invalid JSON path: '{path}'")
            end += 1
        else:
            raise ValueError(f"Invalid JSON path: '{path}'")
        place = end
    return tuple(steps)


def _name_end(path: str, start: int, allowed: str) -> int:
    end = start
    while end < len(path) and (path[end] in allowed or _is_letter_or_digit(path[end])):
        end += 1
    if end == start:
        raise ValueError(f"Invalid JSON path: '{path}'")
    return end


def _is_letter_or_digit(character: str) -> bool:
    kind = category(character)
    return kind[0] == "L" or kind == "Nd"


def _quoted_step(path: str, start: int) -> tuple[str, int]:
    found = _QUOTED_STEP.match(path, start)
    if found is None:
        raise ValueError(f"Invalid JSON path: '{path}'")
    return re.sub(r'\\(["\\])', r"\1", found[1]), found.end()


def follow(document: object, steps: tuple[str, ...]) -> object:
    """The value at the end of the steps, or MISSING."""
    for step in steps:
        if type(document) is dict:
            document = document.get(step, MISSING)
        elif type(document) is list and _INDEX.fullmatch(step):
            index = int(step)
            document = document[index] if 0 <= index < len(document) else MISSING
        else:
            return MISSING
    return document
