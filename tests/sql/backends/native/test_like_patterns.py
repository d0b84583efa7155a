"""LIKE: what a regular expression would say, in linear time."""

import gc
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.backends.native.values import like

CHARACTERS = "ab%_!.\n\ud800é"


def expression(pattern: str, escape: str | None) -> str:
    """The same as a regular expression."""
    parts, escaped = [], False
    for sign in pattern:
        if escaped or sign not in ("%", "_", escape):
            parts.append(re.escape(sign))
            escaped = False
        elif sign == escape:
            escaped = True
        else:
            parts.append(".*" if sign == "%" else ".")
    return "".join(parts)


@given(
    st.text(st.sampled_from(CHARACTERS), max_size=7),
    st.sampled_from([None, "!", "a"]),
    st.lists(st.text(st.sampled_from(CHARACTERS), max_size=9), max_size=9),
)
def test_it_is_what_a_regular_expression_says(
    pattern: str, escape: str | None, texts: list[str]
) -> None:
    try:
        like("", pattern, escape)
    except ValueError:
        assert escape is not None
        assert pattern.endswith(escape)
        return
    compiled = re.compile(expression(pattern, escape), re.DOTALL)
    for text in texts:
        assert like(text, pattern, escape) is (compiled.fullmatch(text) is not None), text


@pytest.mark.parametrize("pattern", ["a", "%a", "a%", "%a%", "a_", "%a_%", "%", "_%b"])
def test_null_raises(pattern: str) -> None:
    with pytest.raises(TypeError):
        like(None, pattern, None)  # type: ignore[arg-type] # as rows have it


@pytest.mark.parametrize(
    "pattern", ["%a%a%a%a%a%a%a%a%a%a%b", "%" + "a%" * 500 + "b", "%a_%a_%a_%a_%a_%b", "%" * 5000]
)
def test_many_wildcards_on_a_long_string_take_no_time(pattern: str) -> None:
    gc.disable()  # to collect what all tests before have left can take seconds
    try:
        started = time.thread_time()
        like("a" * 100_000, pattern, None)
        assert time.thread_time() - started < 2
    finally:
        gc.enable()
