"""TableQuery: the statement that finds rows after an offset, in each mode.

mode                    rows after (timestamp t, incrementing i), until u
bulk                    all
incrementing            i < column, by column
timestamp               t < column < u, by column
timestamp+incrementing  t < column < u, or t = column and i < incrementing column; by both

Offsets are stored as Confluent's connector does: {"incrementing": 7, "timestamp": milliseconds,
"timestamp_nanos": nanoseconds of the second}, of the partition {"protocol": "1", "table": name} or
{"query": "query"}.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Final

from connect.connectors.jdbc.dialects.dialect import Dialect
from connect.connectors.jdbc.tables import Quoting, TableName
from connect.connectors.jdbc.timestamps import instant_of, microseconds_of
from connect.errors import ConnectError

INCREMENTING_KEY: Final = "incrementing"
TIMESTAMP_KEY: Final = "timestamp"
NANOS_KEY: Final = "timestamp_nanos"
QUERY_PARTITION: Final[Mapping[str, object]] = {"query": "query"}

_INCREMENTING_START = -1


@dataclass(frozen=True, slots=True)
class Offset:
    """The position after the last row; parts that the mode does not use are None."""

    incrementing: int | None = None
    timestamp: datetime | None = None

    @staticmethod
    def from_map(stored: Mapping[str, object] | None) -> "Offset":
        """A stored offset; missing parts are None."""
        stored = stored or {}
        incrementing = stored.get(INCREMENTING_KEY)
        timestamp_ms = stored.get(TIMESTAMP_KEY)
        if timestamp_ms is None:
            return Offset(_integer(incrementing))
        nanos = _integer(stored.get(NANOS_KEY))
        milliseconds = _integer(timestamp_ms) or 0
        instant = instant_of(milliseconds * 1000)
        if nanos is not None:
            instant = instant.replace(microsecond=0) + timedelta(microseconds=nanos // 1000)
        return Offset(_integer(incrementing), instant)


def _integer(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConnectError(f"{value!r} in an offset is not an integer")
    return value


def timestamp_offset(instant: datetime) -> dict[str, object]:
    """The parts of an offset for a point in time."""
    return {
        TIMESTAMP_KEY: microseconds_of(instant) // 1000,
        NANOS_KEY: instant.microsecond * 1000,
    }


def table_partition(table: TableName) -> dict[str, object]:
    """The partition of a table's offsets."""
    return {"protocol": "1", "table": table.full_name}


@dataclass(frozen=True, slots=True)
class TableQuery:
    """The query of a table, in one mode."""

    select: str
    suffix: str
    incrementing: str | None  # names of columns
    timestamps: tuple[str, ...]
    dialect: Dialect
    quoting: Quoting
    zone: tzinfo

    def statement(self, after: Offset, until: datetime | None) -> str:
        """The query for the rows after an offset, and before a point in time."""
        parts = [self.select]
        order = [self._instant] if self.timestamps else []
        if self.timestamps:
            assert until is not None
            parts.append(f"WHERE {self._changed(after, until)}")
        elif self.incrementing is not None:
            parts.append(f"WHERE {self._grown(after)}")
        if self.incrementing is not None:
            order.append(self.quoting.name(self.incrementing))
        if order:
            parts.append(f"ORDER BY {', '.join(order)}")
        return " ".join([*parts, self.suffix] if self.suffix else parts)

    @property
    def _instant(self) -> str:
        names = self.quoting.names(self.timestamps)
        column = f"COALESCE({names})" if len(self.timestamps) > 1 else names
        return self.dialect.instant_expression(column)

    def _grown(self, after: Offset) -> str:
        assert self.incrementing is not None
        start = _INCREMENTING_START if after.incrementing is None else after.incrementing
        return f"{self.quoting.name(self.incrementing)} > {start}"

    def _changed(self, after: Offset, until: datetime) -> str:
        column = self._instant
        assert after.timestamp is not None
        since = self.dialect.instant_literal(after.timestamp, self.zone)
        newer = f"{column} > {since}"
        if self.incrementing is not None:
            newer = f"({newer} OR ({column} = {since} AND {self._grown(after)}))"
        return f"{newer} AND {column} < {self.dialect.instant_literal(until, self.zone)}"
