"""timestamp.granularity: the conversion of points in time to values of records."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from connect.data import INT64, STRING, ConnectSchema, timestamp

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

Shown = Callable[[datetime], object]


def microseconds_of(instant: datetime) -> int:
    """Microseconds since the epoch, exactly."""
    return (instant - _EPOCH) // _MICROSECOND


def instant_of(microseconds: int) -> datetime:
    """The point in time of microseconds since the epoch."""
    return _EPOCH + timedelta(microseconds=microseconds)


def _iso(instant: datetime, digits: int) -> str:
    local = instant.astimezone(UTC)
    fraction = f"{local.microsecond:06d}".ljust(digits, "0")
    return f"{local:%Y-%m-%dT%H:%M:%S}.{fraction}"


# The schema of a timestamp, and the conversion of its values; None: datetimes are not converted.
GRANULARITIES: Final[dict[str, tuple[ConnectSchema, Shown | None]]] = {
    "connect_logical": (timestamp(), None),
    "micros_long": (INT64, microseconds_of),
    "micros_string": (STRING, lambda instant: str(microseconds_of(instant))),
    "micros_iso_datetime_string": (STRING, lambda instant: _iso(instant, 6)),
    "nanos_long": (INT64, lambda instant: microseconds_of(instant) * 1000),
    "nanos_string": (STRING, lambda instant: str(microseconds_of(instant) * 1000)),
    "nanos_iso_datetime_string": (STRING, lambda instant: _iso(instant, 9)),
}
