"""The records that all sides process: orders by users, and a table of user profiles.

Record number i does not depend on the count, so a slow peer gets the first records of the
others, with the same number of records per key and window.
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
SPREAD = 7_368_787  # a prime: visits all keys before any of them again

# No record may be deleted during the run, whatever its timestamp.
NO_RETENTION = {"retention.ms": "-1", "retention.bytes": "-1"}

Row = tuple[bytes, bytes, int]


def begin_ms(records: int) -> int:
    """The latest full minute for which all records are in the past."""
    minutes = records // RECORDS_PER_WINDOW + 10
    return (int(time.time() * 1000) // WINDOW_MS - minutes) * WINDOW_MS


def orders(count: int, first_ms: int) -> Iterator[Row]:
    """Orders of random users, about 119 bytes each, in timestamp order."""
    chance = random.Random(SEED)
    for number in range(count):
        user = b"user-%06d" % chance.randrange(USERS)
        yield user, _order(user, number, chance), _time(number, first_ms)


def orders_of_all(users: int, first_ms: int) -> Iterator[Row]:
    """One order of each of `users` users."""
    chance = random.Random(SEED)
    for number in range(users):
        user = b"user-%08d" % (number * SPREAD % users)
        yield user, _order(user, number, chance), _time(number, first_ms)


def profiles(first_ms: int) -> Iterator[Row]:
    """One table row per user, older than all orders."""
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
    """A filled topic, and the expected results."""

    topic: str
    records: int
    filtered: int  # records that pass the filter
    counted: int  # the sum of all counts that tumbling windows emit, one per record


def fill(bootstrap: str, topic: str, rows: Iterator[Row]) -> Input:
    """Create a topic and write all rows to it."""
    create(bootstrap, topic)
    return write(bootstrap, topic, rows)


def write(bootstrap: str, topic: str, rows: Iterator[Row]) -> Input:
    """Write all rows to an existing topic."""
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
    """Create a topic without retention."""
    with admin(bootstrap) as cluster:
        cluster.create_topics([NewTopic(topic, PARTITIONS, configs=NO_RETENTION)]).all()


def end_of(cluster: Admin, topic: str) -> int:
    """The sum of the end offsets of a topic: the number of records ever written."""
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    ends = cluster.list_offsets(dict.fromkeys(partitions, LATEST_TIMESTAMP)).all()
    return sum(end.offset for end in ends.values())


def counted_in(bootstrap: str, topic: str, records: int) -> int:
    """The sum of the counts in a result topic of any side."""
    seen = total = 0
    with consumer(bootstrap, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        while seen < records:
            polled = reader.poll(timeout_ms=1000, max_records=10_000)
            seen += len(polled)
            for record in polled:
                count = COUNT.search(record.value or b"")
                total += int(count[1]) if count else 0
    return total


def committed_of(cluster: Admin, group_id: str, topic: str) -> int:
    """The sum of the offsets that a group has committed for a topic."""
    committed = cluster.list_group_offsets(group_id).all()
    return sum(offset.offset for tp, offset in committed.items() if tp.topic == topic)
