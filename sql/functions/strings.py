"""Functions of strings; positions start at 1 and count UTF-16 units."""

import re
from hashlib import md5
from uuid import UUID

from broker.java.number_text import CONTROLS_AND_SPACE
from broker.machine import Machine
from sql.functions.registry import Family, Implementation
from sql.functions.utf16_text import is_plain, length_of, text_of, units_of

strings = Family("STRING")

# Padding could create strings of any length from small arguments; longer results are refused.
LENGTH_MAX = 10 * 1024 * 1024
WORD = re.compile(r"[^ \t\n\x0b\f\r]+[ \t\n\x0b\f\r]*")
ESCAPE = re.compile(r"\\(?:u+([0-9a-fA-F]{4})|([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
NAMED_ESCAPES = {"b": "\b", "n": "\n", "t": "\t", "f": "\f", "r": "\r"}


@strings.scalar("LCASE(text STRING) -> STRING", "Converts a string to lower case.")
def lower(text: str) -> str:
    return text.lower()


@strings.scalar("UCASE(text STRING) -> STRING", "Converts a string to upper case.")
def upper(text: str) -> str:
    return text.upper()


@strings.scalar(
    "TRIM(text STRING) -> STRING",
    "Removes spaces and control characters from both ends of a string.",
)
def trim(text: str) -> str:
    return text.strip(CONTROLS_AND_SPACE)


@strings.scalar(
    "INITCAP(text STRING) -> STRING",
    "Capitalizes the first letter of each word and lowers the others; white space separates words.",
)
def capitalize_words(text: str) -> str:
    """White space before the first word is removed."""
    words = (found[0] for found in WORD.finditer(text.lower()))
    return "".join(word[0].upper() + word[1:] if word[0] <= "\uffff" else word for word in words)


@strings.scalar("LEN(text STRING) -> INT", "The length of a string in UTF-16 units, or of bytes.")
def length(text: str) -> int:
    return length_of(text)


@strings.scalar("LEN(bytes BYTES) -> INT")
def length_of_bytes(value: bytes) -> int:
    return len(value)


@strings.scalar("MD5(text STRING) -> STRING", "The MD5 checksum of a string, as hex digits.")
def checksum(text: str) -> str:
    return md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


@strings.scalar("CONCAT(strings STRING...) -> STRING", "Concatenates strings or bytes.", nulls=True)
def concatenate(*values: str | None) -> str:
    """Nulls are skipped."""
    return "".join([each for each in values if each is not None])


@strings.scalar("CONCAT(bytes BYTES...) -> BYTES", nulls=True)
def concatenate_bytes(*values: bytes | None) -> bytes:
    """Nulls are skipped."""
    return b"".join([each for each in values if each is not None])


@strings.scalar(
    "CONCAT_WS(separator STRING, strings STRING...) -> STRING",
    "Concatenates strings or bytes with a separator between them.",
    nulls=True,
)
def join(separator: str | None, *values: str | None) -> str | None:
    """Nulls are skipped."""
    if not values:
        raise ValueError("Function Concat_WS expects at least two input arguments.")
    if separator is None:
        return None
    return separator.join([each for each in values if each is not None])


@strings.scalar("CONCAT_WS(separator BYTES, bytes BYTES...) -> BYTES", nulls=True)
def join_bytes(separator: bytes | None, *values: bytes | None) -> bytes | None:
    """Nulls are skipped."""
    if not values:
        raise ValueError("Function Concat_WS expects at least two input arguments.")
    if separator is None:
        return None
    return separator.join([each for each in values if each is not None])


def _start(length: int, position: int) -> int:
    """The index of a position that starts at 1, or counts from the end if negative."""
    if position < 0:
        return max(length + position, 0)
    return max(min(position - 1, length), 0)


@strings.scalar(
    "SUBSTRING(text STRING, position INT) -> STRING",
    "The part of a string or of bytes from a position on; a negative one counts from the end.",
)
def rest(text: str, position: int) -> str:
    if is_plain(text):
        return text[_start(len(text), position) :]
    units = units_of(text)
    return text_of(units[_start(len(units), position) :])


@strings.scalar("SUBSTRING(text STRING, position INT, length INT) -> STRING")
def substring(text: str, position: int, length: int) -> str:
    """At most `length` units from a position on."""
    plain = is_plain(text)
    units = text if plain else units_of(text)
    start = _start(len(units), position)
    found = units[start : start + max(length, 0)]
    return found if plain else text_of(found)


@strings.scalar("SUBSTRING(bytes BYTES, position INT) -> BYTES")
def rest_of_bytes(value: bytes, position: int) -> bytes:
    return value[_start(len(value), position) :]


@strings.scalar("SUBSTRING(bytes BYTES, position INT, length INT) -> BYTES")
def subbytes(value: bytes, position: int, length: int) -> bytes:
    """At most `length` bytes from a position on."""
    start = _start(len(value), position)
    return value[start : start + max(length, 0)]


@strings.scalar(
    "INSTR(text STRING, part STRING) -> INT",
    "The position of a part in a string, starting at 1; 0 if not found. A negative position "
    "searches backwards; the occurrence selects one of several matches.",
    nulls=True,
)
@strings.scalar("INSTR(text STRING, part STRING, position INT) -> INT", nulls=True)
@strings.scalar("INSTR(text STRING, part STRING, position INT, occurrence INT) -> INT", nulls=True)
def find(
    text: str | None, part: str | None, position: int | None = 1, occurrence: int | None = 1
) -> int | None:
    """The position of an occurrence, from a start position on."""
    if position is None or occurrence is None:
        return None
    if text is None or part is None:
        return 0
    units, wanted = units_of(text), units_of(part)
    if not 0 < abs(position) <= len(units) or occurrence < 1:
        return 0
    if position < 0:
        index = _find_nth(units[::-1], wanted[::-1], -position - 1, occurrence)
        return 0 if index < 0 else len(units) - index - len(wanted) + 1
    return _find_nth(units, wanted, position - 1, occurrence) + 1


def _find_nth(text: str, part: str, start: int, occurrence: int) -> int:
    """The index of the n-th occurrence, or -1; occurrences may overlap."""
    if not part:
        return start
    index = start - 1
    for _ in range(occurrence):
        index = text.find(part, index + 1)
        if index < 0:
            return -1
    return index


@strings.scalar(
    "REPLACE(text STRING, old STRING, new STRING) -> STRING",
    "Replaces every occurrence of a part of a string.",
)
def replace(text: str, old: str, new: str) -> str:
    if text.count(old) * len(new) > LENGTH_MAX:
        raise ValueError(f"the result would be longer than {LENGTH_MAX} characters")
    return text.replace(old, new)


@strings.scalar(
    "LPAD(text STRING, length INT, padding STRING) -> STRING",
    "Pads a string or bytes on the left, or cuts them, to a length.",
)
def pad_left(text: str, length: int, padding: str) -> str | None:
    """Padded on the left, or truncated."""
    if not padding or length < 0:
        return None
    units = units_of(text)
    filling = _filling(units_of(padding), length - len(units))
    return text_of((filling + units)[:length])


@strings.scalar(
    "RPAD(text STRING, length INT, padding STRING) -> STRING",
    "Pads a string or bytes on the right, or cuts them, to a length.",
)
def pad_right(text: str, length: int, padding: str) -> str | None:
    """Padded on the right, or truncated."""
    if not padding or length < 0:
        return None
    units = units_of(text)
    return text_of((units + _filling(units_of(padding), length - len(units)))[:length])


def _filling(padding: str, length: int) -> str:
    if length > LENGTH_MAX:
        raise ValueError(f"the result would be longer than {LENGTH_MAX} characters")
    return (padding * (length // len(padding) + 1))[: max(length, 0)]


@strings.scalar("LPAD(bytes BYTES, length INT, padding BYTES) -> BYTES")
def pad_bytes_left(value: bytes, length: int, padding: bytes) -> bytes | None:
    """Padded on the left, or truncated."""
    if not padding or length < 0:
        return None
    return (_byte_filling(padding, length - len(value)) + value)[:length]


@strings.scalar("RPAD(bytes BYTES, length INT, padding BYTES) -> BYTES")
def pad_bytes_right(value: bytes, length: int, padding: bytes) -> bytes | None:
    """Padded on the right, or truncated."""
    if not padding or length < 0:
        return None
    return (value + _byte_filling(padding, length - len(value)))[:length]


def _byte_filling(padding: bytes, length: int) -> bytes:
    if length > LENGTH_MAX:
        raise ValueError(f"the result would be longer than {LENGTH_MAX} bytes")
    return (padding * (length // len(padding) + 1))[: max(length, 0)]


@strings.scalar(
    "SPLIT(text STRING, delimiter STRING) -> ARRAY<STRING>",
    "Splits a string or bytes at a delimiter; an empty delimiter splits after each character.",
)
def split(text: str, delimiter: str) -> list[str]:
    """The parts between delimiters, including empty ones; each character if it is empty."""
    if delimiter:
        return text.split(delimiter)
    return list(text) or [""]


@strings.scalar("SPLIT(bytes BYTES, delimiter BYTES) -> ARRAY<BYTES>")
def split_bytes(value: bytes, delimiter: bytes) -> list[bytes]:
    """The parts between delimiters, including empty ones; each byte if it is empty."""
    if delimiter:
        return value.split(delimiter)
    return [value[n : n + 1] for n in range(len(value))] or [b""]


@strings.scalar(
    "SPLIT_TO_MAP(text STRING, entry_delimiter STRING, value_delimiter STRING)"
    " -> MAP<STRING, STRING>",
    "Splits a string into the entries of a map; the last entry wins if a key occurs twice.",
)
def split_to_map(text: str, entry_delimiter: str, value_delimiter: str) -> dict[str, str] | None:
    """The entries with a value, by key."""
    if not entry_delimiter or not value_delimiter or entry_delimiter == value_delimiter:
        return None
    entries = (each.split(value_delimiter) for each in text.split(entry_delimiter))
    return {parts[0]: parts[1] for parts in entries if len(parts) > 1}


@strings.scalar(
    "CHR(code INT) -> STRING", "The character with a code, which is a number or '\\u004b'."
)
def character(code: int) -> str | None:
    """The character of a Unicode code point."""
    return text_of(chr(code)) if 0 <= code <= 0x10FFFF else None


@strings.scalar("CHR(code STRING) -> STRING")
def characters(code: str) -> str | None:
    r"""The string of Java escapes, the first of which is \uXXXX."""
    if len(code) < 6 or not code.startswith("\\u"):
        return None
    first = ESCAPE.match(code)
    if first is None or first[1] is None:
        raise ValueError(f'"{code}" is not a UTF-16 code: four hex digits must follow \\u')
    return text_of(ESCAPE.sub(_unescaped, code))


def _unescaped(found: re.Match[str]) -> str:
    if found[1] is not None:
        return chr(int(found[1], 16))
    if found[2] is not None:
        return chr(int(found[2], 8))
    return NAMED_ESCAPES.get(found[3], found[3])


@strings.scalar(
    "ELT(position INT, strings STRING...) -> STRING",
    "The string at a position in a list of strings, starting at 1.",
    nulls=True,
)
def element(position: int | None, *values: str | None) -> str | None:
    """The n-th string; null if there is none."""
    if position is None or not 1 <= position <= len(values):
        return None
    return values[position - 1]


@strings.scalar(
    "FIELD(text STRING, strings STRING...) -> INT",
    "The position of a string in a list of strings, starting at 1; 0 if it is not found.",
    nulls=True,
)
def field_position(text: str | None, *values: str | None) -> int:
    """The position of a string in the list; 0 if it is missing or null."""
    if text is None or text not in values:
        return 0
    return values.index(text) + 1


@strings.machine_scalar(
    "UUID() -> STRING", "A new random UUID, or the UUID of 16 bytes.", volatile=True
)
def unique_identifier(machine: Machine) -> Implementation:
    """A random UUID as in RFC 4122, version 4."""
    return lambda: str(machine.uuid())


@strings.scalar("UUID(bytes BYTES) -> STRING")
def identifier_of_bytes(value: bytes) -> str | None:
    """The UUID of 16 bytes."""
    return str(UUID(bytes=value)) if len(value) == 16 else None
