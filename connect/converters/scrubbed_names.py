"""Names that a format does not allow, changed as in Confluent's converters."""

import re
from urllib.parse import quote_plus

_INVALID = re.compile(r"[^A-Za-z0-9_]")


def scrubbed(name: str, *, underline_first: bool = True) -> str:
    """A name of letters, digits and underscores; other characters are escaped."""
    encoded = quote_plus(name, safe="*").replace("~", "%7E")
    first = encoded[:1]
    if not (first.isascii() and first.isalpha()) and not (underline_first and first == "_"):
        encoded = "x" + encoded
    return _INVALID.sub("_", encoded)


def scrubbed_full(name: str) -> str:
    """The same for each part of a dotted name."""
    return ".".join(scrubbed(part) for part in name.split("."))
