"""Unreadable batches, as written by an earlier broker or a broken disk."""

from pathlib import Path

import pytest
from crc32c import crc32c

from broker.batch.codec import check_records, encode_batch
from broker.broker import Broker
from broker.client import producer
from broker.handlers import produce
from broker.model import TopicPartition

CHECKED_FROM = 21  # what the CRC covers: from the attributes on
CRC_AT = 17
RECORDS_AT = 61


def write_poison_batch(broker: Broker, topic: str, count: int, *, valid_crc: bool = True) -> None:
    """Write a batch with invalid records to partition 0.

    With `valid_crc`, only decoding detects it; without, the checksum does, as after a disk error.
    """
    rows = [(b"k", b"%d" % number, (), 1_000) for number in range(count)]
    good = encode_batch(rows, compression="gzip")
    body = good[CHECKED_FROM:RECORDS_AT] + b"\x7f" * (len(good) - RECORDS_AT)
    checksum: int = crc32c(body)
    poison = good[:CRC_AT] + checksum.to_bytes(4, "big") + body
    facts = check_records(memoryview(good))
    with pytest.MonkeyPatch.context() as patched, producer(broker) as out:
        patched.setattr(produce, "check_records", lambda records: facts)
        out.send_batch(TopicPartition(topic, 0), poison).result()
    if not valid_crc:
        [segment] = Path(broker.config.data_directory, f"{topic}-0").glob("*.log")
        with segment.open("r+b") as file:
            file.seek(-1, 2)
            file.write(b"\x00")
