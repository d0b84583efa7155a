"""A log that loses its end in a crash, so that new records reuse the offsets."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from broker.client import producer
from tests.support.millstream_broker import MillstreamBroker

DEADLINE_S = 60
TOPIC = "numbers"

Poll = Callable[[], list[bytes]]


def send(bootstrap: str, values: list[bytes]) -> None:
    """Send each value in its own batch."""
    with producer(bootstrap, linger_ms=0) as out:
        for value in values:
            out.send(TOPIC, value, partition=0).result(DEADLINE_S * 1000)


def read_until(poll: Poll, last: bytes) -> list[bytes]:
    """Read up to a value."""
    seen: list[bytes] = []
    deadline = time.monotonic() + DEADLINE_S
    while last not in seen:
        assert time.monotonic() < deadline, seen
        seen += poll()
    return seen


def lose_tail(log: Path, batches: int) -> None:
    """Truncate a log after `batches` batches, as a power failure may do without fsync."""
    data = log.read_bytes()
    position = 0
    for _ in range(batches):
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    os.truncate(log, position)


def check(broker: MillstreamBroker, data_directory: Path, poll: Poll) -> None:
    """Read ten records; a crash loses five of them; all of the next ten must be read."""
    old = [b"old %d" % number for number in range(10)]
    new = [b"new %d" % number for number in range(10)]
    send(broker.bootstrap, old)
    assert read_until(poll, old[-1]) == old
    broker.kill()
    lose_tail(data_directory / f"{TOPIC}-0" / f"{0:020d}.log", 5)
    broker.start()
    send(broker.bootstrap, new)
    found = read_until(poll, new[-1])
    assert found == new, found
