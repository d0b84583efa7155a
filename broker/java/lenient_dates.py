"""Converts parsed numbers to a point in time, like Java's lenient calendar.

Numbers that are too large overflow: month 13 is January of the next year. If several combinations
of fields determine the day (day of the month, day of the year, week and weekday), the last parsed
one wins. Weeks begin on Sunday, and the first one has the first day of the year. Java uses the
Julian calendar before 1582; here it is always the Gregorian one.
"""

from broker.java.times import DAY_MS, date_of, days_of

_HOUR_MS = 60 * 60 * 1000
_MINUTE_MS = 60 * 1000
_FIRST_YEAR = 1970


class CalendarFields:
    """Numbers by pattern letter, and the order in which they were parsed."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._stamps: dict[str, int] = {}
        self._now = 0
        # The letter of a two-digit year in the year where the century changes.
        self.ambiguous_year: str | None = None

    def put(self, letter: str, number: int) -> None:
        """Set a number."""
        self._now += 1
        self._numbers[letter] = number
        self._stamps[letter] = self._now

    def add(self, letter: str, number: int) -> None:
        """Add to a parsed number."""
        self._numbers[letter] += number

    def get(self, letter: str, default: int) -> int:
        """The number of a letter."""
        return self._numbers.get(letter, default)

    def stamp(self, letter: str) -> int:
        """The sequence number of the parsed field; 0 if it is missing."""
        return self._stamps.get(letter, 0)

    def stamp_of_both(self, letter: str, other: str) -> int:
        """The later sequence number of two fields; 0 if one is missing."""
        both = self.stamp(letter), self.stamp(other)
        return max(both) if all(both) else 0


def milliseconds_of(fields: CalendarFields) -> int:
    """Milliseconds since 1970; missing fields are those of 1970-01-01 00:00 UTC."""
    time_ms = (
        _hour(fields) * _HOUR_MS
        + fields.get("m", 0) * _MINUTE_MS
        + fields.get("s", 0) * 1000
        + fields.get("S", 0)
    )
    return _days(fields) * DAY_MS + time_ms - fields.get("Z", 0) * 1000


def _hour(fields: CalendarFields) -> int:
    of_half_day = fields.stamp_of_both("h", "a")
    best = max(of_half_day, fields.stamp("H")) or max(fields.stamp("h"), fields.stamp("a"))
    if best == fields.stamp("H"):
        return fields.get("H", 0)
    return fields.get("h", 0) + 12 * fields.get("a", 0)


def _days(fields: CalendarFields) -> int:
    if fields.stamp("Y") > fields.stamp("y"):
        return _day_of_week_in_year(fields, fields.get("Y", _FIRST_YEAR))
    year = fields.get("y", _FIRST_YEAR)
    if fields.get("G", 1) == 0:
        year = 1 - year
    match _determining_field(fields):
        case "D":
            return days_of(year, 1, 1) + fields.get("D", 1) - 1
        case "w":
            return _day_of_week_in_year(fields, year)
        case "W":
            first = _sunday_before(_first_of_month(fields, year))
            return first + 7 * (fields.get("W", 1) - 1) + fields.get("E", 0)
        case "F":
            # The weekday on or before the last day of that week, counted from the first.
            last = _first_of_month(fields, year) + 7 * fields.get("F", 1) - 1
            return last - (day_of_week(last) - fields.get("E", 0)) % 7
        case _:
            return _first_of_month(fields, year) + fields.get("d", 1) - 1


def _determining_field(fields: CalendarFields) -> str:
    """The letter of the field that determines the day."""
    stamps = {
        "d": fields.stamp("d"),
        "W": fields.stamp_of_both("W", "E"),
        "F": fields.stamp_of_both("F", "E"),
        "D": fields.stamp("D"),
        "w": fields.stamp_of_both("w", "E"),
    }
    if not any(stamps.values()):
        # A week without a weekday, or a weekday without a week.
        alone = {"W": fields.stamp("W"), "w": fields.stamp("w")}
        stamps = {"d": 0, **alone, "F": max(fields.stamp("F"), fields.stamp("E"))}
    # A weekday may belong to a week of the month and of the year: the last parsed one wins.
    return max(stamps, key=lambda letter: (stamps[letter], fields.stamp(letter)))


def _first_of_month(fields: CalendarFields, year: int) -> int:
    years, month = divmod(fields.get("M", 1) - 1, 12)
    return days_of(year + years, month + 1, 1)


def _day_of_week_in_year(fields: CalendarFields, year: int) -> int:
    first = _sunday_before(days_of(year, 1, 1))
    return first + 7 * (fields.get("w", 1) - 1) + fields.get("E", 0)


def day_of_week(days: int) -> int:
    """The weekday of days since 1970: 0 is Sunday."""
    return (days + 4) % 7


def _sunday_before(days: int) -> int:
    return days - day_of_week(days)


def week_of_year(days: int) -> tuple[int, int]:
    """The week-based year of a day, and its week."""
    from_sunday = _sunday_before(days)
    # The first week has the first day of the year: so it is the year of the week's Saturday.
    year, _, _ = date_of(from_sunday + 6)
    return year, (from_sunday - _sunday_before(days_of(year, 1, 1))) // 7 + 1
