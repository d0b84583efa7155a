"""Java clients of past years, unchanged, against the broker: the older versions of the protocol."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.apache_kafka import java_command, run_java
from tests.support.maven import Artifact, copy_jars
from tests.support.peer import PeerMissing, cache_folder, fill_folder_once, skip_without_peer

pytestmark = [pytest.mark.slow, pytest.mark.peer]

Unique = Callable[[str], str]

# The oldest that a broker of today serves, and one from the middle.
OLDEST, OTHERS = "2.1.1", ("2.8.2",)


def fetch_old_tools(version: str) -> Path:
    """The folder of jars of an old release: its client and the two verifiable programs."""
    tools = Artifact("org.apache.kafka", "kafka-tools", version)
    with cache_folder("apache-kafka-old") as cache:
        return fill_folder_once(cache / version, partial(copy_jars, [tools]))


@pytest.mark.parametrize(
    "version", [OLDEST, *(pytest.param(v, marks=pytest.mark.long) for v in OTHERS)]
)
def test_an_old_client_gets_what_an_old_client_sent(
    bootstrap: str, unique: Unique, version: str
) -> None:
    try:
        jars = fetch_old_tools(version)
    except PeerMissing as missing:
        skip_without_peer(f"no Java client {version}: {missing}")
    topic = unique("old")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(60)

    def run(program: str, *args: str) -> list[dict[str, object]]:
        main_class = f"org.apache.kafka.tools.{program}"
        command = java_command(f"{jars}/*", main_class, "--broker-list", bootstrap, *args)
        return [json.loads(line) for line in run_java(command).splitlines()]

    sent = run("VerifiableProducer", "--topic", topic, "--max-messages", "200")
    acknowledged = [each["value"] for each in sent if each["name"] == "producer_send_success"]
    options = ("--reset-policy", "earliest", "--max-messages", "200", "--verbose")
    taken = run("VerifiableConsumer", "--topic", topic, "--group-id", unique("old"), *options)
    consumed = [each["value"] for each in taken if each["name"] == "record_data"]
    assert sorted(map(str, acknowledged)) == sorted(str(number) for number in range(200))
    assert sorted(map(str, consumed)) == sorted(map(str, acknowledged))
    assert [each["success"] for each in taken if each["name"] == "offsets_committed"]
