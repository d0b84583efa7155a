"""Functions of regular expressions, and Java's expressions among Python's."""

import re
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.java.patterns import PATTERN_MAX, TEXT_MAX, compile_pattern
from broker.linear_patterns import Pattern, PatternTimeout
from tests.sql.functions.calls import call, same, typed

NULL = typed("STRING", None)

CALLS: list[tuple[str, tuple[object, ...], object]] = [
    ("REGEXP_EXTRACT", ("o.", "one or two"), "on"),
    ("REGEXP_EXTRACT", ("(.*) (.*)", "one two", 2), "two"),
    ("REGEXP_EXTRACT", ("(a)|b", "b", 1), None),
    ("REGEXP_EXTRACT", ("(a)", "a", 2), None),
    ("REGEXP_EXTRACT", ("x", "a"), None),
    ("REGEXP_EXTRACT", ("x", NULL), None),
    ("REGEXP_EXTRACT_ALL", ("o.", "one or two"), ["on", "or"]),
    ("REGEXP_EXTRACT_ALL", (r"(\w+) (\w*)", "one two three ", 2), ["two", ""]),
    ("REGEXP_EXTRACT_ALL", ("(a)|b", "ab", 1), ["a", None]),
    ("REGEXP_EXTRACT_ALL", ("a*", "baa"), ["", "aa", ""]),
    ("REGEXP_EXTRACT_ALL", ("a", "b"), []),
    ("REGEXP_EXTRACT_ALL", ("a", "b", 1), None),
    ("REGEXP_REPLACE", ("baababaa", "(ab)+", "cat"), "bacataa"),
    ("REGEXP_REPLACE", ("one two", r"(\w+) (\w+)", "$2-$1"), "two-one"),
    ("REGEXP_REPLACE", ("one", "(?<first>.).*", "${first}!"), "o!"),
    ("REGEXP_REPLACE", ("a", "(a)", "$12"), "a2"),
    ("REGEXP_REPLACE", ("ab", "a|(b)", "[$1]"), "[][b]"),
    ("REGEXP_REPLACE", ("a", "a", r"\$1\\"), "$1\\"),
    ("REGEXP_REPLACE", ("abc", "x*", "-"), "-a-b-c-"),
    ("REGEXP_REPLACE", ("abc", "x", "$9"), "abc"),
    ("REGEXP_SPLIT_TO_ARRAY", ("aabcda", "(ab|cd)"), ["a", "", "a"]),
    ("REGEXP_SPLIT_TO_ARRAY", (",a,,b,", ","), ["", "a", "", "b", ""]),
    ("REGEXP_SPLIT_TO_ARRAY", ("abc", ""), ["a", "b", "c"]),
    ("REGEXP_SPLIT_TO_ARRAY", ("a1b22c", r"\d*"), ["a", "", "b", "", "c"]),
    ("REGEXP_SPLIT_TO_ARRAY", ("abc def", r"\b"), ["abc", " ", "def"]),
    ("REGEXP_SPLIT_TO_ARRAY", ("", "x"), [""]),
    ("REGEXP_SPLIT_TO_ARRAY", ("", ""), [""]),
    ("REGEXP_SPLIT_TO_ARRAY", ("abc", "x*y*"), ["a", "b", "c"]),
]


@pytest.mark.parametrize(("name", "arguments", "wanted"), CALLS)
def test_a_call_gives_its_result(name: str, arguments: tuple[object, ...], wanted: object) -> None:
    found = call(name, *arguments)
    assert same(found, wanted), found


