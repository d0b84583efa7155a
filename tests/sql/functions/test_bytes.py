"""Functions that convert bytes to and from strings and numbers."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sql.functions.calls import call, same, typed

NULL = typed("STRING", None)

CALLS: list[tuple[str, tuple[object, ...], object]] = [
    ("TO_BYTES", ("1aB2", "hex"), b"\x1a\xb2"),
    ("TO_BYTES", ("é", "UTF8"), b"\xc3\xa9"),
    ("TO_BYTES", ("é", "ascii"), b"?"),
    ("TO_BYTES", ("IQ==", "base64"), b"!"),
    ("TO_BYTES", (NULL, "base64"), None),
    ("TO_BYTES", ("", "hex"), b""),
    ("FROM_BYTES", (b"\x1a\xb2", "hex"), "1AB2"),
    ("FROM_BYTES", (b"\xc3\xa9", "utf8"), "é"),
    ("FROM_BYTES", (b"\xc3\xa9", "ascii"), "\ufffd\ufffd"),
    ("FROM_BYTES", (b"!", "Base64"), "IQ=="),
    ("ENCODE", ("4578616d706C65", "hex", "ascii"), "Example"),
    ("ENCODE", ("0x45", "hex", "ascii"), "E"),
    ("ENCODE", ("0x145", "hex", "utf8"), "\x01E"),
    ("ENCODE", ("X'4578'", "hex", "base64"), "RXg="),
    ("ENCODE", ("x''", "hex", "utf8"), ""),
    ("ENCODE", ("Ex", "ascii", "hex"), "4578"),
    ("ENCODE", ("Ex", "ascii", "utf8"), "Ex"),
    ("ENCODE", ("ü", "ascii", "base64"), "Pw=="),
    ("ENCODE", ("ü", "utf8", "hex"), "c3bc"),
    ("ENCODE", ("ü", "utf8", "ascii"), "\ufffd\ufffd"),
    ("ENCODE", ("ü", "UTF8", "BASE64"), "w7w="),
    ("ENCODE", ("w7w", "base64", "utf8"), "ü"),
    ("ENCODE", ("w7 w=\n", "base64", "hex"), "c3bc"),
    ("ENCODE", ("-_8=", "base64", "hex"), "fbff"),
    ("ENCODE", ("RXg=R", "base64", "ascii"), "Ex"),
    ("INT_FROM_BYTES", (b"\x00\x00\x07\xe5",), 2021),
    ("INT_FROM_BYTES", (b"\xff\xff\xff\xff",), -1),
    ("INT_FROM_BYTES", (b"\xe5\x07\x00\x00", "little_endian"), 2021),
    ("BIGINT_FROM_BYTES", (b"\x00\x00\x00\x01\x2a\x05\xf2\x00",), 5_000_000_000),
    ("BIGINT_FROM_BYTES", (b"\x00\xf2\x05\x2a\x01\x00\x00\x00", "LITTLE_ENDIAN"), 5_000_000_000),
    ("DOUBLE_FROM_BYTES", (struct.pack(">d", 532.5),), 532.5),
    ("DOUBLE_FROM_BYTES", (struct.pack("<d", 532.5), "LITTLE_ENDIAN"), 532.5),
    ("INT_FROM_BYTES", (typed("BYTES", None),), None),
]


@pytest.mark.parametrize(("name", "arguments", "wanted"), CALLS)
def test_a_call_gives_its_result(name: str, arguments: tuple[object, ...], wanted: object) -> None:
    assert same(call(name, *arguments), wanted)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("TO_BYTES", ("a", "utf16"), "Unknown encoding type 'utf16'"),
        ("TO_BYTES", ("a", "hex"), "hex digits"),
        ("TO_BYTES", ("0 1", "hex"), "hex digits"),
        ("TO_BYTES", ("a", "base64"), "not base64"),
        ("FROM_BYTES", (b"a", "null"), "Unknown encoding type 'null'"),
        ("ENCODE", ("a", "utf8", "utf8"), "Supported input and output encodings"),
        ("ENCODE", ("a", "utf8", "utf16"), "Supported input and output encodings"),
        ("ENCODE", ("abc", "hex", "utf8"), "hex digits"),
        ("INT_FROM_BYTES", (b"abc",), "must be equal to 4, but found 3"),
        ("BIGINT_FROM_BYTES", (b"abc", "BIG_ENDIAN"), "must be equal to 8"),
        ("DOUBLE_FROM_BYTES", (b"abcdefgh", "MIDDLE_ENDIAN"), "Unknown byte order"),
    ],
)
def test_a_wrong_call_says_why(name: str, arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(name, *arguments)


@given(st.binary(), st.sampled_from(["hex", "base64"]))
def test_bytes_as_a_text_and_back_are_the_same(value: bytes, encoding: str) -> None:
    assert call("TO_BYTES", call("FROM_BYTES", value, encoding), encoding) == value


@given(st.text(), st.sampled_from(["hex", "base64", "ascii"]))
def test_any_text_is_recoded_or_refused(text: str, encoding: str) -> None:
    try:
        found = call("ENCODE", text, encoding, "utf8")
    except ValueError:
        return
    assert isinstance(found, str)


@given(
    st.integers(-(2**31), 2**31 - 1), st.sampled_from([(">", "BIG_ENDIAN"), ("<", "LITTLE_ENDIAN")])
)
def test_a_number_packed_and_unpacked_is_the_same(number: int, order: tuple[str, str]) -> None:
    assert call("INT_FROM_BYTES", struct.pack(order[0] + "i", number), order[1]) == number
