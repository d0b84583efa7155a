"""Functions of URLs, which are parsed as in java.net.URI: strictly, with some more letters.

[scheme:][//authority][path][?query][#fragment]      scheme:opaque[#fragment]
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote_plus, unquote, unquote_to_bytes

from sql.functions.registry import Family

urls = Family("URL")

# Non-ASCII letters are allowed where %XX is; control characters and spaces are not.
_OTHER = (
    r"[^\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000!-~]|%[0-9a-fA-F]{2}"
)
_UNRESERVED = r"[A-Za-z0-9_\-!.~'()*]"
_PATH = rf"(?:{_UNRESERVED}|[:@&=+$,;/]|{_OTHER})*"
_ANY = rf"(?:{_UNRESERVED}|[;/?:@&=+$,\[\]]|{_OTHER})*"
_AUTHORITY = rf"(?:{_UNRESERVED}|[$,;:@&=+\[\]]|{_OTHER})+"
_HIERARCHY = (
    rf"(?://(?P<authority>{_AUTHORITY})(?P<rest>(?:/{_PATH})?)|(?://(?=/)|(?!//))(?P<path>{_PATH}))"
)
_TAIL = rf"(?:\#(?P<fragment>{_ANY}))?"
HIERARCHICAL = re.compile(
    rf"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):(?=/))?{_HIERARCHY}(?:\?(?P<query>{_ANY}))?{_TAIL}"
)
OPAQUE = re.compile(
    rf"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):(?!/)(?:{_UNRESERVED}|[;?:@&=+$,\[\]]|{_OTHER})"
    rf"{_ANY}{_TAIL}"
)
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
_NAME = rf"(?:{_LABEL}\.)*[A-Za-z](?:[A-Za-z0-9\-]*[A-Za-z0-9])?\.?"
_BYTE = r"(?:25[0-5]|2[0-4]\d|[01]?\d?\d)"
SERVER = re.compile(
    rf"(?:(?:{_UNRESERVED}|[;:&=+$,]|{_OTHER})*@)?"
    rf"(?P<host>{_NAME}|{_BYTE}(?:\.{_BYTE}){{3}}|\[[0-9a-fA-F:.]+(?:%[\w.\-]+)?\])"
    r"(?::(?P<port>[0-9]{0,10}))?",
    re.ASCII,
)
FIRST_SEGMENT_WITH_COLON = re.compile(r"[^/?#]*:")
BROKEN_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
TEXT_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Url:
    """The decoded parts of a URL; missing ones are None."""

    scheme: str | None
    host: str | None
    port: int | None
    path: str | None
    query: str | None
    fragment: str | None


@lru_cache(maxsize=1024)
def parse_url(text: str) -> Url:
    """The parts of a URL; ValueError if it is invalid."""
    if len(text) > TEXT_MAX:
        raise ValueError(f"the URL is longer than {TEXT_MAX} characters")
    found = HIERARCHICAL.fullmatch(text)
    if found is not None and found["scheme"] is None and FIRST_SEGMENT_WITH_COLON.match(text):
        found = None  # the part before a colon is a scheme
    if found is None:
        opaque = OPAQUE.fullmatch(text)
        if opaque is None:
            raise ValueError(f"URL input has invalid syntax: {text}")
        return Url(opaque["scheme"], None, None, None, None, _decoded(opaque["fragment"]))
    server = SERVER.fullmatch(found["authority"] or "")
    if server and int(server["port"] or 0) >= 2**31:
        server = None
    return Url(
        scheme=found["scheme"],
        host=server["host"] if server else None,
        port=int(server["port"]) if server and server["port"] else None,
        path=_decoded(found["path"] if found["authority"] is None else found["rest"]),
        query=_decoded(found["query"]),
        fragment=_decoded(found["fragment"]),
    )


def _decoded(part: str | None) -> str | None:
    return part if part is None or "%" not in part else unquote(part)


@urls.scalar(
    "URL_ENCODE_PARAM(text STRING) -> STRING", "Encodes a string for use as a parameter of a URL."
)
def encode_parameter(text: str) -> str:
    """Form encoding: spaces become +, all others except letters, digits and -_.* become %XX."""
    return quote_plus(text, safe="*").replace("~", "%7E")


@urls.scalar("URL_DECODE_PARAM(text STRING) -> STRING", "Decodes a parameter of a URL.")
def decode_parameter(text: str) -> str:
    """Decode a form encoding."""
    if BROKEN_ESCAPE.search(text):
        raise ValueError(f'two hex digits must follow each percent sign in "{text}"')
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


@urls.scalar("URL_EXTRACT_PROTOCOL(url STRING) -> STRING", "The protocol of a URL, such as http.")
def extract_protocol(url: str) -> str | None:
    return parse_url(url).scheme


@urls.scalar("URL_EXTRACT_HOST(url STRING) -> STRING", "The host of a URL.")
def extract_host(url: str) -> str | None:
    return parse_url(url).host


@urls.scalar("URL_EXTRACT_PORT(url STRING) -> INT", "The port of a URL.")
def extract_port(url: str) -> int | None:
    return parse_url(url).port


@urls.scalar("URL_EXTRACT_PATH(url STRING) -> STRING", "The path of a URL.")
def extract_path(url: str) -> str | None:
    """The path may be empty."""
    return parse_url(url).path


@urls.scalar(
    "URL_EXTRACT_QUERY(url STRING) -> STRING", "The query of a URL: what follows the question mark."
)
def extract_query(url: str) -> str | None:
    return parse_url(url).query


@urls.scalar(
    "URL_EXTRACT_FRAGMENT(url STRING) -> STRING", "The fragment of a URL: what follows the hash."
)
def extract_fragment(url: str) -> str | None:
    return parse_url(url).fragment


@urls.scalar(
    "URL_EXTRACT_PARAMETER(url STRING, name STRING) -> STRING",
    "The value of a named parameter in the query of a URL.",
)
def extract_parameter(url: str, name: str) -> str | None:
    """The value of the first parameter with this name; empty if it has none."""
    query = parse_url(url).query
    if query is None:
        return None
    for each in query.split("&"):
        key, _, value = each.partition("=")
        if key == name:
            return value
    return None
