"""kcat (librdkafka 2.0 of Debian), unchanged, against the broker."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compatibility.conftest import Target
from tests.support.kcat import KcatReader, find_kcat, run_kcat
from tests.support.peer import PeerMissing, skip_without_peer, wait_until
from tests.support.stored_batches import stored_compression

pytestmark = [pytest.mark.slow, pytest.mark.peer]

GROUP_TIMES = ("-X", "heartbeat.interval.ms=200", "-X", "session.timeout.ms=10000")

Unique = Callable[[str], str]


@pytest.fixture(scope="module", autouse=True)
def kcat() -> None:
    try:
        find_kcat()
    except PeerMissing as missing:
        skip_without_peer(f"no kcat: {missing}")


@pytest.fixture
def topic(bootstrap: str, unique: Unique) -> str:
    """A topic of four partitions; kcat itself cannot make one."""
    name = unique("kcat")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 4, 1)])[name].result(60)
    return name


@pytest.fixture
def start_reader(bootstrap: str, tmp_path: Path) -> Iterator[Callable[..., KcatReader]]:
    """Starts kcats that consume in the background and ends those that are left."""
    readers: list[KcatReader] = []

    def start(*args: str) -> KcatReader:
        readers.append(KcatReader(tmp_path / f"reader-{len(readers)}", bootstrap, *args))
        return readers[-1]

    yield start
    for reader in readers:
        reader.close()


def send(bootstrap: str, topic: str, prefix: str) -> list[str]:
    """Sends ten lines to each of the four partitions and returns all of them."""
    lines = [f"{prefix}-{number}" for number in range(40)]
    for partition in range(4):
        run_kcat(bootstrap, "-P", "-t", topic, "-p", str(partition), lines=lines[partition::4])
    return sorted(lines)


def read(bootstrap: str, topic: str, *args: str) -> list[dict[str, object]]:
    """All records to the present end, as kcat describes them."""
    return [json.loads(line) for line in run_kcat(bootstrap, "-C", "-t", topic, "-e", "-J", *args)]


def test_metadata_is_listed(bootstrap: str, topic: str) -> None:
    (answer,) = run_kcat(bootstrap, "-L", "-J", "-t", topic)
    metadata = json.loads(answer)
    assert [broker["name"] for broker in metadata["brokers"]] == [bootstrap]
    (described,) = metadata["topics"]
    assert [each["partition"] for each in described["partitions"]] == [0, 1, 2, 3]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_whole_under_every_compression(
    target: Target, topic: str, compression: str
) -> None:
    lines = [f"key-{number}:value-{number}-{'abc' * 50}" for number in range(100)]
    run_kcat(
        target.bootstrap,
        *("-P", "-t", topic, "-p", "1", "-K:", "-z", compression, "-H", "colour=red"),
        lines=lines,
    )
    records = read(target.bootstrap, topic, "-p", "1")
    assert [record["offset"] for record in records] == list(range(100))
    assert [f"{record['key']}:{record['payload']}" for record in records] == lines
    assert {str(record["headers"]) for record in records} == {"['colour', 'red']"}
    # An old librdkafka stops compressing, without a word, when it misreads the broker's versions.
    assert stored_compression(target.data_dir, topic, 1) == compression


def test_a_group_shares_partitions_as_members_come_and_go(
    bootstrap: str, topic: str, unique: Unique, start_reader: Callable[..., KcatReader]
) -> None:
    group = unique("group")
    arguments = ("-G", group, "-u", "-X", "auto.offset.reset=earliest", *GROUP_TIMES, topic)
    first = start_reader(*arguments)
    alone = send(bootstrap, topic, "alone")
    wait_until(lambda: sorted(first.lines()) == alone, "the first records")
    second = start_reader(*arguments)
    wait_until(lambda: "assigned: " in second.messages(), "the rebalance")
    shared = send(bootstrap, topic, "shared")
    wait_until(
        lambda: sorted(first.lines() + second.lines()) == sorted(alone + shared),
        "the records of both",
    )
    assert len(second.lines()) == 20
    second.close()
    again = send(bootstrap, topic, "again")
    wait_until(lambda: set(again) <= set(first.lines()), "the records after the second has left")
    assert sorted(first.lines() + second.lines()) == sorted(alone + shared + again)


def test_a_group_resumes_after_its_committed_offsets(
    bootstrap: str, topic: str, unique: Unique, start_reader: Callable[..., KcatReader]
) -> None:
    arguments = ("-G", unique("group"), "-u", "-X", "auto.offset.reset=earliest", topic)
    before = send(bootstrap, topic, "before")
    reader = start_reader(*arguments)
    wait_until(lambda: sorted(reader.lines()) == before, "the first records")
    reader.close()
    after = send(bootstrap, topic, "after")
    reader = start_reader(*arguments)
    wait_until(lambda: len(reader.lines()) >= 40, "the records after the restart")
    assert sorted(reader.lines()) == after


def test_an_idempotent_producer_keeps_order_and_count(bootstrap: str, topic: str) -> None:
    lines = [str(number) for number in range(200)]
    settings = ("-X", "enable.idempotence=true", "-X", "batch.num.messages=10")
    run_kcat(bootstrap, "-P", "-t", topic, "-p", "0", *settings, lines=lines)
    assert [record["payload"] for record in read(bootstrap, topic)] == lines


def test_a_transaction_is_committed_at_the_end_of_the_input(
    bootstrap: str, topic: str, unique: Unique
) -> None:
    settings = ("-X", f"transactional.id={unique('kcat')}")
    run_kcat(bootstrap, "-P", "-t", topic, "-p", "0", *settings, lines=["one", "two"])
    records = read(bootstrap, topic, "-X", "isolation.level=read_committed")
    assert [record["payload"] for record in records] == ["one", "two"]


def test_offsets_are_found_by_timestamp(bootstrap: str, topic: str) -> None:
    run_kcat(bootstrap, "-P", "-t", topic, "-p", "0", lines=["early"])
    run_kcat(bootstrap, "-P", "-t", topic, "-p", "0", lines=["late"])
    late = next(each for each in read(bootstrap, topic) if each["payload"] == "late")
    found = run_kcat(bootstrap, "-Q", "-t", f"{topic}:0:{late['ts']}")
    early = next(each for each in read(bootstrap, topic) if each["payload"] == "early")
    expected = 1 if early["ts"] != late["ts"] else 0
    assert found == [f"{topic} [0] offset {expected}"]
    seen = read(bootstrap, topic, "-p", "0", "-o", "-1")
    assert [record["payload"] for record in seen] == ["late"]
