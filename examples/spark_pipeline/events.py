"""The input events of the pipeline: the same for the same seed, number and day.

A fixed number of customers is active at a time; they view pages and order until others replace
them. One event in ten has a timestamp up to two seconds before its neighbours, and one view in 200
several minutes: it is too late for its session.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

import orjson

from broker.client import NewTopic, admin, producer

PARTITIONS = 4
TOPICS = ("orders", "views", "customers", "shops")
STEP_MS = 10
CUSTOMERS = 2_000
PRESENT = 200  # customers at a time
SHOPS = 50
CITIES = ("Ghent", "Porto", "Turku", "Graz", "Lille")
COUNTRIES = ("BE", "PT", "FI", "AT", "FR")
ITEMS = ("flour", "bran", "oats", "rye", "spelt", "millet")


class Event(NamedTuple):
    """A record of a topic."""

    topic: str
    key: str
    value: dict[str, object]
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class EventGenerator:
    """Generates all records from the number of events, a seed and a day."""

    events: int
    seed: int
    day: date

    @property
    def first_ms(self) -> int:
        """The time of the first event."""
        return int(datetime.combine(self.day, time(0), UTC).timestamp() * 1000)

    def rows_of_tables(self) -> Iterator[Event]:
        """The records of the tables, all older than the events."""
        before_ms = self.first_ms - 1_000_000
        for number in range(SHOPS):
            row: dict[str, object] = {"CITY": CITIES[number % len(CITIES)], "FEE": 10 + number}
            yield Event("shops", shop(number), row, before_ms)
        for number in range(CUSTOMERS):
            # Each level changes once before the first event: the table has a history.
            for level in (0, 1 + number % 5):
                row = {"NAME": f"Customer {number}", "COUNTRY": COUNTRIES[number % 5]}
                yield Event("customers", customer(number), row | {"LEVEL": level}, before_ms)

    def orders_and_views(self) -> Iterator[Event]:
        """Orders and views, in the order in which they are written."""
        chance = random.Random(self.seed)
        present = [chance.randrange(CUSTOMERS) for _ in range(PRESENT)]
        for number in range(self.events):
            place = chance.randrange(len(present))
            if chance.random() < 0.05:
                present[place] = chance.randrange(CUSTOMERS)
            who = customer(present[place])
            moment_ms = self.first_ms + number * STEP_MS
            if chance.random() < 0.1:
                moment_ms -= chance.randrange(2_000)
            if chance.random() < 0.4:
                yield Event("orders", who, _order(number, chance), moment_ms)
                continue
            if chance.random() < 0.005:
                moment_ms -= 300_000 + chance.randrange(300_000)
            yield Event("views", who, _view(chance), moment_ms)


def _order(number: int, chance: random.Random) -> dict[str, object]:
    return {
        "ORDER_ID": number,
        "SHOP": shop(chance.randrange(SHOPS)),
        "ITEM": chance.choice(ITEMS),
        "CENTS": 100 + chance.randrange(9_900),
    }


def _view(chance: random.Random) -> dict[str, object]:
    return {"PAGE": f"/{chance.choice(ITEMS)}", "STAY": 1 + chance.randrange(30)}


def customer(number: int) -> str:
    """The key of a customer."""
    return f"customer-{number:06}"


def shop(number: int) -> str:
    """The key of a shop."""
    return f"shop-{number:02}"


def yesterday() -> date:
    """Yesterday: recent enough for the retention of any cluster."""
    return datetime.now(UTC).date() - timedelta(days=1)


def write_events(bootstrap: str, generator: EventGenerator) -> None:
    """Create the topics and write all records, those of the tables first."""
    with admin(bootstrap) as administration:
        new = [NewTopic(name, partitions=PARTITIONS) for name in TOPICS]
        administration.create_topics(new).all()
    for records in (generator.rows_of_tables(), generator.orders_and_views()):
        with producer(bootstrap, linger_ms=20, batch_size=65_536) as out:
            for topic, key, value, moment_ms in records:
                out.send(topic, orjson.dumps(value), key=key.encode(), timestamp_ms=moment_ms)
