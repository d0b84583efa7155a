"""Converts strings of the command line to bytes and back, for `produce` and `consume`."""

from collections.abc import Callable
from functools import partial
from struct import Struct
from struct import error as StructError

import click
import orjson

NUMBERS = {
    "short": Struct(">h"),
    "integer": Struct(">i"),
    "long": Struct(">q"),
    "float": Struct(">f"),
    "double": Struct(">d"),
}
Write = Callable[[str], bytes | None]
Read = Callable[[bytes | None], object]
REGISTRY = "registry"  # any format with a schema in a registry
NAMES = ("string", "json", "hex", *NUMBERS, REGISTRY)


def to_bytes_of(name: str, registry: str, topic: str, *, is_key: bool) -> Write:
    """A function that converts a string to the bytes of a value."""
    if name != REGISTRY:
        return partial(to_bytes, name)
    from millstream.commands import registered

    return registered.writer(registry, topic, is_key=is_key)


def from_bytes_of(name: str, registry: str, topic: str) -> Read:
    """A function that converts bytes to a JSON value."""
    if name != REGISTRY:
        return from_bytes(name)
    from millstream.commands import registered

    return registered.reader(registry, topic)


def to_bytes(name: str, text: str) -> bytes:
    """The bytes of a value given as a string; raises a usage error if it is invalid."""
    try:
        if name == "string":
            return text.encode()
        if name == "json":
            return orjson.dumps(orjson.loads(text))
        if name == "hex":
            return bytes.fromhex(text)
        number = float(text) if name in ("float", "double") else int(text)
        return NUMBERS[name].pack(number)
    except (ValueError, StructError) as error:
        raise click.UsageError(f'"{text}" is not {_with_article(name)}: {error}') from None


def from_bytes(name: str) -> Read:
    """A function that converts bytes to a JSON value; invalid bytes become a hex string."""

    def read(data: bytes | None) -> object:
        if data is None:
            return None
        try:
            if name == "string":
                return data.decode()
            if name == "json":
                return orjson.loads(data)
            if name == "hex":
                return data.hex()
            return NUMBERS[name].unpack(data)[0]
        except (ValueError, StructError):
            return f"0x{data.hex()}"

    return read


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
