"""Java's SimpleDateFormat: what the cases of TimestampConverter do not show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.java.simple_date_format import InvalidDate, SimpleDateFormat

# 1600 to 9999: Java's calendar before 1582 is another one.
MILLISECONDS = st.integers(min_value=-11_676_096_000_000, max_value=253_402_300_799_999)


@given(MILLISECONDS)
@pytest.mark.parametrize(
    "pattern",
    [
        "yyyy-MM-dd'T'HH:mm:ss.SSSX",
        "yyyyMMddHHmmssSSS",
        "EEEE, d MMMM yyyy h:mm:ss.S a z",
        "DDD/yyyy kk:mm:ss:SSS",
        "YYYY-'W'w-u K:m:s.S a",
    ],
)
def test_what_is_written_is_read_again(pattern: str, milliseconds: int) -> None:
    format_ = SimpleDateFormat(pattern)
    assert format_.parse(format_.format(milliseconds)) == milliseconds


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("45-01-01", "1945-01-01"),
        ("99-12-31", "1999-12-31"),
        ("43-12-31", "2043-12-31"),
        ("44-05-18", "1944-05-18"),  # less than 80 years ago
        ("44-05-16", "2044-05-16"),  # more
        ("1944-05-16", "1944-05-16"),
    ],
)
def test_two_digits_of_a_year_are_near_the_clocks(text: str, date: str) -> None:
    clock = ManualClock(1_715_941_230_456)  # 2024-05-17
    read = SimpleDateFormat("yy-MM-dd", clock).parse(text)
    assert SimpleDateFormat("yyyy-MM-dd").format(read) == date


def test_a_text_that_ends_too_early_does_not_match() -> None:
    with pytest.raises(InvalidDate):
        SimpleDateFormat("yyyy-MM-dd").parse("2024-05-")