# Expression, text, and the first match of Java.
FIRST_MATCHES: list[tuple[str, str, str | None]] = [
    (r"\d+", "\u0661\u06623", "3"),
    (r"\w+", "été", "t"),
    (r"(?U)\w+", "été", "été"),
    (r"(?U)\w", "é", "é"),
    (r"(?U:\w)a", "éa", "éa"),
    (r"(?U:\w)\d", "é\u0661é1", "é1"),
    (r"\W", "é", "é"),
    (r"\s", "\u00a0 ", " "),
    (r"\h+", "a\u00a0\tb", "\u00a0\t"),
    (r"\H+", " ab ", "ab"),
    (r"\v", "a\u2028b", "\u2028"),
    (r"\R", "a\r\nb", "\r\n"),
    ("a.b", "a\rb", None),
    ("(?s)a.b", "a\rb", "a\rb"),
    ("(?d)a.b", "a\rb", "a\rb"),
    ("a$", "a\r\n", "a"),
    ("a$", "a\nb", None),
    ("(?m)a$", "a\u0085b", "a"),
    ("(?m)^b", "a\r\nb", "b"),
    ("(?m)^$", "a\n", None),
    (r"a\Z", "a\n", "a"),
    (r"a\z", "a\n", None),
    (r"\Aa", "ba", None),
    (r"\Qa.b*\E+", "a.b**", "a.b**"),
    (r"\Qa.b", "aab a.b", "a.b"),
    (r"(?<year>\d{2})-\k<year>", "18-19-19", "19-19"),
    (r"(a)\11", "aa1", "aa1"),
    (r"(a)(b)\2\1", "abba", "abba"),
    (r"\x41\u0042\x{43}\0104\cA", "ABCD\x01", "ABCD\x01"),
    (r"\e\t\a\f", "\x1b\t\a\f", "\x1b\t\a\f"),
    (r"[a-z&&[^bc]]+", "bcdeb", "de"),
    (r"[a-z&&[def]]+", "abcdef", "def"),
    (r"[a-c[x-z]]+", "--axz-", "axz"),
    (r"[^a-c[x-z]]+", "axdz", "d"),
    (r"[^a-z&&[def]]+", "def1", "1"),
    (r"[\w&&[^\d]]+", "12ab", "ab"),
    (r"[\]\[\-^]+", "a]-^[", "]-^["),
    (r"[]a]+", "b]a", "]a"),
    (r"[a-]+", "b-a", "-a"),
    (r"[\Q^-]\E]+", "a]-^", "]-^"),
    (r"[\p{Lu}\d]+", "aÉ1b", "É1"),
    (r"\p{L}+", "1éa", "éa"),
    (r"\pL+", "1éa", "éa"),
    (r"\P{L}+", "é12", "12"),
    (r"\p{Alpha}+", "éab", "ab"),
    (r"\p{Punct}+", "a!?b", "!?"),
    (r"\p{IsAlphabetic}+", "1éa", "éa"),
    (r"\p{javaUpperCase}", "aÉ", "É"),
    (r"\p{gc=Nd}+", "a\u0661", "\u0661"),
    (r"(?i)É", "é", None),
    (r"(?iu)É", "é", "é"),
    ("a(?i)b|c", "xC", "C"),
    ("a(?i)b(?-i)c", "aBC aBc", "aBc"),
    ("(?i:a)b", "AB Ab", "Ab"),
    ("(?x) a b # and so on\n c", "abc", "abc"),
    ("x*+x", "xxx", None),
    ("(?>a+)b", "aab", "aab"),
    ("(?<=a)b(?!c)", "abc ab", "b"),
    (r"a{2,3}?", "aaa", "aa"),
    ("]", "]", "]"),
    ("}", "}", "}"),
    (r"\_\-\ ", "_- ", "_- "),
]


@pytest.mark.parametrize(("pattern", "text", "wanted"), FIRST_MATCHES)
def test_an_expression_finds_what_java_finds(pattern: str, text: str, wanted: str | None) -> None:
    assert call("REGEXP_EXTRACT", pattern, text) == wanted


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a{", "Illegal repetition"),
        ("a{,3}", "Illegal repetition"),
        ("*a", "Dangling meta character"),
        ("a**", "multiple repeat|Dangling"),
        ("(", "Unclosed group"),
        (")", "Unmatched closing"),
        ("[a", "Unclosed character class"),
        ("[z-a]", "Illegal character range"),
        ("(?#comment)", "Unknown group type"),
        (r"\G", "unsupported escape"),
        (r"\X", "unsupported escape"),
        (r"\y", "unsupported escape"),
        ("\\", "backslash"),
        (r"\k<x", "not followed by"),
        (r"\p{InGreek}", "Unknown character property"),
        ("(?<=a+)b", "fixed-width"),
        ("a{2,1}", "min repeat"),
        ("(" * 60 + ")" * 60, "nested deeper"),
        ("[" * 60 + "a" + "]" * 60, "nested deeper"),
        ("a" * (PATTERN_MAX + 1), "longer than"),
    ],
)
def test_an_expression_that_cannot_be_is_refused(pattern: str, message: str) -> None:
    for name, arguments in (
        ("REGEXP_EXTRACT", (pattern, "text")),
        ("REGEXP_EXTRACT_ALL", (pattern, "text")),
        ("REGEXP_REPLACE", ("text", pattern, "")),
        ("REGEXP_SPLIT_TO_ARRAY", ("text", pattern)),
    ):
        with pytest.raises(ValueError, match=message):
            call(name, *arguments)


