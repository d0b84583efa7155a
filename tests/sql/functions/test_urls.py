"""Functions of URLs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.functions.urls import parse_url
from tests.sql.functions.calls import call, same, typed

NULL = typed("STRING", None)
FULL = "https://me:pw@shop.example:8443/a%20b/c?q=1&r=%26x&s&q=2#p%C3%A4rt"

CALLS: list[tuple[str, tuple[object, ...], object]] = [
    ("URL_EXTRACT_PROTOCOL", (FULL,), "https"),
    ("URL_EXTRACT_HOST", (FULL,), "shop.example"),
    ("URL_EXTRACT_PORT", (FULL,), 8443),
    ("URL_EXTRACT_PATH", (FULL,), "/a b/c"),
    ("URL_EXTRACT_QUERY", (FULL,), "q=1&r=&x&s&q=2"),
    ("URL_EXTRACT_FRAGMENT", (FULL,), "pärt"),
    ("URL_EXTRACT_PARAMETER", (FULL, "q"), "1"),
    ("URL_EXTRACT_PARAMETER", (FULL, "s"), ""),
    ("URL_EXTRACT_PARAMETER", (FULL, "t"), None),
    ("URL_EXTRACT_PARAMETER", ("http://h/?a=b=c", "a"), "b=c"),
    ("URL_EXTRACT_PARAMETER", ("http://h/", "a"), None),
    ("URL_EXTRACT_PROTOCOL", ("www.example.com",), None),
    ("URL_EXTRACT_PATH", ("www.example.com",), "www.example.com"),
    ("URL_EXTRACT_PATH", ("http://h?q",), ""),
    ("URL_EXTRACT_PATH", ("file:///etc/hosts",), "/etc/hosts"),
    ("URL_EXTRACT_PATH", ("mailto:me@example.com",), None),
    ("URL_EXTRACT_PATH", ("",), ""),
    ("URL_EXTRACT_PROTOCOL", ("mailto:me@example.com",), "mailto"),
    ("URL_EXTRACT_HOST", ("http://under_score.example/",), None),
    ("URL_EXTRACT_HOST", ("http://[::1]:80/",), "[::1]"),
    ("URL_EXTRACT_HOST", ("http://10.0.0.1:80/",), "10.0.0.1"),
    ("URL_EXTRACT_HOST", ("//host/path",), "host"),
    ("URL_EXTRACT_PORT", ("http://[::1]:80/",), 80),
    ("URL_EXTRACT_PORT", ("http://h:/",), None),
    ("URL_EXTRACT_PORT", ("http://h:9999999999/",), None),
    ("URL_EXTRACT_QUERY", ("http://h/p",), None),
    ("URL_EXTRACT_FRAGMENT", ("http://h/p#",), ""),
    ("URL_EXTRACT_FRAGMENT", (NULL,), None),
    ("URL_ENCODE_PARAM", ("?a b&c*-_.~é",), "%3Fa+b%26c*-_.%7E%C3%A9"),
    ("URL_DECODE_PARAM", ("%3Fa+b%26c",), "?a b&c"),
    ("URL_DECODE_PARAM", ("%C3%A9%ff",), "é\ufffd"),
]


@pytest.mark.parametrize(("name", "arguments", "wanted"), CALLS)
def test_a_call_gives_its_result(name: str, arguments: tuple[object, ...], wanted: object) -> None:
    assert same(call(name, *arguments), wanted)


@pytest.mark.parametrize(
    "url",
    ["http:", "http://", "http://h/a b", "http://h/%zz", "ht tp://h", "http://h/<>", "1:x", "a\n"],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="URL input has invalid syntax"):
        call("URL_EXTRACT_HOST", url)


@pytest.mark.parametrize("text", ["%", "a%2", "%zz"])
def test_a_percent_sign_alone_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="two hex digits"):
        call("URL_DECODE_PARAM", text)


@given(st.text())
def test_an_encoded_parameter_is_decoded_again(text: str) -> None:
    encoded = call("URL_ENCODE_PARAM", text)
    assert isinstance(encoded, str)
    assert encoded.isascii()
    assert call("URL_DECODE_PARAM", encoded) == text
    assert call("URL_EXTRACT_PARAMETER", f"http://h/?p={encoded.replace('+', '%20')}", "p") in (
        text,
        text.partition("&")[0],
    )


@given(st.text(st.sampled_from("ab1:/?#[]@!%&.-_ é"), max_size=30))
def test_any_text_is_a_url_or_refused(text: str) -> None:
    try:
        found = parse_url(text)
    except ValueError:
        return
    assert found.scheme is None or text.startswith(found.scheme + ":")
