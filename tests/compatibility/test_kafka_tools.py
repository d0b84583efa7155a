"""The tools of the Apache Kafka release, unchanged, against the broker and the files it writes."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compatibility.conftest import Target
from tests.support.apache_kafka import KafkaRelease, ToolFailed
from tests.support.peer import wait_until
from tests.support.tool_session import ToolSession

pytestmark = [pytest.mark.slow, pytest.mark.peer]

Unique = Callable[[str], str]
Tool = Callable[..., str]


@pytest.fixture(scope="module")
def session(apache_kafka: KafkaRelease) -> Iterator[ToolSession]:
    with ToolSession(apache_kafka) as session:
        yield session


@pytest.fixture(scope="module")
def tool(session: ToolSession, bootstrap: str) -> Tool:
    """Runs a tool on the broker and returns what it printed."""

    def run(program: str, *args: str) -> str:
        return session.run(program, "--bootstrap-server", bootstrap, *args)

    return run


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def filled(admin: AdminClient, bootstrap: str, unique: Unique) -> str:
    """A topic of two partitions with ten records in each."""
    name = unique("filled")
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(60)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(20):
        producer.produce(name, value=f"{number}", partition=number % 2)
    assert producer.flush(30) == 0
    return name


def rows(printed: str) -> list[list[str]]:
    """The words of each line of a printed table."""
    return [line.split() for line in printed.splitlines() if line.strip()]


def test_topics_are_created_described_altered_and_deleted(tool: Tool, unique: Unique) -> None:
    name = unique("managed")
    options = ("--partitions", "2", "--replication-factor", "1", "--config", "retention.ms=5000")
    assert f"Created topic {name}." in tool("kafka-topics", "--create", "--topic", name, *options)
    with pytest.raises(ToolFailed, match="already exists"):
        tool("kafka-topics", "--create", "--topic", name)
    tool("kafka-topics", "--alter", "--topic", name, "--partitions", "3")
    described = tool("kafka-topics", "--describe", "--topic", name)
    assert "PartitionCount: 3" in described
    assert "ReplicationFactor: 1" in described
    assert "retention.ms=5000" in described
    assert len(re.findall(r"Leader: \d+\tReplicas: \d+\tIsr: \d+", described)) == 3
    tool("kafka-topics", "--delete", "--topic", name)
    assert name not in tool("kafka-topics", "--list").split()


def test_settings_are_altered_and_described(tool: Tool, filled: str) -> None:
    entity = ("--entity-type", "topics", "--entity-name", filled)
    tool("kafka-configs", *entity, "--alter", "--add-config", "max.message.bytes=2000")
    changed = tool("kafka-configs", *entity, "--describe")
    assert "max.message.bytes=2000 sensitive=false" in changed
    assert "DYNAMIC_TOPIC_CONFIG:max.message.bytes=2000" in changed
    tool("kafka-configs", *entity, "--alter", "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in tool("kafka-configs", *entity, "--describe")
    everything = tool("kafka-configs", *entity, "--describe", "--all")
    assert "cleanup.policy=delete" in everything
    with pytest.raises(ToolFailed, match=r"[Uu]nknown topic config|InvalidConfiguration"):
        tool("kafka-configs", *entity, "--alter", "--add-config", "no.such.setting=1")
    broker = ("--entity-type", "brokers", "--all", "--describe", "--entity-name")
    (node,) = re.findall(r"\(id: (\d+) ", tool("kafka-broker-api-versions"))
    assert "num.partitions=1 " in tool("kafka-configs", *broker, node)


def test_groups_are_listed_described_reset_and_deleted(
    tool: Tool, bootstrap: str, filled: str, unique: Unique
) -> None:
    group = unique("group")
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    member = Consumer({**settings, "auto.offset.reset": "earliest"})
    member.subscribe([filled])
    wait_until(lambda: bool(member.consume(20, 0.1)), "the first record")
    positions = [TopicPartition(filled, each, 4) for each in range(2)]
    member.commit(offsets=positions, asynchronous=False)
    assert group in tool("kafka-consumer-groups", "--list").split()
    live = rows(tool("kafka-consumer-groups", "--describe", "--group", group))
    assert sorted(row[:6] for row in live[1:]) == [
        [group, filled, "0", "4", "10", "6"],
        [group, filled, "1", "4", "10", "6"],
    ]
    assert {row[7] for row in live[1:]} == {"/127.0.0.1"}
    state = tool("kafka-consumer-groups", "--describe", "--state", "--group", group)
    assert rows(state)[1][-2:] == ["Stable", "1"]
    members = tool(
        "kafka-consumer-groups", "--describe", "--members", "--verbose", "--group", group
    )
    assert re.search(rf"{filled}[:(]0,1", members)
    member.close()
    reset = ("--reset-offsets", "--group", group, "--topic", filled, "--to-earliest", "--execute")
    assert sorted(rows(tool("kafka-consumer-groups", *reset))[1:]) == [
        [group, filled, "0", "0"],
        [group, filled, "1", "0"],
    ]
    tool("kafka-consumer-groups", "--delete", "--group", group)
    assert group not in tool("kafka-consumer-groups", "--list").split()


def test_offsets_are_got_and_records_deleted(tool: Tool, filled: str, tmp_path: Path) -> None:
    latest = tool("kafka-get-offsets", "--topic", filled, "--time", "latest")
    assert sorted(latest.split()) == [f"{filled}:0:10", f"{filled}:1:10"]
    plan = tmp_path / "plan.json"
    cut = {"topic": filled, "partition": 1, "offset": 6}
    plan.write_text(json.dumps({"partitions": [cut], "version": 1}))
    printed = tool("kafka-delete-records", "--offset-json-file", str(plan))
    assert f"partition: {filled}-1\tlow_watermark: 6" in printed
    earliest = tool("kafka-get-offsets", "--topic", filled, "--time", "earliest")
    assert sorted(earliest.split()) == [f"{filled}:0:0", f"{filled}:1:6"]


def test_log_folders_are_described(tool: Tool, target: Target, filled: str) -> None:
    printed = tool("kafka-log-dirs", "--describe", "--topic-list", filled)
    (broker,) = json.loads(printed.splitlines()[-1])["brokers"]
    (folder,) = broker["logDirs"]
    assert folder["logDir"] == str(target.data_dir)
    sizes = {each["partition"]: each["size"] for each in folder["partitions"]}
    stored = {
        name: sum(file.stat().st_size for file in (target.data_dir / name).glob("*.log"))
        for name in (f"{filled}-0", f"{filled}-1")
    }
    assert sizes == stored


def test_an_open_transaction_is_found_and_aborted(
    tool: Tool, bootstrap: str, filled: str, unique: Unique
) -> None:
    name = unique("open")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(filled, value="pending", partition=0)
    producer.flush(30)
    listed = {row[0]: row[1:] for row in rows(tool("kafka-transactions", "list"))}
    node, producer_id, state = listed[name]
    assert state == "Ongoing"
    described = rows(tool("kafka-transactions", "describe", "--transactional-id", name))
    assert described[1][1:3] == [name, producer_id]
    assert described[1][-1] == f"{filled}-0"
    partition = ("--topic", filled, "--partition", "0")
    (writer,) = rows(tool("kafka-transactions", "describe-producers", *partition))[1:]
    assert (writer[0], writer[-1]) == (producer_id, "10")
    tool("kafka-transactions", "abort", *partition, "--start-offset", "10")
    (writer,) = rows(tool("kafka-transactions", "describe-producers", *partition))[1:]
    assert (node.isdigit(), writer[-1]) == (True, "None")


def test_the_verifiable_consumer_gets_what_the_verifiable_producer_sent(
    apache_kafka: KafkaRelease, tool: Tool, bootstrap: str, unique: Unique
) -> None:
    # These two do the last part of their work when their JVM ends, so each gets its own.
    def run(program: str, *args: str) -> str:
        return apache_kafka.run_tool(program, "--bootstrap-server", bootstrap, *args)

    topic = unique("verified")
    tool("kafka-topics", "--create", "--topic", topic, "--partitions", "2")
    sent = run("kafka-verifiable-producer", "--topic", topic, "--max-messages", "500")
    events = [json.loads(line) for line in sent.splitlines()]
    acknowledged = [each for each in events if each["name"] == "producer_send_success"]
    assert sorted(int(each["value"]) for each in acknowledged) == list(range(500))
    options = ("--reset-policy", "earliest", "--max-messages", "500", "--verbose")
    taken = run(
        "kafka-verifiable-consumer", "--topic", topic, "--group-id", unique("verified"), *options
    )
    events = [json.loads(line) for line in taken.splitlines()]
    consumed = [each for each in events if each["name"] == "record_data"]
    assert sorted(int(each["value"]) for each in consumed) == list(range(500))
    assert all(each["success"] for each in events if each["name"] == "offsets_committed")
