"""A pipeline tested with crashes: with its state in a dict, and in a store."""

from millstream.testing import DifferentResult, Record, Simulated, crash, table
from streams import Processor, StoreKind, StoreSpec, StreamsBuilder, Topology
from streams import Record as Order

ORDERS = [Record(("ann", "bob")[number % 2], number) for number in range(20)]
STORE = StoreSpec("totals", StoreKind.KEY_VALUE)
Totals = Processor[str, int, str, int]


class TotalsInDict(Totals):
    """Wrong: a crash loses the dict, and the orders in it are not read again."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}

    def process(self, record: Order[str, int]) -> None:
        self.totals[record.key] = total = self.totals.get(record.key, 0) + record.value
        self.context.forward(Order(record.key, total, record.timestamp_ms))


class TotalsInStore(Totals):
    """Right: the store is restored, and commits together with the positions in the input."""

    def process(self, record: Order[str, int]) -> None:
        totals = self.context.store(STORE.name)
        total = (totals.get(record.key) or 0) + record.value
        totals.put(record.key, total)
        self.context.forward(Order(record.key, total, record.timestamp_ms))


def build(processor: type[Totals]) -> Topology:
    """Orders in, totals out; each process of the application builds its own."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=int)
    orders.process(processor, stores=[STORE]).to("totals", key=str, value=int)
    return builder.build()


def check(simulated: Simulated, processor: type[Totals]) -> None:
    """Compare runs with crashes of the application to a run without crashes."""
    inputs, outputs = {"orders": ORDERS}, {"totals": table(key=str, value=int)}
    faults = [crash(of=["application"])]
    simulated.run(lambda: build(processor), inputs=inputs, outputs=outputs, faults=faults)


def test_totals_survive_crashes(simulated: Simulated) -> None:
    check(simulated, TotalsInStore)


def main() -> str:
    """The correct pipeline passes; returns the report about the wrong one."""
    check(Simulated(), TotalsInStore)
    try:
        check(Simulated(), TotalsInDict)
    except DifferentResult as difference:
        return str(difference)
    return ""


if __name__ == "__main__":
    print(main())
