"""Patterns of topic names: as Python's `re` where both apply, and never slow."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.topic_pattern import PATTERNS_MAX, PatternMatches, TopicPattern
from broker.errors import BrokerError, ErrorCode

NAMES = st.text(alphabet="abAB01._-", min_size=1, max_size=8)


@st.composite
def patterns(draw: st.DrawFn, depth: int = 3) -> str:
    atoms = st.sampled_from(
        ["a", "B", "0", r"\.", "-", ".", "[ab]", "[^a.]", "[a-b0-9]", r"\d", r"\w", r"\W", "^", "$",
         r"\b", r"\B", "[]a]", "[a-]", r"[\d_]"]
    )  # fmt: skip
    if depth == 0:
        return draw(atoms)
    inner = patterns(depth - 1)
    kind = draw(st.sampled_from(["atom", "sequence", "choice", "group", "repeat", "fold"]))
    if kind == "sequence":
        return "".join(draw(st.lists(inner, max_size=4)))
    if kind == "choice":
        return "|".join(draw(st.lists(inner, min_size=1, max_size=3)))
    if kind == "group":
        return f"(?:{draw(inner)})"
    if kind == "fold":
        return f"(?i:{draw(inner)})"
    if kind == "repeat":
        bounds = draw(st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "+?"]))
        return f"(?:{draw(inner)}){bounds}"
    return draw(atoms)


@pytest.mark.slow
@given(patterns(), st.lists(NAMES, min_size=1, max_size=5))
def test_a_pattern_matches_what_python_matches(text: str, names: list[str]) -> None:
    pattern, oracle = TopicPattern(text), re.compile(text, re.ASCII)
    for name in names:
        assert pattern.matches(name) == (oracle.fullmatch(name) is not None), name


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("orders", "orders", True),
        ("orders", "orders2", False),
        ("", "", True),
        (r"\Qa.b\E", "a.b", True),
        (r"\Qa.b", "axb", False),
        (r"a\x2db", "a-b", True),
        (r"a\x{2D}b", "a-b", True),
        ("[[:alpha:]]+", "abC", True),
        ("[[:^alpha:]]+", "a0", False),
        ("(?P<name>a)(?<other>b)", "ab", True),
        ("(?i)ORDERS", "orders", True),
        ("(?i)a(?-i)b", "aB", False),
        (r"\Aa\z", "a", True),
        ("a{", "a{", True),
        ("x{2,3}", "xxxx", False),
        ("(|a)*b", "aab", True),
    ],
)
def test_syntax_of_re2(text: str, name: str, expected: bool) -> None:
    assert TopicPattern(text).matches(name) is expected


@pytest.mark.parametrize(
    "text",
    ["(", ")", "a)", "[a", "[", "*", "a**", "a{3,2}", "a{1001}", "(?=a)", "(?<!a)", r"\1", "\\",
     r"\p{X}", "[b-a]", "(?P<a-b>a)", "(?P<a", r"\xzz", "[[:none:]]", "((a{100}){100}){100}",
     "(" * 1100 + ")" * 1100, "a" * 2001, "\ud800", "((((x{0}){1000}){1000}){1000})"],
)  # fmt: skip
def test_a_wrong_or_too_large_pattern_is_refused(text: str) -> None:
    with pytest.raises(BrokerError) as caught:
        TopicPattern(text)
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_patterns_that_backtrack_for_ever_elsewhere_are_quick_here() -> None:
    name = "a" * 248 + "!"
    started = time.thread_time()
    for text in ["(a+)+b", "(a|a)*b", "(a?){200}a{200}b", "(.*a){20}b", "(.?){90}x(.?){90}b"]:
        pattern = TopicPattern(text)
        for _ in range(20):
            assert not pattern.matches(name)
    assert time.thread_time() - started < 1


def test_matches_are_remembered_and_follow_the_names() -> None:
    names = ["a1", "b"]
    matches = PatternMatches(lambda: names)
    assert matches.matching("a.*") == {"a1"}
    assert list(matches.prepare("a.*")) == []
    names.append("a2")
    assert len(list(matches.prepare_all())) == 1
    assert matches.matching("a.*") == {"a1", "a2"}
    names.remove("a1")
    assert matches.matching("a.*") == {"a2"}
    for number in range(PATTERNS_MAX + 10):
        matches.matching(f"b{number}?")
    assert len(matches._known) == PATTERNS_MAX
