"""Fraud detection with the Processor API: a state store, and a punctuator that cleans it."""

from examples.playing import Input, Results, Row, play
from streams import (
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StoreKind,
    StoreSpec,
    StreamsBuilder,
    Topology,
)

MINUTE_MS = 60_000
CARDS = (("1111", "FR"), ("2222", "DE"), ("1111", "US"), ("2222", "DE"), ("1111", "JP"))
PAYMENTS = [
    Input("payments", card, {"country": country}, number * 20_000)
    for number, (card, country) in enumerate(CARDS)
]


class FraudDetector(Processor[str, Row, str, Row]):
    """Raises an alarm when a card is in three countries within two minutes."""

    def init(self, context: ProcessorContext[str, Row]) -> None:
        super().init(context)
        self.recent = context.store("recent")  # card -> [[time, country], ...]
        context.schedule(MINUTE_MS, PunctuationType.STREAM_TIME, self.forget)

    def process(self, record: Record[str, Row]) -> None:
        payments = self.recent.get(record.key) or []
        payments.append([record.timestamp_ms, record.value["country"]])
        self.recent.put(record.key, payments)
        if len(countries := sorted({country for _, country in payments})) >= 3:
            self.context.forward(Record(record.key, {"countries": countries}, record.timestamp_ms))

    def forget(self, now_ms: int) -> None:
        """Remove payments that are older than two minutes."""
        for card, payments in list(self.recent.all()):
            recent = [payment for payment in payments if payment[0] > now_ms - 2 * MINUTE_MS]
            self.recent.put(card, recent or None)


def build() -> Topology:
    """Payments in, alarms out."""
    builder = StreamsBuilder().add_state_store(StoreSpec("recent", StoreKind.KEY_VALUE))
    payments = builder.stream("payments", key=str, value=dict)
    payments.process(FraudDetector, stores=["recent"]).to("alarms", key=str, value=dict)
    return builder.build()


def main() -> Results:
    """A payment every twenty seconds; one card travels too fast."""
    return play(build(), PAYMENTS, ["alarms"], until=lambda found: len(found) == 1)


if __name__ == "__main__":
    print("\n".join(f"card {card}: {alarm}" for card, alarm in main()))
