"""Fifty queries of five kinds over one stream of orders, and what exactly each must write."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import NamedTuple

PARTITIONS = 2
REMAINDERS = 10
PRODUCTS = 10
WINDOW_MS = 10_000
REGIONS = ("north", "south", "west")
CUSTOMERS = {f"customer-{number}": REGIONS[number % 3] for number in range(12)}
STRANGER = "stranger"  # orders, but is no customer
ORDERS_TOPIC, CUSTOMERS_TOPIC = "orders", "customers"

SOURCES = f"""
CREATE STREAM orders (customer STRING KEY, id INT, product INT, amount INT)
    WITH (kafka_topic='{ORDERS_TOPIC}', value_format='JSON', partitions={PARTITIONS});
CREATE TABLE customers (customer STRING PRIMARY KEY, region STRING)
    WITH (kafka_topic='{CUSTOMERS_TOPIC}', value_format='JSON', partitions={PARTITIONS});
"""

Key = str | int | tuple[str, int]
Row = Mapping[str, object]
# What a topic must have: rows by their keys, those of one key in order.
Rows = dict[Key, list[Row]]


class Order(NamedTuple):
    """A record of the source."""

    customer: str
    id: int
    product: int
    amount: int
    timestamp_ms: int

    @property
    def value(self) -> Row:
        """What is written, beside the key."""
        return {"id": self.id, "product": self.product, "amount": self.amount}


def make_orders(random: Random, start_ms: int) -> Iterator[Order]:
    """Orders without end; time goes on, a little back at times."""
    number = 0
    while True:
        yield Order(
            random.choice([*CUSTOMERS, STRANGER]),
            number,
            random.randrange(PRODUCTS),
            random.randrange(1, 1000),
            start_ms + number * 50 - random.randrange(3_000),
        )
        number += 1


def decode_text(key: bytes) -> Key:
    """A key that is text."""
    return key.decode()


def decode_whole(key: bytes) -> Key:
    """A key that is a whole number."""
    return int.from_bytes(key, "big", signed=True)


def decode_windowed(key: bytes) -> Key:
    """A key with the start of its window behind it."""
    return key[:-8].decode(), int.from_bytes(key[-8:], "big")


@dataclass(frozen=True, slots=True)
class Query:
    """A persistent query with what is known of its results."""

    name: str
    statement: str
    decode_key: Callable[[bytes], Key]
    wants: Callable[[Order], bool]
    rows: Callable[[Iterable[Order]], Rows]
    # The columns of the key in a pull query, and whether the table can be pulled.
    is_table: bool = True
    # Rows of one key come from several partitions, whose order among each other is free.
    is_repartitioned: bool = False

    def expected(self, orders: Iterable[Order]) -> Rows:
        """What the output topic must have after these orders."""
        return self.rows(each for each in orders if self.wants(each))


def queries() -> list[Query]:
    """All fifty; a chained one comes after the one it reads from."""
    found = []
    for number in range(8):
        found += [
            _filter(number),
            _windowed(number),
            _joined(number),
            _totals(number),
            _by_product(number),
            _chained(number),
        ]
    return [*found, _filter(8), _windowed(8)]


def _has_remainder(number: int) -> Callable[[Order], bool]:
    return lambda order: order.amount % REMAINDERS == number


def _has_product(number: int) -> Callable[[Order], bool]:
    return lambda order: order.product == number


def _filter(number: int) -> Query:
    return Query(
        f"FILTERED_{number}",
        f"CREATE STREAM filtered_{number} AS SELECT customer, id, amount FROM orders "
        f"WHERE amount % {REMAINDERS} = {number};",
        decode_text,
        _has_remainder(number),
        lambda orders: _each(orders, lambda each: {"ID": each.id, "AMOUNT": each.amount}),
        is_table=False,
    )


def _windowed(number: int) -> Query:
    return Query(
        f"WINDOWED_{number}",
        f"CREATE TABLE windowed_{number} AS SELECT customer, COUNT(*) AS n, SUM(amount) AS total "
        "FROM orders WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 1 DAY) "
        f"WHERE amount % {REMAINDERS} = {number} GROUP BY customer;",
        decode_windowed,
        _has_remainder(number),
        lambda orders: _sums(orders, _window_of),
    )


def _window_of(order: Order) -> Key:
    return order.customer, order.timestamp_ms // WINDOW_MS * WINDOW_MS


def _joined(number: int) -> Query:
    return Query(
        f"JOINED_{number}",
        f"CREATE STREAM joined_{number} AS SELECT o.customer AS customer, o.id AS id, "
        "c.region AS region FROM orders o JOIN customers c ON o.customer = c.customer "
        f"WHERE o.product = {number};",
        decode_text,
        lambda order: order.product == number and order.customer in CUSTOMERS,
        lambda orders: _each(
            orders, lambda each: {"ID": each.id, "REGION": CUSTOMERS[each.customer]}
        ),
        is_table=False,
    )


def _totals(number: int) -> Query:
    return Query(
        f"TOTALS_{number}",
        f"CREATE TABLE totals_{number} AS SELECT customer, COUNT(*) AS n, SUM(amount) AS total "
        f"FROM orders WHERE product = {number} GROUP BY customer;",
        decode_text,
        _has_product(number),
        lambda orders: _sums(orders, lambda each: each.customer),
    )


def _by_product(number: int) -> Query:
    return Query(
        f"BY_PRODUCT_{number}",
        f"CREATE TABLE by_product_{number} AS SELECT product, COUNT(*) AS n, "
        f"SUM(amount) AS total FROM orders WHERE amount % {REMAINDERS} = {number} "
        "GROUP BY product;",
        decode_whole,
        _has_remainder(number),
        lambda orders: _sums(orders, lambda each: each.product),
        is_repartitioned=True,
    )


def _chained(number: int) -> Query:
    return Query(
        f"CHAINED_{number}",
        f"CREATE TABLE chained_{number} AS SELECT customer, COUNT(*) AS n, "
        f"SUM(amount) AS total FROM filtered_{number} GROUP BY customer;",
        decode_text,
        _has_remainder(number),
        lambda orders: _sums(orders, lambda each: each.customer),
    )


def _each(orders: Iterable[Order], row: Callable[[Order], Row]) -> Rows:
    found: Rows = defaultdict(list)
    for each in orders:
        found[each.customer].append(row(each))
    return dict(found)


def _sums(orders: Iterable[Order], key_of: Callable[[Order], Key]) -> Rows:
    found: Rows = defaultdict(list)
    totals: dict[Key, int] = defaultdict(int)
    for each in orders:
        key = key_of(each)
        totals[key] += each.amount
        found[key].append({"N": len(found[key]) + 1, "TOTAL": totals[key]})
    return dict(found)


def difference(query: Query, expected: Rows, found: Rows) -> str | None:
    """What is wrong with the rows of a topic; None if they are exactly those expected."""
    if query.is_repartitioned:
        expected, found = _steps(expected), _steps(found)
    if expected == found:
        return None
    for key in sorted({*expected, *found}, key=str):
        wanted, seen = expected.get(key, []), found.get(key, [])
        if wanted != seen:
            at = next((n for n, (a, b) in enumerate(zip(wanted, seen, strict=False)) if a != b), -1)
            return (
                f"{query.name} {key}: {len(seen)} rows for {len(wanted)}, the first difference is "
                f"at {at}: {seen[at - 1 : at + 3]} for {wanted[at - 1 : at + 3]}"
            )
    raise AssertionError("unreachable: the rows differ in no key")


def _steps(rows: Rows) -> Rows:
    """Counts in their order, and by how much the sums grew, in any."""
    found: Rows = {}
    for key, values in rows.items():
        totals = [0, *(int(str(each["TOTAL"])) for each in values)]
        grew = sorted(after - before for before, after in pairwise(totals))
        found[key] = [
            {"N": each["N"], "GREW": growth} for each, growth in zip(values, grew, strict=True)
        ]
    return found
