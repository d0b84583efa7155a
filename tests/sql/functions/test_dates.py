"""Functions of dates and times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.java.times import DAY_MS, days_of
from broker.machine import Machine
from sql.functions.builtin import builtin_functions
from sql.functions.matching import UnitArgument
from sql.functions.registry import Scalar
from tests.sql.functions.calls import argument_type, call, same, typed

NULL = typed("STRING", None)
# Friday, 2018-05-11 21:58:33.123 in UTC.
MOMENT = 1_526_075_913_123
STAMP = typed("TIMESTAMP", MOMENT)
DAY = typed("DATE", 17_662)

CALLS: list[tuple[str, tuple[object, ...], object]] = [
    ("PARSE_TIMESTAMP", ("2018-05-11 21:58:33.123", "yyyy-MM-dd HH:mm:ss.SSS"), MOMENT),
    ("PARSE_TIMESTAMP", ("11/05/2018", "dd/MM/yyyy", "Europe/Paris"), 1_525_989_600_000),
    (
        "PARSE_TIMESTAMP",
        ("2018-05-11T21:58:33 PST", "yyyy-MM-dd'T'HH:mm:ss zzz"),
        1_526_101_113_000,
    ),
    ("PARSE_TIMESTAMP", (NULL, "yyyy"), None),
    ("STRINGTOTIMESTAMP", ("2018-05-11T21:58:33Z", "yyyy-MM-dd'T'HH:mm:ssX"), 1_526_075_913_000),
    ("STRINGTOTIMESTAMP", ("2018-05-11", "yyyy-MM-dd", "+0200"), 1_525_989_600_000),
    ("PARSE_DATE", ("2018-05-11", "yyyy-MM-dd"), 17_662),
    ("PARSE_DATE", ("may-2018", "MMM-yyyy"), 17_652),
    ("PARSE_DATE", ("May 11, 2018", "MMMM d, yyyy"), 17_662),
    ("PARSE_DATE", ("2018-5-1 and more", "yyyy-MM-dd"), 17_652),
    ("PARSE_DATE", ("20180511", "yyyyMMdd"), 17_662),
    ("PARSE_DATE", ("2018-02-30", "yyyy-MM-dd"), days_of(2018, 3, 2)),
    ("PARSE_DATE", ("2018-13-01", "yyyy-MM-dd"), days_of(2019, 1, 1)),
    ("PARSE_DATE", ("2018-131", "yyyy-DDD"), 17_662),
    ("PARSE_DATE", ("2018-05-11 00:00", "yyyy-MM-dd HH:mm"), 17_662),
    ("PARSE_DATE", ("2018-05-11 02 +0200", "yyyy-MM-dd HH Z"), 17_662),
    ("PARSE_DATE", ("44 BC", "yyyy G"), days_of(-43, 1, 1)),
    ("PARSE_DATE", (NULL, "yyyy"), None),
    ("STRINGTODATE", ("2018-05-11 10:00", "yyyy-MM-dd HH:mm"), 17_662),
    ("STRINGTODATE", ("2018-02-30", "yyyy-MM-dd"), days_of(2018, 2, 28)),
    ("PARSE_TIME", ("21:58:33.5", "HH:mm:ss.S"), 79_113_500),
    ("PARSE_TIME", ("01:00 pm", "hh:mm a"), 46_800_000),
    ("PARSE_TIME", ("24:00", "kk:mm"), 0),
    ("PARSE_TIME", ("7", "H"), 25_200_000),
    ("PARSE_TIME", (NULL, "H"), None),
    ("FORMAT_TIMESTAMP", (STAMP, "yyyy-MM-dd HH:mm:ss.SSS"), "2018-05-11 21:58:33.123"),
    ("FORMAT_TIMESTAMP", (STAMP, "HH:mm zzz", "America/Los_Angeles"), "14:58 PDT"),
    ("FORMAT_TIMESTAMP", (STAMP, "HH VV z X"), "21 GMT GMT Z"),
    ("FORMAT_TIMESTAMP", (STAMP, NULL), None),
    ("TIMESTAMPTOSTRING", (MOMENT, "dd.MM.yy"), "11.05.18"),
    ("TIMESTAMPTOSTRING", (MOMENT, "HH:mm zzz", "Europe/London"), "22:58 BST"),
    ("FORMAT_DATE", (DAY, "EEE, d MMM yyyy"), "Fri, 11 May 2018"),
    ("FORMAT_DATE", (typed("DATE", -1), "dd-MM-yyyy'!'"), "31-12-1969!"),
    ("DATETOSTRING", (17_662, "yyyy/MM/dd"), "2018/05/11"),
    ("FORMAT_TIME", (typed("TIME", 79_113_123), "h:mm:ss a SSSSSS"), "9:58:33 PM 123000"),
    ("UNIX_DATE", (DAY,), 17_662),
    ("UNIX_TIMESTAMP", (STAMP,), MOMENT),
    ("FROM_DAYS", (17_662,), 17_662),
    ("FROM_UNIXTIME", (MOMENT,), MOMENT),
    ("CONVERT_TZ", (STAMP, "+0200", "+0500"), MOMENT + 3 * 3_600_000),
    ("CONVERT_TZ", (STAMP, "UTC", "America/Los_Angeles"), MOMENT - 7 * 3_600_000),
    ("CONVERT_TZ", (typed("TIMESTAMP", 100), "UTC", "America/Los_Angeles"), 100 - 8 * 3_600_000),
    ("CONVERT_TZ", (STAMP, NULL, "UTC"), None),
]


@pytest.mark.parametrize(("name", "arguments", "wanted"), CALLS)
def test_a_call_gives_its_result(name: str, arguments: tuple[object, ...], wanted: object) -> None:
    found = call(name, *arguments)
    assert same(found, wanted), found


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("PARSE_TIMESTAMP", ("soon", "yyyy"), "Failed to parse timestamp 'soon' at timezone 'GMT'"),
        ("PARSE_TIMESTAMP", ("2018", "yyyy", "Mars/Base"), "Unknown time-zone ID: Mars/Base"),
        ("PARSE_TIMESTAMP", ("2018", "bb"), "Unknown pattern letter: b"),
        ("PARSE_DATE", ("2018-05-11 01", "yyyy-MM-dd HH"), "Date format contains time field"),
        ("PARSE_DATE", ("x", "yyyy"), "Failed to parse date 'x' with formatter 'yyyy'"),
        ("PARSE_TIME", ("01 02", "HH dd"), "Time format contains date field"),
        ("PARSE_TIME", ("01:00", "hh:mm"), "Unable to obtain LocalTime"),
        ("STRINGTODATE", ("2018", "yyyy"), "Unable to obtain LocalDate"),
        ("FORMAT_TIMESTAMP", (STAMP, "yyyy", "+19"), "Zone offset not in valid range"),
        ("FORMAT_DATE", (DAY, "HH"), "Unsupported field: HourOfDay"),
        ("FORMAT_DATE", (DAY, "VV"), "Unable to extract ZoneId"),
        ("FORMAT_TIME", (typed("TIME", 0), "dd"), "Unsupported field: DayOfMonth"),
        ("FORMAT_TIME", (typed("TIME", DAY_MS), "HH"), "Invalid value for NanoOfDay"),
        ("CONVERT_TZ", (STAMP, "UTC", "Nowhere"), "Invalid time zone: Unknown time-zone ID"),
    ],
)
def test_a_wrong_call_says_why(name: str, arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(name, *arguments)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(MOMENT)


def test_now_is_what_the_clock_says(clock: ManualClock) -> None:
    machine = Machine(clock=clock)
    assert call("UNIX_TIMESTAMP", machine=machine) == MOMENT
    assert call("UNIX_DATE", machine=machine) == 17_662
    clock.advance(DAY_MS)
    assert call("UNIX_TIMESTAMP", machine=machine) == MOMENT + DAY_MS
    assert call("UNIX_DATE", machine=machine) == 17_663


def test_dates_of_two_digits_are_near_today(clock: ManualClock) -> None:
    machine = Machine(clock=clock)
    assert call("PARSE_DATE", "01.01.37", "dd.MM.yy", machine=machine) == days_of(2037, 1, 1)
    assert call("PARSE_DATE", "01.01.38", "dd.MM.yy", machine=machine) == days_of(1938, 1, 1)


def test_only_functions_of_the_clock_and_chance_are_volatile() -> None:
    volatile = {
        str(overload.signature)
        for function in builtin_functions()
        for overload in function.overloads
        if isinstance(overload, Scalar) and overload.volatile
    }
    assert {"UNIX_DATE()", "UNIX_TIMESTAMP()", "UUID()"} <= volatile
    assert "UNIX_DATE(DATE date)" not in volatile


def call_with_unit(name: str, unit: str, count: int, value: object) -> object:
    """A call whose first argument is a unit."""
    kind = "DATE" if name.startswith("DATE") else "TIMESTAMP" if "STAMP" in name else "TIME"
    time = typed(kind, value)
    types = [UnitArgument(), argument_type(count), argument_type(time)]
    overload, _ = builtin_functions().resolve(name, types)
    assert isinstance(overload, Scalar)
    return overload.call(unit, count, value)


@pytest.mark.parametrize(
    ("name", "unit", "count", "value", "wanted"),
    [
        ("DATEADD", "DAYS", 10, 10, 20),
        ("DATEADD", "DAY", -15, 10, -5),
        ("DATEADD", "HOURS", 23, 10, 10),
        ("DATEADD", "HOURS", 49, 10, 12),
        ("DATEADD", "HOURS", -1, 0, 0),
        ("DATEADD", "HOURS", -25, 0, -1),
        ("DATESUB", "DAYS", 10, 5, -5),
        ("DATESUB", "MINUTES", 1440, 5, 4),
        ("TIMEADD", "MILLISECONDS", 10, 86_399_995, 5),
        ("TIMEADD", "HOURS", 25, 0, 3_600_000),
        ("TIMEADD", "MICROSECONDS", 999, 5, 5),
        ("TIMESUB", "MILLISECONDS", 5, 2, 86_399_997),
        ("TIMESUB", "SECONDS", 1, 2000, 1000),
        ("TIMESTAMPADD", "MILLISECONDS", -5, 2, -3),
        ("TIMESTAMPADD", "MINUTES", 2, 5, 120_005),
        ("TIMESTAMPADD", "NANOSECONDS", -1_999_999, 5, 4),
        ("TIMESTAMPADD", "DAYS", 1, 2**63 - 1, -(2**63) + DAY_MS - 1),
        ("TIMESTAMPSUB", "HOURS", 1, 5, -3_599_995),
    ],
)
def test_durations_are_added(name: str, unit: str, count: int, value: int, wanted: int) -> None:
    assert call_with_unit(name, unit, count, value) == wanted


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="WEEKS is not a unit of time"):
        call_with_unit("DATEADD", "WEEKS", 1, 1)


@given(
    st.sampled_from(["DAYS", "HOURS", "MINUTES", "SECONDS", "MILLISECONDS"]),
    st.integers(-100_000, 100_000),
    st.integers(0, DAY_MS - 1),
)
def test_subtracting_what_was_added_gives_the_same_time(unit: str, count: int, time: int) -> None:
    later = call_with_unit("TIMEADD", unit, count, time)
    assert isinstance(later, int)
    assert 0 <= later < DAY_MS
    assert call_with_unit("TIMESUB", unit, count, later) == time
    stamp = call_with_unit("TIMESTAMPADD", unit, count, time)
    assert call_with_unit("TIMESTAMPSUB", unit, count, stamp) == time
