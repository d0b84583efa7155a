"""Reference: the expected results of queries, computed from the rows of their sources.

Deliberately simple and slow: plain Python over lists, without product code.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MINUTE_MS = 60_000
SESSION_GAP_MS = 15_000
SCHEMA_ID_BYTES = 5  # a zero and the id of the schema, in front of the value
Row = tuple[object, ...]
Result = Counter[Row]


@dataclass(frozen=True, slots=True)
class Order:
    """A row of the stream."""

    id: str
    customer: str
    amount: int
    n: int
    time_ms: int


@dataclass(slots=True)
class Inputs:
    """The rows of the sources, in the order of their partitions."""

    orders: list[Order] = field(default_factory=list)
    customers: dict[str, dict[str, object]] = field(default_factory=dict)  # the last of each key
    towns: set[object] = field(default_factory=set)  # of customers, now or before


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns and keys of a topic's records."""

    columns: tuple[str, ...]
    key_columns: tuple[str, ...] = ()
    window: str = ""  # "tumbling" or "session": the window in the key
    is_table: bool = False


Record = tuple[int, bytes | None, bytes | None, int]


def rows(records: Iterable[Record], shape: Shape, value_format: str) -> Iterator[dict[str, object]]:
    """Decode records to rows by column name; a deleted row has only its key, and DELETED."""
    for _, key, value, time_ms in records:
        row: dict[str, object] = {"TIME": time_ms}
        key = key or b""
        if shape.window == "tumbling":
            key, row["START"] = key[:-8], int.from_bytes(key[-8:], "big")
        elif shape.window == "session":
            row["END"] = int.from_bytes(key[-16:-8], "big")
            key, row["START"] = key[:-16], int.from_bytes(key[-8:], "big")
        row |= {name: key.decode() for name in shape.key_columns}
        if value is None:
            row["DELETED"] = True
        elif value_format == "JSON":
            row |= json.loads(value)
        elif value_format == "JSON_SR":
            row |= json.loads(value[SCHEMA_ID_BYTES:])
            row["SCHEMA"] = int.from_bytes(value[1:SCHEMA_ID_BYTES], "big")
        else:
            parts = value.decode().split(",")
            row |= {
                name: None if part == "" else int(part) if part.lstrip("-").isdigit() else part
                for name, part in zip(shape.columns, parts, strict=False)
            }
        yield row


def result(rows: Iterable[Mapping[str, object]], shape: Shape) -> Result:
    """Count the rows of a stream, or the last rows of a table, as tuples."""
    names = (*shape.key_columns, *(["START", "END"] if shape.window == "session" else []))
    names = (*names, *(["START"] if shape.window == "tumbling" else []))
    if not shape.is_table:
        return Counter(tuple(row.get(name) for name in (*names, *shape.columns)) for row in rows)
    last: dict[Row, Mapping[str, object]] = {}
    for row in rows:
        last[tuple(row.get(name) for name in names)] = row
    return Counter(
        (*key, *(row.get(name) for name in shape.columns))
        for key, row in last.items()
        if "DELETED" not in row
    )


Expected = Callable[[Inputs], Result]


def by_customer(given: Inputs) -> Result:
    """SELECT customer, id, amount ... PARTITION BY customer."""
    return Counter((each.customer, each.id, each.amount) for each in given.orders)


def with_city(given: Inputs) -> Result:
    """The join of orders and customers; all customers exist before the first order."""
    return Counter(
        (each.customer, each.id, given.customers[each.customer]["CITY"]) for each in given.orders
    )


def totals(given: Inputs) -> Result:
    """COUNT(*) and SUM(amount) by customer."""
    amounts: dict[str, list[int]] = defaultdict(list)
    for each in given.orders:
        amounts[each.customer].append(each.amount)
    return Counter((name, len(each), sum(each)) for name, each in amounts.items())


def per_minute(given: Inputs) -> Result:
    """COUNT(*) by customer and minute."""
    counts = Counter((each.customer, each.time_ms // MINUTE_MS) for each in given.orders)
    return Counter((name, minute * MINUTE_MS, count) for (name, minute), count in counts.items())


def sessions(given: Inputs) -> Result:
    """COUNT(*) by customer and session."""
    times: dict[str, list[int]] = defaultdict(list)
    for each in given.orders:
        times[each.customer].append(each.time_ms)
    counts: Result = Counter()
    for name, moments in times.items():
        for part in _sessions(sorted(moments)):
            counts[name, part[0], part[-1], len(part)] += 1
    return counts


def _sessions(moments: Sequence[int]) -> Iterator[list[int]]:
    part = [moments[0]]
    for moment in moments[1:]:
        if moment - part[-1] > SESSION_GAP_MS:
            yield part
            part = []
        part.append(moment)
    yield part


def copy_of_customers(given: Inputs) -> Result:
    """SELECT * FROM customers, including a column that was added later."""
    return Counter(
        (name, row["CITY"], row["TOWN"], row["N"], row.get("NOTE"))
        for name, row in given.customers.items()
    )


def by_town(given: Inputs) -> Result:
    """COUNT(*) of customers by town, without towns that have no customers any more."""
    counts = Counter(row["TOWN"] for row in given.customers.values())
    return Counter((town, counts[town]) for town in given.towns if counts[town])


def difference(actual: Result, expected: Result) -> str:
    """Describe the missing and surplus rows of a result."""
    missing, surplus = expected - actual, actual - expected
    parts = [f"lacks {_shown(missing)}"] if missing else []
    parts += [f"should not have {_shown(surplus)}"] if surplus else []
    return " and ".join(parts)


def _shown(rows: Result) -> str:
    first = ", ".join(map(str, list(rows)[:3]))
    return f"{first} and {len(rows) - 3} more" if len(rows) > 3 else first