@pytest.mark.parametrize(
    ("replacement", "message"),
    [
        ("$2", "No group 2"),
        ("$", "Illegal group"),
        ("${x}", "No group with name"),
        ("\\", "Illegal group"),
        ("${", "Illegal group"),
    ],
)
def test_a_replacement_that_names_no_group_is_refused(replacement: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call("REGEXP_REPLACE", "a", "(a)", replacement)


def test_there_is_no_group_below_zero() -> None:
    with pytest.raises(ValueError, match="No group -1"):
        call("REGEXP_EXTRACT", "a", "a", -1)


def test_texts_to_search_in_are_bounded() -> None:
    with pytest.raises(ValueError, match="longer than"):
        call("REGEXP_EXTRACT", "a", "b" * (TEXT_MAX + 1))
    with pytest.raises(ValueError, match="longer than"):
        call("REGEXP_REPLACE", "a" * 10_000, "a", "b" * 10_000)


@given(st.text(max_size=20), st.text(max_size=5))
def test_a_quoted_text_finds_itself(text: str, part: str) -> None:
    quoted = "\\Q" + part.replace("\\E", "") + "\\E"
    found = call("REGEXP_EXTRACT", quoted, text + part.replace("\\E", ""))
    assert found == part.replace("\\E", "")


@given(st.text(st.sampled_from("ab1(){}[]|*+?.^$\\-&<>=!:,dwsQEpLux0i #"), max_size=14))
def test_any_text_is_an_expression_or_refused(pattern: str) -> None:
    try:
        compiled = compile_pattern(pattern)
    except ValueError:
        return
    assert isinstance(compiled, Pattern)
    compiled.search("ab1 ")


@given(
    st.text(st.sampled_from("ab1,"), max_size=10),
    st.sampled_from(["a", "a|b", "[ab]+", "1?,", "(a)(b)?"]),
)
def test_expressions_that_mean_the_same_in_python_give_the_same(text: str, pattern: str) -> None:
    assert call("REGEXP_EXTRACT_ALL", pattern, text) == [
        each[0] for each in re.finditer(pattern, text)
    ]
    assert call("REGEXP_REPLACE", text, pattern, "-") == re.sub(pattern, "-", text)


# --- engines --------------------------------------------------------------------------------------

ATOMS = st.sampled_from(
    ["a", "B", "0", r"\.", ".", "[ab]", "[^a.]", "[a-b&&[^b]]", r"\d", r"\w", r"\W", "^", "$",
     r"\b", r"\B", r"\s", r"\S", r"\A", r"\Z", r"\z", "é", r"[^\s]", r"\h", r"\R", r"\p{Lu}",
     r"\Qa.\E", r"[\d_]"]
)  # fmt: skip


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    """Expressions of Java."""
    if depth == 0:
        return draw(ATOMS)
    inner = expressions(depth - 1)
    kind = draw(st.sampled_from(["atom", "sequence", "choice", "group", "repeat", "flags"]))
    match kind:
        case "sequence":
            return "".join(draw(st.lists(inner, max_size=4)))
        case "choice":
            return "(?:" + "|".join(draw(st.lists(inner, min_size=1, max_size=3))) + ")"
        case "group":
            return f"({draw(inner)})"
        case "repeat":
            times = draw(st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "+?"]))
            return f"(?:{draw(inner)}){times}"
        case "flags":
            return f"(?{draw(st.sampled_from('imsU'))}:{draw(inner)})"
    return draw(ATOMS)


def found_by(compiled: Pattern, text: str) -> object:
    """All that functions ask of an expression."""
    first, whole = compiled.search(text), compiled.fullmatch(text)
    return (
        [(each.start(), each.end(), each.groups()) for each in compiled.finditer(text)],
        None if first is None else first.groups(),
        None if whole is None else whole.groups(),
    )


@pytest.mark.slow
@given(
    expressions(),
    st.lists(st.text(st.sampled_from("abAB01 _.\n\r\té\u2028\u0085"), max_size=9), max_size=5),
)
def test_strings_of_any_length_are_searched_alike(pattern: str, texts: list[str]) -> None:
    try:
        quick = compile_pattern(pattern)
    except ValueError:
        return
    compile_pattern.cache_clear()
    other = compile_pattern(pattern)
    compile_pattern.cache_clear()
    quick._quick_length, other._quick_length = 1_000, 0
    for text in texts:
        if "(?U:" in pattern:  # parts of several alphabets are refused, rather than wrong
            with suppress(PatternTimeout):
                assert found_by(other, text) == found_by(quick, text), text
        else:
            assert found_by(other, text) == found_by(quick, text), text


@pytest.mark.parametrize(("pattern", "text", "wanted"), FIRST_MATCHES)
def test_long_strings_are_searched_as_java_does(
    pattern: str, text: str, wanted: str | None
) -> None:
    compile_pattern.cache_clear()
    compiled = compile_pattern(pattern)
    compiled._quick_length = -1
    assert call("REGEXP_EXTRACT", pattern, text) == wanted
    compile_pattern.cache_clear()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("REGEXP_EXTRACT", ("(a+)+$", "a" * 100_000 + "!")),
        ("REGEXP_EXTRACT", ("(?i)(A|a)*b", "a" * 100_000)),
        ("REGEXP_EXTRACT_ALL", ("(x+x+)+y", "x" * 10_000)),
        ("REGEXP_REPLACE", ("a" * 100_000 + "!", "(a+)+$", "b")),
        ("REGEXP_SPLIT_TO_ARRAY", ("a" * 100_000 + "!", "(a|aa)+$")),
        ("REGEXP_SPLIT_TO_ARRAY", (" ," * 50_000, r"\s*,\s*")),
    ],
)
def test_no_row_can_keep_the_process_busy(name: str, arguments: tuple[object, ...]) -> None:
    started = time.thread_time()
    call(name, *arguments)
    assert time.thread_time() - started < 5
