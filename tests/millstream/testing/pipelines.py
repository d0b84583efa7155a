"""Pipelines of tests: right ones, and some with a defect that a fault brings to light."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from millstream.testing import Record, table
from streams import Processor, ProcessorContext, StreamsBuilder, Topology, tumbling
from streams import Record as StreamsRecord
from streams.state.store import StoreKind, StoreSpec

CUSTOMERS = ("ann", "bob", "cid")
ORDERS = [Record(CUSTOMERS[number % 3], number) for number in range(24)]
INPUTS = {"orders": ORDERS}
OUTPUTS = {"totals": table(key=str, value=int)}
TOTALS = {"ann": 84, "bob": 92, "cid": 100}
WINDOW, GRACE = timedelta(seconds=10), timedelta(seconds=15)

Build = Callable[[], Topology]
Amounts = Processor[str, int, str, int]


def totals() -> Topology:
    """Sums by customer, in a store."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=int)
    sums = orders.group_by_key().aggregate(
        lambda: 0, lambda _, amount, total: total + amount, key=str, value=int
    )
    sums.to_stream().to("totals", key=str, value=int)
    return builder.build()


def totals_by_remainder() -> Topology:
    """Sums by another key: records move by a repartition topic."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=int)
    groups = orders.group_by(lambda _, amount: str(amount % 5), key=str, value=int)
    groups.reduce(lambda one, other: one + other).to_stream().to("totals", key=str, value=int)
    return builder.build()


class SumInDict(Amounts):
    """Forgets its sums when its process ends."""

    def init(self, context: ProcessorContext[str, int]) -> None:
        super().init(context)
        self.sums = self.make_sums()

    def make_sums(self) -> dict[str, int]:
        return {}

    def process(self, record: StreamsRecord[str, int]) -> None:
        self.sums[record.key] = self.sums.get(record.key, 0) + record.value
        self.context.forward(record.with_value(self.sums[record.key]))  # type: ignore[arg-type]


def processed(supplier: Callable[[], Amounts], *stores: StoreSpec) -> Build:
    """Orders through a processor."""

    def build() -> Topology:
        builder = StreamsBuilder()
        orders = builder.stream("orders", key=str, value=int)
        orders.process(supplier, stores=stores).to("totals", key=str, value=int)
        return builder.build()

    return build


def sums_in_a_global() -> Build:
    """As a module that keeps state in a global: no end of a process takes it away."""
    shared: dict[str, int] = {}

    class SumInGlobal(SumInDict):
        def make_sums(self) -> dict[str, int]:
            return shared

    return processed(SumInGlobal)


def counts_by_window(grace: timedelta) -> Build:
    """Orders by customer and window."""

    def build() -> Topology:
        builder = StreamsBuilder()
        orders = builder.stream("orders", key=str, value=int).group_by_key()
        counts = orders.windowed_by(tumbling(WINDOW, grace=grace)).count(store="counts")
        (
            counts.to_stream()
            .map(lambda window, count: (f"{window.key} {window.start_ms}", count))
            .to("totals", key=str, value=int)
        )
        return builder.build()

    return build


def last_to_arrive() -> Topology:
    """The last order of a customer, by the order of arrival."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=int).group_by_key()
    orders.reduce(lambda _, new: new).to_stream().to("totals", key=str, value=int)
    return builder.build()


class NewestOrder(Amounts):
    """The last order of a customer, by the times of orders."""

    def init(self, context: ProcessorContext[str, int]) -> None:
        super().init(context)
        self.newest = context.store("newest")

    def process(self, record: StreamsRecord[str, int]) -> None:
        known = self.newest.get(record.key)
        if known is None or known <= record.timestamp_ms:
            self.newest.put(record.key, record.timestamp_ms)
            self.context.forward(record)


newest = processed(NewestOrder, StoreSpec("newest", StoreKind.KEY_VALUE))


class Deduplicated(Amounts):
    """Each amount of a customer once; `remembered` says how many it knows."""

    remembered = 1_000

    def init(self, context: ProcessorContext[str, int]) -> None:
        super().init(context)
        self.seen = context.store("seen")

    def process(self, record: StreamsRecord[str, int]) -> None:
        seen: list[Any] = self.seen.get(record.key) or []
        if record.value not in seen:
            self.seen.put(record.key, [*seen, record.value][-self.remembered :])
            self.context.forward(record)


class Forgetful(Deduplicated):
    """Knows only the last amount."""

    remembered = 1


class StartsEmpty(Deduplicated):
    """Cannot start with the state of a process before it."""

    def init(self, context: ProcessorContext[str, int]) -> None:
        super().init(context)
        if list(self.seen.all()):
            raise ValueError("not empty")


SEEN = StoreSpec("seen", StoreKind.KEY_VALUE)

SQL = """
CREATE STREAM orders (customer STRING KEY, amount INT)
  WITH (kafka_topic='orders', value_format='JSON', partitions=2);
CREATE TABLE totals WITH (kafka_topic='totals', value_format='JSON') AS
  SELECT customer, COUNT(*) AS orders, SUM(amount) AS amount FROM orders GROUP BY customer;
CREATE STREAM large WITH (kafka_topic='large', value_format='JSON') AS
  SELECT customer, amount FROM orders WHERE amount > 20;
"""
# The window ends at once: a late order is not counted.
SQL_WITHOUT_GRACE = """
CREATE STREAM orders (customer STRING KEY, amount INT)
  WITH (kafka_topic='orders', value_format='JSON', partitions=1);
CREATE TABLE counts WITH (kafka_topic='counts', value_format='JSON') AS
  SELECT customer, COUNT(*) AS orders FROM orders
  WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY customer;
"""
ROWS = {"orders": [Record(each.key, {"amount": each.value}) for each in ORDERS]}
