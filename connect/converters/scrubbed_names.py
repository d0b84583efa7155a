"""Names that a format has not, made valid as Confluent's converters make them."""

import re
from urllib.parse import quote_plus

_INVALID = re.compile(r"[^A-Za-z0-9_]")


def scrubbed(name: str, *, underline_first: bool = True) -> str:
    """A name of which only letters, digits and underlines are left, and what it was can be seen."""
    encoded = quote_plus(name, safe="*").replace("~", "%7E")
    first = encoded[:1]
    if not (first.isascii() and first.isalpha()) and not (underline_first and first == "_"):
        encoded = "x" + encoded
    return _INVALID.sub("_", encoded)


def scrubbed_full(name: str) -> str:
    """The same for each part of a dotted name."""
    return ".".join(scrubbed(part) for part in name.split("."))
