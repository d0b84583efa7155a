"""The results of a run, with counts and checksums to compare two runs.

A stream is the multiset of its rows: key, value and timestamp. A table is the last value of each
key, which includes the window of windowed tables; the number of updates may differ.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson

from broker import TopicPartition
from broker.client import ConsumerRecord, consumer

RESULTS = {  # topics of results, and whether they are tables
    "large_orders": False,
    "orders_with_shops": False,
    "shop_minutes": True,
    "visits": True,
    "views_before_orders": False,
    "spending": True,
    "accounts": True,
}
Content = Counter[bytes]  # rows with their counts


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of one topic."""

    name: str
    is_table: bool
    content: Content

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.content.total()

    @property
    def checksum(self) -> str:
        """A checksum that does not depend on the order of rows."""
        total = 0
        for row, times in self.content.items():
            total += times * int.from_bytes(hashlib.blake2b(row, digest_size=8).digest())
        return f"{total % (1 << 64):016x}"


def read_results(bootstrap: str) -> list[Result]:
    """All results, from committed records only."""
    return [
        Result(topic, is_table, _content(records(bootstrap, topic), is_table=is_table))
        for topic, is_table in RESULTS.items()
    ]


def records(bootstrap: str, topic: str) -> Iterator[ConsumerRecord]:
    """The committed records of a topic, up to its end."""
    with consumer(
        bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as reader:
        partitions = [TopicPartition(topic, number) for number in reader.partitions_for(topic)]
        ends = reader.end_offsets(partitions)
        reader.assign(partitions)
        while any(reader.position(tp) < end for tp, end in ends.items()):
            yield from reader.poll(timeout_ms=1_000, max_records=100_000)


def _content(records: Iterator[ConsumerRecord], *, is_table: bool) -> Content:
    if not is_table:
        return Counter(
            b"%b %b %d" % (record.key or b"", _sorted(record.value), record.timestamp_ms)
            for record in records
        )
    last: dict[bytes, bytes | None] = {}
    for record in records:
        last[record.key or b""] = record.value
    return Counter(
        b"%b %b" % (key, _sorted(value)) for key, value in last.items() if value is not None
    )


def _sorted(value: bytes | None) -> bytes:
    """JSON with sorted fields."""
    return orjson.dumps(orjson.loads(value or b"null"), option=orjson.OPT_SORT_KEYS)


def differences(ours: list[Result], theirs: list[Result]) -> Mapping[str, str]:
    """The differences by result, with a row that only one of them has."""
    described = {}
    for one, other in zip(ours, theirs, strict=True):
        more, less = one.content - other.content, other.content - one.content
        if more or less:
            row = next(iter(more or less))
            described[one.name] = (
                f"{more.total()} rows only in the first, {less.total()} only in the second, "
                f"such as {row!r}"
            )
    return described
