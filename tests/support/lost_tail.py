"""A log that loses its end in a crash, so that other records get the offsets."""

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
    """Send values, each in a batch of its own."""
    with producer(bootstrap, linger_ms=0) as out:
        for value in values:
            out.send(TOPIC, value, partition=0).result(DEADLINE_S * 1000)


def read_until(poll: Poll, last: bytes) -> list[bytes]:
    """Read until a value has come."""
    seen: list[bytes] = []
    deadline = time.monotonic() + DEADLINE_S
    while last not in seen:
        assert time.monotonic() < deadline, seen
        seen += poll()
    return seen


def lose_tail(log: Path, batches: int) -> None:
    """Cut a log after so many batches, as a power cut may do with what was not fsynced."""
    data = log.read_bytes()
    position = 0
    for _ in range(batches):
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    os.truncate(log, position)


def check(broker: MillstreamBroker, data_directory: Path, poll: Poll) -> None:
    """Read ten records, of which a crash leaves five; the next ten must be seen, all of them."""
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
