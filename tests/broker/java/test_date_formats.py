"""Patterns of dates: letters, widths, zones, and the quick way against the general one."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.java.date_formats import (
    date_formatter,
    date_parser,
    lenient_date_parser,
    time_formatter,
    time_parser,
    timestamp_formatter,
    timestamp_parser,
)
from broker.java.date_patterns import read_pattern
from broker.java.quick_dates import quick_reader, quick_writer
from broker.java.time_zones import zone_of

MOMENT = 1_526_075_913_123  # Friday, 2018-05-11 21:58:33.123 in UTC

WRITTEN: list[tuple[str, str, str]] = [
    ("G GGGG GGGGG", "UTC", "AD Anno Domini A"),
    ("y yy yyy yyyy yyyyy", "UTC", "2018 18 2018 2018 02018"),
    ("u uu uuuu", "UTC", "2018 18 2018"),
    ("YYYY w ww W", "UTC", "2018 19 19 2"),
    ("D DD DDD d dd F", "UTC", "131 131 131 11 11 2"),
    ("Q QQ QQQ QQQQ q", "UTC", "2 02 Q2 2nd quarter 2"),
    ("M MM MMM MMMM MMMMM L LLL", "UTC", "5 05 May May M 5 May"),
    ("E EEE EEEE EEEEE e ee eee c ccc", "UTC", "Fri Fri Friday F 6 06 Fri 6 Fri"),
    ("a h hh K KK k kk H HH", "UTC", "PM 9 09 9 09 21 21 21 21"),
    ("m mm s ss S SS SSS SSSSSSSSS", "UTC", "58 58 33 33 1 12 123 123000000"),
    ("A n N", "UTC", "79113123 123000000 79113123000000"),
    ("g", "UTC", "58249"),
    ("VV z zzzz", "America/Los_Angeles", "America/Los_Angeles PDT Pacific Daylight Time"),
    ("VV z zzzz", "UTC", "UTC UTC Coordinated Universal Time"),
    ("VV z zzzz", "+02:00", "+02:00 +02:00 +02:00"),
    ("VV z zzzz", "America/Sao_Paulo", "America/Sao_Paulo GMT-03:00 GMT-03:00"),
    ("VV z zzzz", "Asia/Shanghai", "Asia/Shanghai CST China Standard Time"),
    ("O OOOO", "Asia/Kolkata", "GMT+5:30 GMT+05:30"),
    ("O OOOO ZZZZ", "GMT", "GMT GMT GMT"),
    ("X XX ssXXX ssXXXX ssXXXXX", "Asia/Kolkata", "+0530 +0530 33+05:30 33+0530 33+05:30"),
    ("X XX ssXXX", "-08:00", "-08 -0800 33-08:00"),
    ("X XX ssXXX x xx xxx Z ZZZZZ", "UTC", "Z Z 33Z +00 +0000 +00:00 +0000 Z"),
    ("ssXXXX ssXXXXX", "+01:02:03", "36+010203 36+01:02:03"),
    ("''yyyy'year'", "UTC", "'2018year"),
    ("'o''clock' '''' ''''''", "UTC", "o'clock ' ''"),
    ("pppH|ppppd", "UTC", " 21|  11"),
    ("yyyy[-MM[-dd", "UTC", "2018-05-11"),
    ("%d %s", "UTC", "%11 %33"),
]


@pytest.mark.parametrize(("pattern", "zone", "wanted"), WRITTEN)
def test_a_moment_is_written_by_its_pattern(pattern: str, zone: str, wanted: str) -> None:
    assert timestamp_formatter(pattern, zone)(MOMENT) == wanted


READ: list[tuple[str, str, str]] = [
    # pattern, text, what it means in UTC
    ("yyyy", "2020", "2020-01-01T00:00:00"),
    ("MM", "02", "1970-02-01T00:00:00"),
    ("dd", "31", "1970-01-31T00:00:00"),
    ("dd.MM", "31.02", "1970-02-28T00:00:00"),
    ("E", "Mon", "1969-12-29T00:00:00"),
    ("HH", "07", "1970-01-01T07:00:00"),
    ("HH", "24", "1970-01-01T00:00:00"),
    ("hh", "12", "1970-01-01T00:00:00"),
    ("a", "PM", "1970-01-01T12:00:00"),
    ("hh:mm a", "12:30 am", "1970-01-01T00:30:00"),
    ("ss", "59", "1970-01-01T00:00:59"),
    ("DDD", "032", "1970-02-01T00:00:00"),
    ("yyyy-DDD", "2020-366", "2020-12-31T00:00:00"),
    ("uuuuMMdd", "20200229", "2020-02-29T00:00:00"),
    ("yyyyMMddHHmmssSSS", "20200229123456789", "2020-02-29T12:34:56.789"),
    ("yyMMdd", "200229", "2020-02-29T00:00:00"),
    ("y-M-d", "2020-2-9", "2020-02-09T00:00:00"),
    ("yyyy-MM-dd", "2021-02-31", "2021-02-28T00:00:00"),
    ("yyyy-MM-dd HH", "2021-02-28 24", "2021-03-01T00:00:00"),
    ("yyyy-MM-dd kk", "2021-02-28 24", "2021-02-28T00:00:00"),
    ("yyyy-MM-dd A", "2021-02-28 3600000", "2021-02-28T01:00:00"),
    ("yyyy-MM-dd n", "2021-02-28 5000000", "2021-02-28T00:00:00.005"),
    ("yyyy-MM-dd N", "2021-02-28 1000000000", "2021-02-28T00:00:01"),
    ("d MMMM yyyy", "9 february 2020", "2020-02-09T00:00:00"),
    ("EEEE d MMM yyyy", "Sunday 9 FEB 2020", "2020-02-09T00:00:00"),
    ("QQQ yyyy-MM-dd", "Q1 2020-02-09", "2020-02-09T00:00:00"),
    ("YYYY-'W'ww-e", "2018-W19-6", "2018-05-11T00:00:00"),
    ("yyyy-MM W E", "2018-05 2 Fri", "2018-05-11T00:00:00"),
    ("g", "58249", "2018-05-11T00:00:00"),
    ("yyyy G", "2020 ad", "2020-01-01T00:00:00"),
    ("yyyy-MM-dd'T'HH:mm", "2020-02-09t10:00", "2020-02-09T10:00:00"),
    ("yyyy-MM-dd[ HH:mm]", "2020-02-09", "2020-02-09T00:00:00"),
    ("yyyy-MM-dd[ HH:mm]", "2020-02-09 10:00", "2020-02-09T10:00:00"),
    ("[yyyy/MM/dd][dd.MM.yyyy]", "09.02.2020", "2020-02-09T00:00:00"),
    ("ppd.MM.yyyy", " 9.02.2020", "2020-02-09T00:00:00"),
    ("yyyy-MM-dd HH X", "2020-02-09 10 +02", "2020-02-09T08:00:00"),
    ("yyyy-MM-dd HH X", "2020-02-09 10 +0230", "2020-02-09T07:30:00"),
    ("yyyy-MM-dd HHXX", "2020-02-09 10-0800", "2020-02-09T18:00:00"),
    ("yyyy-MM-dd HHZ", "2020-02-09 10+0000", "2020-02-09T10:00:00"),
    ("yyyy-MM-dd HHXXXXX", "2020-02-09 10+01:00:30", "2020-02-09T08:59:30"),
    ("yyyy-MM-dd HH O", "2020-02-09 10 GMT+2", "2020-02-09T08:00:00"),
    ("yyyy-MM-dd HH O", "2020-02-09 10 GMT", "2020-02-09T10:00:00"),
    ("yyyy-MM-dd HH VV", "2020-02-09 10 europe/paris", "2020-02-09T09:00:00"),
    ("yyyy-MM-dd HH VV", "2020-02-09 10 +01:00", "2020-02-09T09:00:00"),
    ("yyyy-MM-dd HH VV", "2020-02-09 10 UTC-3", "2020-02-09T13:00:00"),
    ("yyyy-MM-dd HH VV", "2020-02-09 10 Z", "2020-02-09T10:00:00"),
    ("yyyy-MM-dd HH z", "2020-07-09 10 PST", "2020-07-09T17:00:00"),
    ("yyyy-MM-dd HH z", "2020-07-09 10 Central European Summer Time", "2020-07-09T08:00:00"),
    ("yyyy-MM-dd HH z", "2020-07-09 10 GMT", "2020-07-09T10:00:00"),
]


@pytest.mark.parametrize(("pattern", "text", "wanted"), READ)
def test_a_text_is_read_by_its_pattern(pattern: str, text: str, wanted: str) -> None:
    moment = datetime.fromisoformat(wanted).replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    assert timestamp_parser(pattern)(text) == since // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("pattern", "text", "message"),
    [
        ("yyyy", "201", "could not be parsed at index 0"),
        ("yyyy", "20180", "could not be parsed at index 0"),
        ("yyyy", "2018x", "unparsed text found at index 4"),
        ("yyyy-MM", "2018-5", "at index 5"),
        ("yyyy-MM", "2018-13", "Invalid value for MonthOfYear"),
        ("yyyy-MM-dd", "2018-01-32", "Invalid value for DayOfMonth"),
        ("yyyy-MM-dd", "2018-01-00", "Invalid value for DayOfMonth"),
        ("yyyy", "-001", "at index 0"),
        ("yyyy", "0000", "Invalid value for YearOfEra"),
        ("uuuu", "-0000", "at index 0"),
        ("HH", "25", "Invalid value for HourOfDay"),
        ("HH:mm", "24:01", "HourOfDay"),
        ("hh", "13", "Invalid value for ClockHourOfAmPm"),
        ("DDD", "366", "Leap day cannot be parsed"),
        ("yyyy-DDD", "2019-366", "not a leap year"),
        ("E yyyy-MM-dd", "Mon 2018-05-11", "Conflict found"),
        ("Q yyyy-MM-dd", "1 2018-05-11", "Conflict found"),
        ("HH a hh", "01 PM 02", "Conflict found"),
        ("yyyy uuuu", "2018 2019", "Conflict found"),
        ("dd dd", "01 02", "at index 3"),
        ("MMM", "Mai", "at index 0"),
        ("X", "+19", "at index 0"),
        ("z", "nowhere", "at index 0"),
        ("ppd", "123", "unparsed"),
        ("uuuu", "+999999999", "out of range for TIMESTAMP"),
        ("yyyy", "9" * 10_001, "longer than"),
    ],
)
def test_a_text_that_does_not_fit_is_refused(pattern: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        timestamp_parser(pattern)(text)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("b", "Unknown pattern letter: b"),
        ("dd{", "reserved character"),
        ("yyyy]", "] without previous"),
        ("'open", "incomplete string literal"),
        ("HHH", "Too many pattern letters: H"),
        ("MMMMMM", "Too many pattern letters: M"),
        ("DDDD", "Too many pattern letters: D"),
        ("aa", "Too many pattern letters: a"),
        ("cc", "Invalid pattern"),
        ("SSSSSSSSSS", "Too many pattern letters: S"),
        ("V", "Pattern letter count must be 2: V"),
        ("OO", "Pattern letter count must be 1 or 4: O"),
        ("xxxxxx", "Too many pattern letters: x"),
        ("pp", "Pad letter 'p' must be followed"),
        ("pp-", "Pad letter 'p' must be followed"),
        ("[" * 30, "nested deeper"),
        ("d" * 2000, "longer than"),
    ],
)
def test_a_wrong_pattern_is_refused(pattern: str, message: str) -> None:
    for make in (timestamp_parser, timestamp_formatter, date_parser, date_formatter, time_parser):
        with pytest.raises(ValueError, match=message.replace("]", r"\]")):
            make(pattern)


@pytest.mark.parametrize(
    ("zone", "text", "wanted"),
    [
        ("Europe/Paris", "2021-03-28 02:30", "2021-03-28 03:30 CEST"),  # never on the clocks
        ("Europe/Paris", "2021-10-31 02:30", "2021-10-31 02:30 CET"),  # twice on the clocks
        ("Europe/Paris", "2021-07-01 12:00", "2021-07-01 12:00 CEST"),
        ("America/New_York", "2021-11-07 01:30", "2021-11-07 01:30 EST"),
        ("UTC+2", "2021-07-01 12:00", "2021-07-01 12:00 UTC+02:00"),
        ("GMT", "2021-07-01 12:00", "2021-07-01 12:00 GMT"),
        ("Z", "2021-07-01 12:00", "2021-07-01 12:00 Z"),
        ("-3", "2021-07-01 12:00", "2021-07-01 12:00 -03:00"),
        ("+013015", "2021-07-01 12:00", "2021-07-01 12:00 +01:30:15"),
    ],
)
def test_local_times_are_those_of_the_zone(zone: str, text: str, wanted: str) -> None:
    instant = timestamp_parser("yyyy-MM-dd HH:mm", zone)(text)
    assert timestamp_formatter("yyyy-MM-dd HH:mm z", zone)(instant) == wanted


def test_of_two_equal_local_times_with_a_zone_the_first_is_meant() -> None:
    first = timestamp_parser("yyyy-MM-dd HH:mm VV")("2021-10-31 02:30 Europe/Paris")
    assert timestamp_formatter("HH:mm z", "Europe/Paris")(first) == "02:30 CEST"


@pytest.mark.parametrize(
    "name",
    ["", "X", "mars", "Europe", "../passwd", "+", "+1:2", "+19:00", "UTC+99", "A" * 200, "+01:60"],
)
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"zone|Zone"):
        zone_of(name)


@pytest.mark.parametrize("year", [-200_000, -1, 0, 1, 9_999, 10_000, 250_000])
def test_years_beyond_those_of_datetime_have_zones_too(year: int) -> None:
    write = timestamp_formatter("uuuu-MM-dd HH:mm", "Europe/Paris")
    read = timestamp_parser("uuuu-MM-dd HH:mm", "Europe/Paris")
    shown = f"{year:05d}" if year < 0 else f"+{year}" if year > 9999 else f"{year:04d}"
    text = f"{shown}-07-01 12:00"
    assert write(read(text)) == text


milliseconds = st.integers(-(2**55), 2**55)
zones = st.sampled_from(
    ["UTC", "Europe/Paris", "America/St_Johns", "+05:45", "Australia/Lord_Howe"]
)


@given(
    milliseconds,
    zones,
    st.sampled_from(
        [
            "uuuu-MM-dd'T'HH:mm:ss.SSSX",
            "uuuu-MM-dd HH:mm:ss.SSS Z",
            "uuuu-DDD N ssXXXXX",
            "G yyyy MMMM d, EEEE h:mm:ss a SSSSSSSSS ZZZZZ",
            "YYYY ww e kk:mm:ss.SSS ZZZZZ",
            "g A ZZZZZ",
        ]
    ),
)
def test_a_written_timestamp_is_read_as_the_same(stamp: int, zone: str, pattern: str) -> None:
    text = timestamp_formatter(pattern, zone)(stamp)
    found = timestamp_parser(pattern)(text)
    # Old offsets have seconds, which most patterns leave out.
    assert abs(found - stamp) < 60_000
    if zone in ("UTC", "+05:45") or stamp > 0:
        assert found == stamp


@given(
    st.integers(-(2**31), 2**31 - 1), st.sampled_from(["uuuu-MM-dd", "uuuu.D", "g", "MMM d uuuu E"])
)
def test_a_written_date_is_read_as_the_same(days: int, pattern: str) -> None:
    assert date_parser(pattern)(date_formatter(pattern)(days)) == days


@given(
    st.integers(0, 86_399_999),
    st.sampled_from(["HH:mm:ss.SSS", "hh:mm:ss.SSS a", "A", "N", "k-m-s-n"]),
)
def test_a_written_time_is_read_as_the_same(time: int, pattern: str) -> None:
    assert time_parser(pattern)(time_formatter(pattern)(time)) == time


QUICK = ["yyyy-MM-dd HH:mm:ss.SSS", "yyyyMMddHHmmss", "uuuu-MM-dd'T'HH:mm:ssX", "dd/MM/yyyy"]


@pytest.mark.parametrize("pattern", QUICK)
def test_common_patterns_have_a_quick_way(pattern: str) -> None:
    assert quick_reader(read_pattern(pattern)) is not None


@given(
    st.datetimes(datetime(1, 1, 2), datetime(9998, 12, 31)),  # noqa: DTZ001 - local times
    st.sampled_from(["yyyy-MM-dd HH:mm:ss.SSS", "yyyyMMddHHmmss", "dd/MM/yyyy HH"]),
    zones,
)
def test_the_quick_way_gives_what_the_general_one_gives(
    moment: datetime, pattern: str, zone: str
) -> None:
    generally = pattern + "['']"  # an optional text makes the pattern one of the general kind
    elements = read_pattern(generally)
    assert quick_reader(elements) is None
    assert quick_writer(elements) is None
    stamp = (moment - datetime(1970, 1, 1)) // timedelta(milliseconds=1)  # noqa: DTZ001
    text = timestamp_formatter(pattern, zone)(stamp)
    assert timestamp_formatter(generally, zone)(stamp) == text + "'"
    assert timestamp_parser(pattern, zone)(text) == timestamp_parser(generally, zone)(text)


@given(st.text(st.sampled_from("yuMdHhmsSaEGVzXxZOQwWeDpn'[]-:{ "), max_size=10), milliseconds)
def test_any_pattern_works_or_is_refused(pattern: str, stamp: int) -> None:
    try:
        write, read = timestamp_formatter(pattern), timestamp_parser(pattern)
        lenient = lenient_date_parser(pattern)
    except ValueError:
        return
    for parse in (read, lambda text: lenient(text, lambda: MOMENT)):
        try:
            parse(write(stamp))
        except ValueError:
            continue


@given(
    st.text(st.sampled_from("0123456789-+:TZ. PMaygt"), max_size=20),
    st.sampled_from([*QUICK, "d MMM yyyy z"]),
)
def test_any_text_is_read_or_refused(text: str, pattern: str) -> None:
    lenient = lenient_date_parser(pattern)
    for parse in (timestamp_parser(pattern), lambda text: lenient(text, lambda: MOMENT)):
        try:
            assert isinstance(parse(text), int)
        except ValueError:
            continue
