"""Batches that our codec writes, read by Kafka's own classes: every compression, every field."""

import re
from pathlib import Path

import pytest

from broker.batch.codec import control_batch, encode_batch
from broker.batch.compression import CODEC_NAMES
from broker.batch.records import Row
from broker.model import ProducerIdentity
from tests.support.apache_kafka import KafkaRelease

pytestmark = [pytest.mark.slow, pytest.mark.peer]

RECORDS = 40
# More than one block of snappy's and lz4's framings.
PADDING = "x" * 3000


def rows(codec: str) -> list[Row]:
    return [
        (b"%s-%d" % (codec.encode(), number), f"value {number} {PADDING}".encode(),
         (("name", b"header"), ("empty", b"")), 1_700_000_000_000 + number)
        for number in range(RECORDS)
    ]  # fmt: skip


def test_kafka_reads_every_compression(tmp_path: Path, apache_kafka: KafkaRelease) -> None:
    batches = [
        encode_batch(
            rows(codec),
            compression=codec,
            base_offset=number * RECORDS,
            leader_epoch=0,
            producer=ProducerIdentity(7, 2),
            base_sequence=number * RECORDS,
            transactional=True,
        )
        for number, codec in enumerate(CODEC_NAMES)
    ]
    marker = bytearray(
        control_batch(
            commit=True,
            producer=ProducerIdentity(7, 2),
            coordinator_epoch=3,
            timestamp_ms=1_700_000_000_000,
        )
    )
    marker[:8] = (len(CODEC_NAMES) * RECORDS).to_bytes(8, "big")
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(b"".join((*batches, marker)))
    text = apache_kafka.run_tool("kafka-dump-log", "--print-data-log", "--files", str(log))
    assert re.findall(r"compresscodec: (\w+)", text) == [*CODEC_NAMES, "none"]
    assert text.count("isvalid: true") == len(CODEC_NAMES) + 1
    assert text.count("producerId: 7 producerEpoch: 2") == len(CODEC_NAMES) + 1
    assert text.count("isTransactional: true") == len(CODEC_NAMES) + 1
    assert re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: (\d+)", text) == [("COMMIT", "3")]
    found = re.findall(r"\| offset: (\d+) .* key: (\S+) payload: value (\d+) (x+)", text)
    assert found == [
        (str(number * RECORDS + row), f"{codec}-{row}", str(row), PADDING)
        for number, codec in enumerate(CODEC_NAMES)
        for row in range(RECORDS)
    ]
    assert text.count("headerKeys: [name,empty]") == len(CODEC_NAMES) * RECORDS
