"""The files that the broker writes, read by Kafka's own DumpLogSegments."""

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compatibility.conftest import Target
from tests.support.apache_kafka import KafkaRelease
from tests.support.tool_session import ToolSession

pytestmark = [pytest.mark.slow, pytest.mark.peer]


@pytest.fixture(scope="module")
def session(apache_kafka: KafkaRelease) -> Iterator[ToolSession]:
    with ToolSession(apache_kafka) as session:
        yield session


@pytest.fixture(scope="module")
def written(target: Target) -> str:
    """A topic with two segments, all compressions and six transactions; the broker is stopped."""
    name = "written"
    admin = AdminClient({"bootstrap.servers": target.bootstrap})
    settings = {"segment.bytes": "1048576", "index.interval.bytes": "100"}
    admin.create_topics([NewTopic(name, 1, 1, config=settings)])[name].result(60)
    for number, compression in enumerate(("none", "gzip", "snappy", "lz4", "zstd", "none")):
        write_transaction(target.bootstrap, name, number, compression)
    target.stop()
    return name


def write_transaction(bootstrap: str, topic: str, number: int, compression: str) -> None:
    """Writes 40 records of 8 kB and an offset; even numbers commit, odd ones abort."""
    settings = {"bootstrap.servers": bootstrap, "compression.type": compression}
    producer = Producer(
        {**settings, "transactional.id": f"writer-{number}", "batch.num.messages": 20}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for each in range(40):
        # Compression makes it smaller, but not by much: the segment is to be full in the end.
        noise = random.Random(40 * number + each).randbytes(7000)
        producer.produce(topic, value=noise + bytes(1000), partition=0)
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader-of-written"})
    producer.send_offsets_to_transaction(
        [TopicPartition(topic, 0, number)], reader.consumer_group_metadata(), 30
    )
    reader.close()
    producer.flush(30)
    if number % 2 == 0:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def dump(session: ToolSession, files: Sequence[Path], *options: str) -> list[str]:
    names = ",".join(str(file) for file in files)
    return session.run("kafka-dump-log", *options, "--files", names).splitlines()


def test_every_stored_batch_is_valid(session: ToolSession, target: Target, written: str) -> None:
    logs = sorted((target.data_dir / f"{written}-0").glob("*.log"))
    assert len(logs) > 1
    lines = dump(session, logs, "--deep-iteration")
    batches = [line for line in lines if line.startswith("baseOffset")]
    assert all(line.endswith("isvalid: true") for line in batches)
    assert not [line for line in lines if "invalid bytes" in line or "Mismatch" in line]
    records = [line for line in lines if line.startswith("| offset")]
    assert len(records) == 6 * 41
    markers = re.findall(r"endTxnMarker: (\w+)", "\n".join(records))
    assert markers == ["COMMIT", "ABORT"] * 3
    codecs = re.findall(r"compresscodec: (\w+)", "\n".join(batches))
    assert set(codecs) == {"none", "gzip", "snappy", "lz4", "zstd"}


def test_the_indexes_agree_with_the_log(session: ToolSession, target: Target, written: str) -> None:
    folder = target.data_dir / f"{written}-0"
    indexes = sorted([*folder.glob("*.index"), *folder.glob("*.timeindex")])
    checked = dump(session, indexes, "--index-sanity-check")
    assert sum("passed sanity check" in line for line in checked) == len(indexes)
    # Without the option each entry is compared with the log; a wrong one is named as a mismatch.
    lines = dump(session, indexes)
    assert not [line for line in lines if re.search("[Mm]ismatch|Non-consec|not found", line)]
    assert sum(line.startswith("offset: ") for line in lines) >= 10
    assert sum(line.startswith("timestamp: ") for line in lines) >= 6


def test_aborted_transactions_and_producers_are_on_disk(
    session: ToolSession, target: Target, written: str
) -> None:
    folder = target.data_dir / f"{written}-0"
    aborted = dump(session, sorted(folder.glob("*.txnindex")))
    found = re.findall(r"firstOffset: (\d+) lastOffset: (\d+)", "\n".join(aborted))
    assert found == [("41", "81"), ("123", "163"), ("205", "245")]
    snapshots = sorted(folder.glob("*.snapshot"))
    producers = dump(session, snapshots[-1:])
    assert sum(line.startswith("producerId: ") for line in producers) == 6
    assert all("currentTxnFirstOffset: OptionalLong.empty" in line for line in producers[1:])


def test_the_records_of_the_coordinators_are_kafkas(
    session: ToolSession, target: Target, written: str
) -> None:
    def payloads(topic: str, option: str) -> str:
        logs = [log for log in target.data_dir.glob(f"{topic}-*/*.log") if log.stat().st_size]
        return "\n".join(dump(session, sorted(logs), option))

    offsets = payloads("__consumer_offsets", "--offsets-decoder")
    key = re.escape(f'{{"group":"reader-of-written","topic":"{written}","partition":0}}')
    committed = re.findall(rf'{key}.*?"offset":(\d+)', offsets)
    assert committed == ["0", "1", "2", "3", "4", "5"]
    transactions = payloads("__transaction_state", "--transaction-log-decoder")
    final = dict(
        re.findall(r'"transactionalId":"(writer-\d)".*?"transactionStatus":(\d)', transactions)
    )
    # 4 is a complete commit, 5 a complete abort; the last record of each id stays in the dict.
    assert final == {f"writer-{number}": "45"[number % 2] for number in range(6)}
