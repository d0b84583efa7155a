"""Java's SimpleDateFormat: what the cases of TimestampConverter do not show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from connect.transforms.simple_date_format import NoDate, SimpleDateFormat

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


@pytest.mark.parametrize(("text", "year"), [("44", 2044), ("43", 2043), ("45", 1945), ("99", 1999)])
def test_two_digits_of_a_year_are_near_the_clocks(text: str, year: int) -> None:
    clock = ManualClock(1_715_941_230_456)  # 2024, so from 1944 on
    read = SimpleDateFormat("yy", clock).parse(text)
    expected = 1944 if text == "44" else year
    assert SimpleDateFormat("yyyy").format(read) == str(expected)


def test_a_text_that_ends_too_early_does_not_match() -> None:
    with pytest.raises(NoDate):
        SimpleDateFormat("yyyy-MM-dd").parse("2024-05-")
