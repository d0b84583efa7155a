"""Numbers that were read of a date, as a point in time, the way Java's lenient calendar does it.

Numbers that are too large count on: month 13 is January of the next year. Where several ways lead
to a day (the day of the month, the day of the year, a week and its day) the one read last wins.
Weeks begin on Sunday, and the first one has the first day of the year. Before 1582 Java changes to
the Julian calendar, which is not done here: the Gregorian one goes on.
"""

from broker.java.times import DAY_MS, date_of, days_of

_HOUR_MS = 60 * 60 * 1000
_MINUTE_MS = 60 * 1000
_FIRST_YEAR = 1970


class Fields:
    """Numbers by the letter of the pattern that they were read for, and which came when."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._stamps: dict[str, int] = {}
        self._now = 0
        # The letter of a year of two digits that may be one of two, a century apart.
        self.ambiguous_year: str | None = None

    def put(self, letter: str, number: int) -> None:
        """Keeps a number."""
        self._now += 1
        self._numbers[letter] = number
        self._stamps[letter] = self._now

    def add(self, letter: str, number: int) -> None:
        """Makes a number larger that was read."""
        self._numbers[letter] += number

    def get(self, letter: str, default: int) -> int:
        """The number of a letter."""
        return self._numbers.get(letter, default)

    def stamp(self, letter: str) -> int:
        """When the number was read; 0 if it was not."""
        return self._stamps.get(letter, 0)

    def stamp_of_both(self, letter: str, other: str) -> int:
        """When the later of two was read; 0 if one of them was not."""
        both = self.stamp(letter), self.stamp(other)
        return max(both) if all(both) else 0


def milliseconds_of(fields: Fields) -> int:
    """Milliseconds since 1970; what was not read is that of 1970-01-01 00:00 UTC."""
    time_ms = (
        _hour(fields) * _HOUR_MS
        + fields.get("m", 0) * _MINUTE_MS
        + fields.get("s", 0) * 1000
        + fields.get("S", 0)
    )
    return _days(fields) * DAY_MS + time_ms - fields.get("Z", 0) * 1000


def _hour(fields: Fields) -> int:
    of_half_day = fields.stamp_of_both("h", "a")
    best = max(of_half_day, fields.stamp("H")) or max(fields.stamp("h"), fields.stamp("a"))
    if best == fields.stamp("H"):
        return fields.get("H", 0)
    return fields.get("h", 0) + 12 * fields.get("a", 0)


def _days(fields: Fields) -> int:
    if fields.stamp("Y") > fields.stamp("y"):
        return _day_of_week_in_year(fields, fields.get("Y", _FIRST_YEAR))
    year = fields.get("y", _FIRST_YEAR)
    if fields.get("G", 1) == 0:
        year = 1 - year
    match _way_to_the_day(fields):
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


def _way_to_the_day(fields: Fields) -> str:
    """The letter of the number that the day is found by."""
    stamps = {
        "d": fields.stamp("d"),
        "W": fields.stamp_of_both("W", "E"),
        "F": fields.stamp_of_both("F", "E"),
        "D": fields.stamp("D"),
        "w": fields.stamp_of_both("w", "E"),
    }
    if not any(stamps.values()):
        # A week without its day, or a weekday without its week.
        alone = {"W": fields.stamp("W"), "w": fields.stamp("w")}
        stamps = {"d": 0, **alone, "F": max(fields.stamp("F"), fields.stamp("E"))}
    # A weekday may belong to a week of the month and of the year: then the week read last wins.
    return max(stamps, key=lambda letter: (stamps[letter], fields.stamp(letter)))


def _first_of_month(fields: Fields, year: int) -> int:
    years, month = divmod(fields.get("M", 1) - 1, 12)
    return days_of(year + years, month + 1, 1)


def _day_of_week_in_year(fields: Fields, year: int) -> int:
    first = _sunday_before(days_of(year, 1, 1))
    return first + 7 * (fields.get("w", 1) - 1) + fields.get("E", 0)


def day_of_week(days: int) -> int:
    """Of days since 1970: 0 is Sunday."""
    return (days + 4) % 7


def _sunday_before(days: int) -> int:
    return days - day_of_week(days)


def week_of_year(days: int) -> tuple[int, int]:
    """The year that a day's week belongs to, and the week's number in it."""
    from_sunday = _sunday_before(days)
    # The year's first week has its first day: so it is the year of the week's Saturday.
    year, _, _ = date_of(from_sunday + 6)
    return year, (from_sunday - _sunday_before(days_of(year, 1, 1))) // 7 + 1
