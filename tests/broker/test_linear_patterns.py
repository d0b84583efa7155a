"""Patterns of users: what `re` finds, in bounded time."""

import re
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker import linear_patterns
from broker.linear_patterns import Pattern, PatternTimeout, compile_pattern

CHARACTERS = "abAB01 _-\n\r\té\u2028K"


@st.composite
def sources(draw: st.DrawFn, depth: int = 3) -> str:
    atoms = st.sampled_from(
        ["a", "B", "0", r"\.", "-", ".", "[ab]", "[^a.]", "[a-b0-9]", r"\d", r"\w", r"\W", "^", "$",
         r"\b", r"\B", "[]a]", "[a-]", r"[\d_]", r"\s", r"\S", r"\A", r"\Z", "é", r"[^\s]"]
    )  # fmt: skip
    if depth == 0:
        return draw(atoms)
    inner = sources(depth - 1)
    kind = draw(
        st.sampled_from(["atom", "sequence", "choice", "group", "capture", "repeat", "fold"])
    )
    if kind == "sequence":
        return "".join(draw(st.lists(inner, max_size=4)))
    if kind == "choice":
        return "(?:" + "|".join(draw(st.lists(inner, min_size=1, max_size=3))) + ")"
    if kind == "group":
        return f"(?:{draw(inner)})"
    if kind == "capture":
        return f"({draw(inner)})"
    if kind == "fold":
        return f"(?{draw(st.sampled_from('ims'))}:{draw(inner)})"
    if kind == "repeat":
        bounds = draw(st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "+?"]))
        return f"(?:{draw(inner)}){bounds}"
    return draw(atoms)


def spans(pattern: Pattern, text: str) -> object:
    first = pattern.search(text)
    whole = pattern.fullmatch(text)
    return (
        [(each.start(), each.end()) for each in pattern.finditer(text)],
        None if first is None else first.groups(),
        None if whole is None else whole.groups(),
    )


@pytest.mark.slow
@given(
    sources(),
    st.sampled_from([0, re.ASCII, re.MULTILINE, re.DOTALL]),
    st.lists(st.text(st.sampled_from(CHARACTERS), max_size=8), max_size=5),
)
def test_all_engines_find_what_python_finds(source: str, flags: int, texts: list[str]) -> None:
    quick, other = Pattern(source, flags), Pattern(source, flags)
    quick._quick_length = 1000
    other._quick_length = -1
    for text in texts:
        assert spans(other, text) == spans(quick, text), text


@pytest.mark.parametrize(
    "source",
    ["(a+)+$", "(a|a)*b", "(?:a?){200}a{200}b", "(.*a){20}b", "(a|aa)+$", "(?:a{1,20}){1,20}b",
     "a*a*a*a*a*a*a*b", "(?i)(a+)+$", "(x+x+)+y"],
)  # fmt: skip
def test_a_pattern_that_tries_many_ways_is_not_evaluated_by_re(source: str) -> None:
    pattern = Pattern(source)
    assert pattern.is_linear
    started = time.thread_time()
    for text in ("a" * 27 + "!", "x" * 5000, "a" * 100_000 + "!"):
        assert pattern._quick_length < len(text)
        assert pattern.search(text) is None
    assert time.thread_time() - started < 2


def test_simple_patterns_on_short_strings_stay_with_re() -> None:
    for source in ("[0-9]+", r"(\w+)@(\w+)\.com", "Berlin", "^a|b$", "a.*b"):
        assert Pattern(source)._quick_length >= 64, source


@pytest.mark.slow
def test_a_pattern_that_re2_does_not_have_ends_with_its_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(linear_patterns, "TIME_LIMIT_SECONDS", 0.2)
    pattern = Pattern(r"(a|aa)+\1(?<=b)$")
    assert not pattern.is_linear
    done = threading.Event()
    turns = 0

    def others_work() -> None:
        nonlocal turns
        while not done.wait(0.001):
            turns += 1

    other = threading.Thread(target=others_work)
    other.start()
    with pytest.raises(PatternTimeout, match="simplify it"):
        pattern.search("a" * 100)
    with pytest.raises(PatternTimeout, match="simplify it"):
        list(pattern.finditer("a" * 100))
    done.set()
    other.join()
    assert turns > 5  # the GIL was free


def test_a_string_that_is_not_valid_unicode_is_searched_too() -> None:
    assert compile_pattern("(a+)+$").search("\ud800" * 100 + "aaa") is not None


def test_names_of_groups_and_replacements_work_in_all_engines() -> None:
    for length in (10, -1):
        pattern = Pattern(r"(?P<first>\w)(\w)?", re.ASCII)
        pattern._quick_length = length
        assert pattern.groupindex == {"first": 1}
        assert pattern.sub(lambda found: f"<{found['first']}{found[2]}>", "abc") == "<ab><cNone>"


def test_a_wrong_pattern_is_refused_at_once() -> None:
    for source in ("(", "a**", "[b-a]", "(" * 5000 + ")" * 5000, "a" * 200_000):
        with pytest.raises(re.error):
            Pattern(source)
