"""Times are written and read as Java does."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.java.times import (
    DAY_MS,
    date_of,
    date_text,
    days_of,
    parse_date,
    parse_time,
    parse_timestamp,
    time_text,
    timestamp_text,
)

EPOCH = date(1970, 1, 1)


@given(st.dates())
def test_days_count_as_the_calendar_does(day: date) -> None:
    days = (day - EPOCH).days
    assert days_of(day.year, day.month, day.day) == days
    assert date_of(days) == (day.year, day.month, day.day)
    assert parse_date(date_text(days)) == days


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_day_has_one_date(days: int) -> None:
    assert days_of(*date_of(days)) == days


@given(st.datetimes(min_value=datetime(1, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_timestamps_are_read_as_they_are_written(moment: datetime) -> None:
    milliseconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    text = timestamp_text(milliseconds)
    assert text == moment.isoformat(timespec="milliseconds").removesuffix("+00:00")
    assert parse_timestamp(text) == milliseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970", 0),
        ("1970-02", 31 * DAY_MS),
        ("1970-01-02", DAY_MS),
        ("1970-01-02T", DAY_MS),
        ("1970-01-02TZ", DAY_MS),
        ("1970-01-01T01", 3_600_000),
        ("1970-01-01T01:30", 5_400_000),
        ("1970-01-01T00:00:01.5", 1500),
        ("1970-01-01T00:00:01.005Z", 1005),
        ("1970-01-01T02:00:00.000+0200", 0),
        ("1970-01-01T00:00-01:30", 5_400_000),
        ("1970-01-01T05+05", 0),
        ("1970-01-01T24", DAY_MS),
        ("1970-01-01T24:00:00.000+0100", DAY_MS - 3_600_000),
    ],
)
def test_timestamps_may_be_partial_and_have_zones(text: str, expected: int) -> None:
    assert parse_timestamp(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "T", "abc", "1970-01T10", "1970-01-01 10:00", "1970-13", "1970-02-30", "1970-01-01T25",
     "1970-01-01T24:01",
     "1970-01-01T10:00:00.0001", "1970-01-01T10:00+1900", "1970-01-01T10:00+x", "19700-01-01"],
)  # fmt: skip
def test_other_texts_are_no_timestamps(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_timestamp(text)


@pytest.mark.parametrize(
    ("text", "milliseconds", "printed"),
    [
        ("00:00", 0, "00:00"),
        ("10:20:30", 37_230_000, "10:20:30"),
        ("23:59:59.999999999", DAY_MS - 1, "23:59:59"),
        ("00:00:00.01", 10, "00:00"),
    ],
)
def test_times_of_the_day(text: str, milliseconds: int, printed: str) -> None:
    assert parse_time(text) == milliseconds
    assert time_text(milliseconds) == printed


@pytest.mark.parametrize("text", ["", "10", "24:00", "10:60", "1:00", "10:00:00.", "10:00Z"])
def test_other_texts_are_no_times(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_time(text)


def test_years_beyond_four_digits_have_a_sign() -> None:
    assert date_text(days_of(12_345, 1, 2)) == "+12345-01-02"
    assert date_text(days_of(-1, 12, 31)) == "-0001-12-31"
    assert time_text(0) == "00:00"
    with pytest.raises(ValueError, match="24 hours"):
        time_text(DAY_MS)
