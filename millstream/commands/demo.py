"""`millstream demo`: an embedded broker, a producer and a consumer group, with their rates."""

import shutil
import tempfile
import threading
import time
from collections import Counter

import click

from broker import Broker
from broker.client import admin, consumer, producer
from broker.client.api import NewTopic
from millstream.commands.options import json_option
from millstream.output import Output

TOPIC = "orders"
PARTITIONS = 4
MEMBERS = 2
CUSTOMERS = tuple(f"customer-{number}".encode() for number in range(100))
LIMIT_SECONDS = 25


@click.command()
@click.option("--records", default=200_000, show_default=True, help="How many to produce.")
@json_option
def demo(records: int, output: Output) -> None:
    """Start a broker in this process, produce, consume with a group, print what happened."""
    folder = tempfile.mkdtemp(prefix="millstream-demo-")
    try:
        with Broker(data_directory=folder) as broker:
            output.progress_console.print(f"embedded broker started, data in {folder}")
            with admin(broker) as administration:
                administration.create_topics([NewTopic(TOPIC, partitions=PARTITIONS)]).all()
            produced = _produce(broker, records, output)
            members = _consume(broker, records, output)
        _report(output, records, produced, members)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _produce(broker: Broker, records: int, output: Output) -> float:
    started = time.perf_counter()
    with (
        output.progress(f"producing {records:,} records"),
        producer(broker, linger_ms=5, compression_type="lz4") as out,
    ):
        for number in range(records):
            key = CUSTOMERS[number % len(CUSTOMERS)]
            out.send(TOPIC, key=key, value=b'{"order": %d, "amount": %d}' % (number, number % 97))
        out.flush()
    return time.perf_counter() - started


class _Member(threading.Thread):
    """One consumer of the group: counts records by partition until the group has all."""

    def __init__(self, broker: Broker, name: str, left: "_Countdown") -> None:
        super().__init__(name=name)
        self._broker = broker
        self._left = left
        self.by_partition: Counter[int] = Counter()

    def run(self) -> None:
        """Join the group, read, commit, leave."""
        with consumer(
            self._broker, group_id="billing", client_id=self.name, auto_offset_reset="earliest"
        ) as orders:
            orders.subscribe([TOPIC])
            while not self._left.is_zero():
                found = orders.poll(timeout_ms=100, max_records=5000)
                self.by_partition.update(record.partition for record in found)
                self._left.take(len(found))
            orders.commit()


class _Countdown:
    """Records nobody has seen yet; ends by itself when the demo takes too long."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._deadline = time.monotonic() + LIMIT_SECONDS
        self.first_at: float | None = None
        self.last_at = 0.0

    def take(self, count: int) -> None:
        """Some were seen."""
        if not count:
            return
        with self._lock:
            self.first_at = self.first_at or time.perf_counter()
            self.last_at = time.perf_counter()
            self._count -= count

    def is_zero(self) -> bool:
        """Whether all were seen."""
        if time.monotonic() > self._deadline:
            raise TimeoutError(f"{self._count} records were not consumed in {LIMIT_SECONDS} s")
        return self._count <= 0


def _consume(broker: Broker, records: int, output: Output) -> tuple[list[_Member], float]:
    left = _Countdown(records)
    members = [_Member(broker, f"member-{number + 1}", left) for number in range(MEMBERS)]
    with output.progress(f"{MEMBERS} members of group billing consume"):
        for member in members:
            member.start()
        for member in members:
            member.join()
    return members, left.last_at - (left.first_at or left.last_at)


def _report(
    output: Output, records: int, produce_seconds: float, consumed: tuple[list[_Member], float]
) -> None:
    members, consume_seconds = consumed
    output.rows(
        [
            {
                "member": member.name,
                "partitions": sorted(member.by_partition),
                "records": sum(member.by_partition.values()),
            }
            for member in members
        ],
        title='group "billing"',
    )
    seen = sum(sum(member.by_partition.values()) for member in members)
    if seen != records:
        raise click.ClickException(f"produced {records} records but consumed {seen}")
    output.done(
        f"{records:,} records produced at {records / produce_seconds:,.0f}/s, "
        f"consumed at {records / max(consume_seconds, 1e-9):,.0f}/s",
        records=records,
        produced_per_second=round(records / produce_seconds),
        consumed_per_second=round(records / max(consume_seconds, 1e-9)),
    )
