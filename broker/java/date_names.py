"""English names of months, days and other fields, by field and style."""

from broker.java.date_patterns import Style

_MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_QUARTERS = ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter")

# The names of a field's values, starting with its first value.
NAMES: dict[tuple[str, Style], tuple[str, ...]] = {
    ("MonthOfYear", Style.FULL): tuple(_MONTHS),
    ("MonthOfYear", Style.SHORT): tuple(each[:3] for each in _MONTHS),
    ("MonthOfYear", Style.NARROW): tuple(each[0] for each in _MONTHS),
    ("DayOfWeek", Style.FULL): tuple(_DAYS),
    ("DayOfWeek", Style.SHORT): tuple(each[:3] for each in _DAYS),
    ("DayOfWeek", Style.NARROW): tuple(each[0] for each in _DAYS),
    ("QuarterOfYear", Style.FULL): _QUARTERS,
    ("QuarterOfYear", Style.SHORT): ("Q1", "Q2", "Q3", "Q4"),
    ("QuarterOfYear", Style.NARROW): ("1", "2", "3", "4"),
    ("AmPmOfDay", Style.SHORT): ("AM", "PM"),
    ("Era", Style.FULL): ("Before Christ", "Anno Domini"),
    ("Era", Style.SHORT): ("BC", "AD"),
    ("Era", Style.NARROW): ("B", "A"),
}
FIRST_VALUES = {"MonthOfYear": 1, "DayOfWeek": 1, "QuarterOfYear": 1, "AmPmOfDay": 0, "Era": 0}
