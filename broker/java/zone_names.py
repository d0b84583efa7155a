"""English names of time zones: the zones of abbreviations, and long names."""

from broker.java.time_zones import Zone, localized_offset

# Abbreviation, long name, and the zone that Java uses for either.
_NAMES = (
    ("PST", "Pacific Standard Time", "America/Los_Angeles"),
    ("PDT", "Pacific Daylight Time", "America/Los_Angeles"),
    ("PT", "Pacific Time", "America/Los_Angeles"),
    ("MST", "Mountain Standard Time", "America/Denver"),
    ("MDT", "Mountain Daylight Time", "America/Denver"),
    ("MT", "Mountain Time", "America/Denver"),
    ("CST", "Central Standard Time", "America/Chicago"),
    ("CDT", "Central Daylight Time", "America/Chicago"),
    ("CT", "Central Time", "America/Chicago"),
    ("EST", "Eastern Standard Time", "America/New_York"),
    ("EDT", "Eastern Daylight Time", "America/New_York"),
    ("ET", "Eastern Time", "America/New_York"),
    ("AST", "Atlantic Standard Time", "America/Halifax"),
    ("ADT", "Atlantic Daylight Time", "America/Halifax"),
    ("NST", "Newfoundland Standard Time", "America/St_Johns"),
    ("NDT", "Newfoundland Daylight Time", "America/St_Johns"),
    ("AKST", "Alaska Standard Time", "America/Anchorage"),
    ("AKDT", "Alaska Daylight Time", "America/Anchorage"),
    ("HST", "Hawaii-Aleutian Standard Time", "Pacific/Honolulu"),
    ("BST", "British Summer Time", "Europe/London"),
    ("WET", "Western European Standard Time", "Europe/Lisbon"),
    ("WEST", "Western European Summer Time", "Europe/Lisbon"),
    ("CET", "Central European Standard Time", "Europe/Paris"),
    ("CEST", "Central European Summer Time", "Europe/Paris"),
    ("EET", "Eastern European Standard Time", "Europe/Bucharest"),
    ("EEST", "Eastern European Summer Time", "Europe/Bucharest"),
    ("MSK", "Moscow Standard Time", "Europe/Moscow"),
    ("SAST", "South Africa Standard Time", "Africa/Johannesburg"),
    ("EAT", "East Africa Time", "Africa/Nairobi"),
    ("CAT", "Central Africa Time", "Africa/Maputo"),
    ("WAT", "West Africa Standard Time", "Africa/Lagos"),
    ("IST", "India Standard Time", "Asia/Kolkata"),
    ("PKT", "Pakistan Standard Time", "Asia/Karachi"),
    ("HKT", "Hong Kong Standard Time", "Asia/Hong_Kong"),
    ("JST", "Japan Standard Time", "Asia/Tokyo"),
    ("KST", "Korean Standard Time", "Asia/Seoul"),
    ("SGT", "Singapore Standard Time", "Asia/Singapore"),
    ("WIB", "Western Indonesia Time", "Asia/Jakarta"),
    ("AWST", "Australian Western Standard Time", "Australia/Perth"),
    ("ACST", "Australian Central Standard Time", "Australia/Adelaide"),
    ("ACDT", "Australian Central Daylight Time", "Australia/Adelaide"),
    ("AEST", "Australian Eastern Standard Time", "Australia/Sydney"),
    ("AEDT", "Australian Eastern Daylight Time", "Australia/Sydney"),
    ("NZST", "New Zealand Standard Time", "Pacific/Auckland"),
    ("NZDT", "New Zealand Daylight Time", "Pacific/Auckland"),
    ("GMT", "Greenwich Mean Time", "GMT"),
    ("UTC", "Coordinated Universal Time", "UTC"),
)
ZONES_BY_NAME = {name.lower(): zone for short, long, zone in _NAMES for name in (short, long)}
_LONG_NAMES = {short: long for short, long, _ in _NAMES}
# The same abbreviations in other regions.
_ELSEWHERE = {
    ("Asia/Shanghai", "CST"): "China Standard Time",
    ("Asia/Taipei", "CST"): "Taipei Standard Time",
    ("Asia/Manila", "PST"): "Philippine Standard Time",
    ("Asia/Jerusalem", "IST"): "Israel Standard Time",
    ("Europe/Dublin", "IST"): "Irish Standard Time",
}


def long_name(zone: Zone, instant: int) -> str:
    """A zone's long name at an instant, or its offset from GMT."""
    short = zone.short_name(instant)
    found = _ELSEWHERE.get((zone.name, short)) or _LONG_NAMES.get(short)
    return found or (
        localized_offset(zone.offset_at(instant), full=True) if "/" in zone.name else zone.name
    )
