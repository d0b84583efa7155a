"""Strings generated for regular expressions match them; unsupported patterns are refused."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.connectors.datagen.patterns import (
    all_strings,
    count_strings,
    literal_prefix,
    read_pattern,
    string_generator,
)
from connect.errors import ConfigError

PATTERNS = [
    "User_[1-9]{0,1}",
    "Region_[1-9]?",
    "[A-Z]{3}-\\d+",
    "(red|green|(?:dark )?blue)",
    "[^a-z\\d]{2,4}x*",
    "\\$[1-9][0-9]{0,3}\\.[0-9]{2}",
    "^a.b$",
    "[-a]\\w{2}",
    "(ab){2,}",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_text_that_is_made_matches_its_pattern(pattern: str) -> None:
    make = string_generator(read_pattern(pattern))
    random = Random(7)
    for _ in range(200):
        text = make(random)
        assert re.fullmatch(pattern, text), text


def test_all_strings_of_a_small_pattern_are_listed_once() -> None:
    part = read_pattern("User_[1-3]{0,1}|x{2}")
    assert list(all_strings(part)) == ["User_", "User_1", "User_2", "User_3", "xx"]
    assert count_strings(part) == 5


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [("User_[1-9]", "User_"), ("abc", "abc"), ("[ab]c", ""), ("a|b", ""), ("ab?c", "a")],
)
def test_the_written_out_beginning_of_a_pattern_is_found(pattern: str, prefix: str) -> None:
    assert literal_prefix(read_pattern(pattern)) == prefix


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a)", "there is no open group here"),
        ("(a", "a group is not closed"),
        ("[a", "it ends too early"),
        ("*a", "nothing to repeat"),
        ("a{x}", "{x} is not a valid repetition"),
        ("(?=a)", "only the groups"),
        ("(a)\\1", "\\1 is not supported"),
        ("[z-a]", 'the range "z-a" is empty'),
        ("[^ -~]", "the character class is empty"),
        ("a\\", "it ends too early"),
    ],
)
def test_a_pattern_that_is_not_understood_is_refused_with_the_reason(
    pattern: str, why: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_pattern(pattern)
    assert why in caught.value.message
    assert f'"{pattern}"' in caught.value.message


@given(st.text(alphabet="ab[]()|?*+{}1,2-\\^.$", max_size=12))
def test_any_pattern_is_either_refused_or_made(pattern: str) -> None:
    try:
        part = read_pattern(pattern)
    except ConfigError:
        return
    assert isinstance(string_generator(part)(Random(1)), str)
