"""Functions of strings: one table for all overloads, and UTF-16 against a slow reference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.functions.utf16_text import length_of, text_of, units_of
from tests.sql.functions.calls import call, same, typed

NULL = typed("STRING", None)
NO_BYTES = typed("BYTES", None)
NO_NUMBER = typed("INT", None)
SMILE = "\U0001f600"

CALLS: list[tuple[str, tuple[object, ...], object]] = [
    ("LCASE", ("ÄB c",), "äb c"),
    ("UCASE", ("straße",), "STRASSE"),
    ("TRIM", ("\t a b \x00\n",), "a b"),
    ("TRIM", ("\u00a0a",), "\u00a0a"),
    ("INITCAP", ("the   Quick br0wn-fOx",), "The   Quick Br0wn-fox"),
    ("INITCAP", ("  one\ttwo ",), "One\tTwo "),
    ("INITCAP", ("",), ""),
    ("LEN", (f"a{SMILE}",), 3),
    ("LEN", ("",), 0),
    ("LEN", (b"abc",), 3),
    ("LEN", (NULL,), None),
    ("MD5", ("abc",), "900150983cd24fb0d6963f7d28e17f72"),
    ("MD5", ("é",), "66ddcd97cfdeabb2f6fb8a999b4bc76f"),
    ("CONCAT", ("a", "b", NULL, "c"), "abc"),
    ("CONCAT", (NULL, NULL), ""),
    ("CONCAT", (b"a", NO_BYTES, b"b"), b"ab"),
    ("CONCAT_WS", ("-", "a", NULL, "b"), "a-b"),
    ("CONCAT_WS", ("-", NULL), ""),
    ("CONCAT_WS", (NULL, "a", "b"), None),
    ("CONCAT_WS", (b"-", b"a", b"", NO_BYTES), b"a-"),
    ("CONCAT_WS", (NO_BYTES, b"a"), None),
    ("SUBSTRING", ("stream", 3), "ream"),
    ("SUBSTRING", ("stream", 3, 2), "re"),
    ("SUBSTRING", ("stream", -3), "eam"),
    ("SUBSTRING", ("stream", -3, 2), "ea"),
    ("SUBSTRING", ("stream", -30, 2), "st"),
    ("SUBSTRING", ("stream", 0, 2), "st"),
    ("SUBSTRING", ("stream", 30), ""),
    ("SUBSTRING", ("stream", 3, -1), ""),
    ("SUBSTRING", (f"a{SMILE}b", 4), "b"),
    ("SUBSTRING", (f"a{SMILE}b", 2, 2), SMILE),
    ("SUBSTRING", (f"a{SMILE}b", 3, 2), "?b"),
    ("SUBSTRING", (b"stream", 3, 2), b"re"),
    ("SUBSTRING", (b"stream", -2), b"am"),
    ("SUBSTRING", ("stream", NO_NUMBER), None),
    ("INSTR", ("corn on the corner", "cor"), 1),
    ("INSTR", ("corn on the corner", "cor", 2), 13),
    ("INSTR", ("corn on the corner", "or", 1, 2), 14),
    ("INSTR", ("corn on the corner", "or", 1, 3), 0),
    ("INSTR", ("corn on the corner", "or", -1), 14),
    ("INSTR", ("corn on the corner", "or", -6), 2),
    ("INSTR", ("corn on the corner", "or", -1, 2), 2),
    ("INSTR", ("aaaa", "aa", 1, 2), 2),
    ("INSTR", ("corn", "x"), 0),
    ("INSTR", ("corn", "c", 0), 0),
    ("INSTR", ("corn", "c", 9), 0),
    ("INSTR", (NULL, "c"), 0),
    ("INSTR", ("corn", NULL), 0),
    ("INSTR", ("corn", "c", NO_NUMBER), None),
    ("INSTR", (f"{SMILE}b", "b"), 3),
    ("REPLACE", ("a.b.c", ".", "->"), "a->b->c"),
    ("REPLACE", ("abc", "", "-"), "-a-b-c-"),
    ("REPLACE", ("abc", NULL, "-"), None),
    ("LPAD", ("foo", 7, "Bar"), "BarBfoo"),
    ("LPAD", ("foo", 2, "Bar"), "fo"),
    ("LPAD", ("foo", 0, "Bar"), ""),
    ("LPAD", ("foo", -1, "Bar"), None),
    ("LPAD", ("foo", 7, ""), None),
    ("LPAD", ("foo", 7, NULL), None),
    ("LPAD", (b"foo", 5, b"xyz"), b"xyfoo"),
    ("RPAD", ("foo", 7, "Bar"), "fooBarB"),
    ("RPAD", ("foo", 2, "Bar"), "fo"),
    ("RPAD", (SMILE, 3, "-"), f"{SMILE}-"),
    ("RPAD", (b"foo", 5, b"xyz"), b"fooxy"),
    ("RPAD", (b"foo", 5, b""), None),
    ("SPLIT", ("a.b..c.", "."), ["a", "b", "", "c", ""]),
    ("SPLIT", ("abc", "x"), ["abc"]),
    ("SPLIT", (f"a{SMILE}", ""), ["a", SMILE]),
    ("SPLIT", ("", ""), [""]),
    ("SPLIT", (b"a--b", b"-"), [b"a", b"", b"b"]),
    ("SPLIT", (b"ab", b""), [b"a", b"b"]),
    ("SPLIT", (b"", b""), [b""]),
    ("SPLIT_TO_MAP", ("a:1/b:2/a:3", "/", ":"), {"a": "3", "b": "2"}),
    ("SPLIT_TO_MAP", ("a:1:2//b", "/", ":"), {"a": "1"}),
    ("SPLIT_TO_MAP", ("a:1", ":", ":"), None),
    ("SPLIT_TO_MAP", ("a:1", "", ":"), None),
    ("SPLIT_TO_MAP", ("", "/", ":"), {}),
    ("CHR", (75,), "K"),
    ("CHR", (0x1F600,), SMILE),
    ("CHR", (-1,), None),
    ("CHR", (0x110000,), None),
    ("CHR", ("\\u004b",), "K"),
    ("CHR", ("\\ud83d\\ude00",), SMILE),
    ("CHR", ("\\u004b\\t\\101",), "K\tA"),
    ("CHR", ("75",), None),
    ("CHR", ("u004b00",), None),
    ("ELT", (2, "a", "b"), "b"),
    ("ELT", (0, "a", "b"), None),
    ("ELT", (3, "a", "b"), None),
    ("ELT", (1, NULL, "b"), None),
    ("ELT", (NO_NUMBER, "a"), None),
    ("FIELD", ("b", "a", "b"), 2),
    ("FIELD", ("c", "a", NULL), 0),
    ("FIELD", (NULL, "a", NULL), 0),
    ("UUID", (bytes(range(16)),), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
    ("UUID", (b"short",), None),
    ("MASK", ("AbC 1-é",), "XxX-n-x"),
    ("MASK", ("AbC 1", "#", NULL, "9", NULL), "#b# 9"),
    ("MASK", (f"a{SMILE}b",), "x--x"),
    ("MASK", (f"a{SMILE}b", "X", "x", "n", NULL), f"x{SMILE}x"),
    ("MASK", (NULL, "X", "x", "n", "-"), None),
    ("MASK_LEFT", ("Abc 12", 2), "Xxc 12"),
    ("MASK_LEFT", ("Abc 12", 20), "Xxx-nn"),
    ("MASK_LEFT", ("Abc", 2, "A", NULL, NULL, NULL), "Abc"),
    ("MASK_RIGHT", ("Abc 12", 2), "Abc nn"),
    ("MASK_RIGHT", ("Abc 12", 20), "Xxx-nn"),
    ("MASK_RIGHT", ("Abc 12", 2, NULL, NULL, "9", NULL), "Abc 99"),
    ("MASK_RIGHT", (f"b{SMILE}", 2), "b--"),
    ("MASK_KEEP_LEFT", ("Abc 12", 2), "Abx-nn"),
    ("MASK_KEEP_LEFT", ("Abc", 1, "X", "y", "n", "-"), "Ayy"),
    ("MASK_KEEP_RIGHT", ("Abc 12", 2), "Xxx-12"),
    ("MASK_KEEP_RIGHT", ("Abc", 0, "X", "y", "n", "-"), "Xyy"),
    ("MASK_KEEP_RIGHT", (NULL, 0, "X", "y", "n", "-"), None),
    ("MASK_KEEP_RIGHT", ("Abc", NO_NUMBER, "X", "y", "n", "-"), None),
]


@pytest.mark.parametrize(("name", "arguments", "wanted"), CALLS)
def test_a_call_gives_its_result(name: str, arguments: tuple[object, ...], wanted: object) -> None:
    found = call(name, *arguments)
    assert same(found, wanted), found


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("CONCAT_WS", ("-",), "at least two"),
        ("CONCAT_WS", (b"-",), "at least two"),
        ("CHR", ("\\uwxyz",), "hex digits"),
        ("LPAD", ("a", 2**31 - 1, "b"), "longer"),
        ("RPAD", (b"a", 2**31 - 1, b"b"), "longer than"),
        ("REPLACE", ("a" * 10_000, "a", "b" * 10_000), "longer"),
        ("MASK_LEFT", ("a", -1), "function mask_left requires a non-negative"),
        ("MASK_RIGHT", ("a", -1), "function mask_right requires"),
        ("MASK_KEEP_LEFT", ("a", -1), "function mask_keep_left requires"),
        ("MASK_KEEP_RIGHT", ("a", -1), "function mask_keep_right requires"),
        ("MASK", ("a", "XX", "x", "n", "-"), "single character"),
    ],
)
def test_a_wrong_call_says_why(name: str, arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(name, *arguments)


def test_each_call_of_uuid_gives_another_one() -> None:
    assert call("UUID") != call("UUID")


texts = st.text(st.sampled_from("ab é\u20ac" + SMILE), max_size=12)


def naive_substring(text: str, position: int, length: int) -> str:
    """By bytes of UTF-16, as it would be written without any thought of speed."""
    units = text.encode("utf-16-le")
    count = len(units) // 2
    start = max(count + position, 0) if position < 0 else max(min(position - 1, count), 0)
    end = max(min(start + length, count), start)
    cut = units[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")
    return cut.encode("utf-8", "replace").decode()


@given(texts, st.integers(-15, 15), st.integers(-3, 15))
def test_substrings_are_those_of_utf16(text: str, position: int, length: int) -> None:
    assert call("SUBSTRING", text, position, length) == naive_substring(text, position, length)
    assert call("SUBSTRING", text, position) == naive_substring(text, position, 100)


@given(texts)
def test_texts_are_taken_apart_and_put_together(text: str) -> None:
    assert text_of(units_of(text)) == text
    assert len(units_of(text)) == length_of(text) == len(text.encode("utf-16-le")) // 2


@given(texts, texts, st.integers(0, 20))
def test_padded_texts_have_the_wanted_length(text: str, padding: str, length: int) -> None:
    for name in ("LPAD", "RPAD"):
        found = call(name, text, length, padding)
        if padding:
            assert isinstance(found, str)
            assert length_of(found) == length
        else:
            assert found is None


@given(texts, texts)
def test_joining_what_was_split_gives_the_text(text: str, delimiter: str) -> None:
    parts = call("SPLIT", text, delimiter)
    assert isinstance(parts, list)
    assert delimiter.join(parts) == text


@given(texts, texts.filter(bool))
def test_a_found_part_is_where_it_was_found(text: str, part: str) -> None:
    place = call("INSTR", text, part)
    assert isinstance(place, int)
    assert (place > 0) == (part in text)
    if place:
        assert units_of(text)[place - 1 :].startswith(units_of(part))


@given(texts, st.integers(0, 15))
def test_the_kept_and_the_masked_part_complete_each_other(text: str, count: int) -> None:
    whole = call("MASK", text)
    assert isinstance(whole, str)
    units = units_of(text)
    cut = text_of(units[:count]), text_of(units[count:])
    assert call("MASK_KEEP_LEFT", text, count) == f"{cut[0]}{call('MASK', cut[1])}"
    assert call("MASK_LEFT", text, count) == f"{call('MASK', cut[0])}{cut[1]}"
