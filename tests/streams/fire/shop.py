"""The application under fire, its input, and what its output must be.

    orders --select_key--> repartition --tumbling windows--> totals    every update of every window
    orders --join within an hour-- payments                --> paid      one result for each payment

Each update of a window has the number of orders so far and the order that caused it: the numbers of
a window must be 1, 2, 3, ... without a gap, and each order must have caused exactly one.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

import orjson

from streams import StreamsBuilder, Topology, join_within, tumbling

PARTITIONS = 4
USERS = 25
WINDOW_MS = 10_000
# A century: changelogs keep windows for as long, and the records are some years old.
NEVER_LATE_MS = 36_500 * 86_400_000
HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000
TOPICS = ("orders", "payments", "totals", "paid")


def shop() -> Topology:
    """The topology."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=dict)
    payments = builder.stream("payments", key=str, value=dict)
    (
        orders.select_key(lambda order, value: value["user"])
        .group_by_key(key=str, value=dict)
        .windowed_by(tumbling(WINDOW_MS, grace=NEVER_LATE_MS))
        .aggregate(
            lambda: {"orders": 0, "amount": 0, "order": ""},
            lambda user, order, total: {
                "orders": total["orders"] + 1,
                "amount": total["amount"] + order["amount"],
                "order": order["id"],
            },
            key=str,
            value=dict,
            store="totals-by-window",
        )
        .to_stream()
        .map(lambda windowed, total: (f"{windowed.key}@{windowed.start_ms}", total))
        .to("totals", key=str, value=dict)
    )
    (
        orders.join(
            payments,
            lambda order, payment: {"order": order["id"], "payment": payment["id"]},
            join_within(HOUR_MS, grace=NEVER_LATE_MS),
            key=str,
            value=dict,
            other_value=dict,
        ).to("paid", key=str, value=dict)
    )
    return builder.build()


@dataclass(frozen=True, slots=True)
class Event:
    """One record of an input topic."""

    topic: str
    key: str
    value: dict[str, object]
    timestamp_ms: int


def make_events(random: Random, count: int, first: int = 0) -> list[Event]:
    """Orders, each followed some time later by its payment, a little out of order."""
    events = []
    for number in range(first, first + count):
        order = f"order-{number}"
        user = f"user-{random.randrange(USERS)}"
        timestamp_ms = START_MS + number * 20 + random.randrange(2_000)
        value: dict[str, object] = {"id": order, "user": user, "amount": random.randrange(1, 100)}
        events.append(Event("orders", order, value, timestamp_ms))
        payment: dict[str, object] = {"id": f"payment-{number}"}
        later_ms = timestamp_ms + random.randrange(60_000)
        events.append(Event("payments", order, payment, later_ms))
    return events


Rows = Sequence[tuple[str, dict[str, object]]]


def check_totals(events: Iterable[Event], rows: Rows) -> None:
    """Every window's updates number 1, 2, 3, ..., one for each of its orders, with exact sums."""
    expected: dict[str, dict[str, int]] = defaultdict(dict)
    for event in events:
        if event.topic == "orders":
            start = event.timestamp_ms - event.timestamp_ms % WINDOW_MS
            amount = event.value["amount"]
            assert isinstance(amount, int)
            expected[f"{event.value['user']}@{start}"][event.key] = amount
    found: dict[str, list[dict[str, object]]] = defaultdict(list)
    for window, update in rows:
        found[window].append(update)
    assert sorted(expected.keys() - found.keys()) == []
    assert sorted(found.keys() - expected.keys()) == []
    for window, updates in found.items():
        orders = expected[window]
        numbers = [update["orders"] for update in updates]
        assert numbers == list(range(1, len(orders) + 1)), f"{window}: {numbers}"
        assert sorted(str(update["order"]) for update in updates) == sorted(orders), window
        amount = 0
        for update in updates:
            amount += orders[str(update["order"])]
            assert update["amount"] == amount, window


def check_paid(events: Iterable[Event], rows: Rows) -> None:
    """Each order met its payment exactly once."""
    expected = sorted(
        orjson.dumps([event.key, {"order": event.key, "payment": event.value["id"]}])
        for event in events
        if event.topic == "payments"
    )
    assert sorted(orjson.dumps(row) for row in rows) == expected
