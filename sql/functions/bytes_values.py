"""Functions that convert bytes to and from strings and numbers."""

import re
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable

from broker.java.number_text import parse_base64
from sql.functions.registry import Family

encodings = Family("STRING")
conversions = Family("CONVERSIONS")

HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
NO_BASE64 = re.compile(r"[^A-Za-z0-9+/]")
PAIRS = "Supported input and output encodings are: hex, utf8, ascii and base64"


def _from_hex(text: str) -> bytes:
    if HEX.fullmatch(text) is None:
        raise ValueError(
            "the string has an odd number of hex digits, or characters that are not hex digits"
        )
    return bytes.fromhex(text)


def _ascii_text(value: bytes) -> str:
    return value.decode("ascii", "replace")


DECODERS: dict[str, Callable[[str], bytes]] = {
    "hex": _from_hex,
    "utf8": lambda text: text.encode("utf-8", "replace"),
    "ascii": lambda text: text.encode("ascii", "replace"),
    "base64": parse_base64,
}
ENCODERS: dict[str, Callable[[bytes], str]] = {
    "hex": lambda value: value.hex().upper(),
    "utf8": lambda value: value.decode("utf-8", "replace"),
    "ascii": _ascii_text,
    "base64": lambda value: b64encode(value).decode("ascii"),
}


def _unknown(encoding: str) -> ValueError:
    return ValueError(
        f"Unknown encoding type '{encoding}'. "
        "Supported formats are 'hex', 'utf8', 'ascii', and 'base64'."
    )


@encodings.scalar(
    "TO_BYTES(text STRING, encoding STRING) -> BYTES",
    "Converts a string to bytes. The encoding is hex, utf8, ascii or base64.",
)
def to_bytes(text: str, encoding: str) -> bytes:
    decode = DECODERS.get(encoding.lower())
    if decode is None:
        raise _unknown(encoding)
    return decode(text)


@encodings.scalar(
    "FROM_BYTES(bytes BYTES, encoding STRING) -> STRING",
    "Converts bytes to a string. The encoding is hex, utf8, ascii or base64.",
)
def from_bytes(value: bytes, encoding: str) -> str:
    encode = ENCODERS.get(encoding.lower())
    if encode is None:
        raise _unknown(encoding)
    return encode(value)


@encodings.scalar(
    "ENCODE(text STRING, input STRING, output STRING) -> STRING",
    "Converts a string from one encoding to another: hex, utf8, ascii or base64.",
)
def recode(text: str, given: str, wanted: str) -> str:
    """Convert a string from one encoding to another."""
    source, target = given.lower(), wanted.lower()
    if source not in DECODERS or target not in ENCODERS or source == target:
        raise ValueError(PAIRS)
    if source == "hex":
        value = _from_hex(_bare_hex(text))
    elif source == "base64":
        value = _loose_base64(text)
    else:
        value = DECODERS[source](text)
    return value.hex() if target == "hex" else ENCODERS[target](value)


def _bare_hex(text: str) -> str:
    """The digits of 0xAB79 or X'AB79'."""
    if text.startswith("0x"):
        return ("0" if len(text) % 2 else "") + text[2:]
    if text[:2] in ("x'", "X'") and text[2:].endswith("'"):
        return text[2:-1]
    return text


def _loose_base64(text: str) -> bytes:
    """Decode standard or URL-safe base64, with or without padding; ignores other characters."""
    digits = NO_BASE64.sub("", text.partition("=")[0].replace("-", "+").replace("_", "/"))
    whole = digits[: len(digits) - 1] if len(digits) % 4 == 1 else digits
    return b64decode(whole + "=" * (-len(whole) % 4))


def _order(order: str) -> str:
    """The character of `struct` for a byte order."""
    sign = {"BIG_ENDIAN": ">", "LITTLE_ENDIAN": "<"}.get(order.upper())
    if sign is None:
        raise ValueError(
            f"Byte order must be BIG_ENDIAN or LITTLE_ENDIAN. Unknown byte order '{order}'."
        )
    return sign


def _sized(value: bytes, size: int) -> bytes:
    if len(value) != size:
        raise ValueError(f"Number of bytes must be equal to {size}, but found {len(value)}")
    return value


@conversions.scalar("INT_FROM_BYTES(bytes BYTES) -> INT", "Converts 4 bytes to a number.")
@conversions.scalar("INT_FROM_BYTES(bytes BYTES, order STRING) -> INT")
def int_from_bytes(value: bytes, order: str = "BIG_ENDIAN") -> int:
    number: int = struct.unpack(_order(order) + "i", _sized(value, 4))[0]
    return number


@conversions.scalar("BIGINT_FROM_BYTES(bytes BYTES) -> BIGINT", "Converts 8 bytes to a number.")
@conversions.scalar("BIGINT_FROM_BYTES(bytes BYTES, order STRING) -> BIGINT")
def bigint_from_bytes(value: bytes, order: str = "BIG_ENDIAN") -> int:
    number: int = struct.unpack(_order(order) + "q", _sized(value, 8))[0]
    return number


@conversions.scalar("DOUBLE_FROM_BYTES(bytes BYTES) -> DOUBLE", "Converts 8 bytes to a number.")
@conversions.scalar("DOUBLE_FROM_BYTES(bytes BYTES, order STRING) -> DOUBLE")
def double_from_bytes(value: bytes, order: str = "BIG_ENDIAN") -> float:
    number: float = struct.unpack(_order(order) + "d", _sized(value, 8))[0]
    return number
