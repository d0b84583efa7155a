"""The records that all sides work on: orders by users, and a table of the users' profiles.

Record number i is the same whatever the count, so a slow peer gets the beginning of what the
others get, with the same number of records per key and window.
"""

import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from broker.client import admin, consumer, producer
from broker.client.api import NewTopic
from broker.client.cluster_admin import Admin
from broker.model import LATEST_TIMESTAMP, TopicPartition

PARTITIONS = 4
USERS = 100_000
WINDOW_MS = 60_000
RECORDS_PER_WINDOW = 100_000  # 1 M records cover ten minutes
PRICE_LIMIT = 50
SEED = 20_240
REGIONS = (b"north-america", b"south-america", b"europe-central", b"asia-pacific")
ORDER = (
    b'{"user":"%b","item":"item-%04d","price":%d.%02d,"quantity":%d,"region":"%b","order":"n-%09d"}'
)
COUNT = re.compile(rb'"count": ?(\d+)')
SPREAD = 7_368_787  # a prime: steps through all keys before one comes again

# Nothing may be deleted while it is measured, however old the records say they are.
KEPT = {"retention.ms": "-1", "retention.bytes": "-1"}

Row = tuple[bytes, bytes, int]


def begin_ms(records: int) -> int:
    """A full minute, so long ago that all records are in the past, and not much longer."""
    minutes = records // RECORDS_PER_WINDOW + 10
    return (int(time.time() * 1000) // WINDOW_MS - minutes) * WINDOW_MS


def orders(count: int, first_ms: int) -> Iterator[Row]:
    """Orders of random users, of 119 bytes or so, in the order of their times."""
    chance = random.Random(SEED)
    for number in range(count):
        user = b"user-%06d" % chance.randrange(USERS)
        yield user, _order(user, number, chance), _time(number, first_ms)


def orders_of_all(users: int, first_ms: int) -> Iterator[Row]:
    """One order of each of so many users."""
    chance = random.Random(SEED)
    for number in range(users):
        user = b"user-%08d" % (number * SPREAD % users)
        yield user, _order(user, number, chance), _time(number, first_ms)


def profiles(first_ms: int) -> Iterator[Row]:
    """A row of the table for each user, older than all orders."""
    for number in range(USERS):
        user = b"user-%06d" % number
        yield user, b'{"name":"name of %d","level":%d}' % (number, number % 7), first_ms - 1


def _time(number: int, first_ms: int) -> int:
    return first_ms + number * WINDOW_MS // RECORDS_PER_WINDOW


def _order(user: bytes, number: int, chance: random.Random) -> bytes:
    cents = chance.randrange(2 * PRICE_LIMIT * 100)
    return ORDER % (
        user,
        chance.randrange(10_000),
        cents // 100,
        cents % 100,
        1 + number % 9,
        REGIONS[number % 4],
        number,
    )


@dataclass(frozen=True, slots=True)
class Input:
    """A topic filled with records, and what comes out of it."""

    topic: str
    records: int
    filtered: int  # how many pass the filter
    counted: int  # the sum of all counts that tumbling windows give out, one per record


def fill(bootstrap: str, topic: str, rows: Iterator[Row]) -> Input:
    """Make a topic and write all rows into it."""
    create(bootstrap, topic)
    return write(bootstrap, topic, rows)


def write(bootstrap: str, topic: str, rows: Iterator[Row]) -> Input:
    """Write all rows into a topic that is there."""
    filtered = 0
    counts: Counter[tuple[bytes, int]] = Counter()
    with producer(bootstrap, linger_ms=20, batch_size=65_536) as out:
        for key, value, timestamp_ms in rows:
            out.send(topic, value, key=key, timestamp_ms=timestamp_ms)
            counts[key, timestamp_ms // WINDOW_MS] += 1
            filtered += _passes(value)
    counted = sum(count * (count + 1) // 2 for count in counts.values())
    return Input(topic, counts.total(), filtered, counted)


def _passes(value: bytes) -> bool:
    at = value.find(b'"price":')
    return at >= 0 and float(value[at + 8 : value.index(b",", at)]) > PRICE_LIMIT


def create(bootstrap: str, topic: str) -> None:
    """Make a topic whose records stay."""
    with admin(bootstrap) as cluster:
        cluster.create_topics([NewTopic(topic, PARTITIONS, configs=KEPT)]).all()


def end_of(cluster: Admin, topic: str) -> int:
    """How many records were ever written to a topic."""
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    found = cluster.list_offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP)).all()
    return sum(place.offset for place in found.values())


def counted_in(bootstrap: str, topic: str, records: int) -> int:
    """The sum of the counts in a topic of results, of any side."""
    seen = total = 0
    with consumer(bootstrap, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        while seen < records:
            found = reader.poll(timeout_ms=1000, max_records=10_000)
            seen += len(found)
            for record in found:
                count = COUNT.search(record.value or b"")
                total += int(count[1]) if count else 0
    return total


def committed_of(cluster: Admin, group_id: str, topic: str) -> int:
    """How many records of a topic a group has done with."""
    found = cluster.list_group_offsets(group_id).all()
    return sum(place.offset for tp, place in found.items() if tp.topic == topic)
