"""The Java consumer notices that a crash cost the end of a log, and reads what took its place."""

import os
import select
import subprocess
from pathlib import Path

import pytest

from broker.client import admin
from broker.client.api import NewTopic
from tests.support.apache_kafka import KafkaRelease, java_command
from tests.support.kafka_for_all import SETTINGS
from tests.support.lost_tail import TOPIC, check
from tests.support.millstream_broker import MillstreamBroker

pytestmark = [pytest.mark.slow, pytest.mark.peer]

SOURCE = Path(__file__).parents[1] / "support" / "java" / "TailReader.java"


def test_the_java_client_reads_what_took_the_place_of_a_lost_tail(
    apache_kafka: KafkaRelease, tmp_path: Path
) -> None:
    class_path = apache_kafka.compile(SOURCE)
    with MillstreamBroker(tmp_path, settings=SETTINGS) as broker:
        with admin(broker.bootstrap) as cluster:
            cluster.create_topics([NewTopic(TOPIC, 1)]).all()
        command = java_command(class_path, "TailReader", broker.bootstrap, TOPIC)
        reader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            assert reader.stdout is not None
            lines = reader.stdout.fileno()
            rest = b""

            def poll() -> list[bytes]:
                nonlocal rest
                assert reader.poll() is None, "the reader has ended"
                if not select.select([lines], [], [], 0.1)[0]:
                    return []
                rest += os.read(lines, 65_536)
                *found, rest = rest.split(b"\n")
                return found

            check(broker, broker.data_dir, poll)
        finally:
            reader.kill()
            reader.wait()
            assert reader.stdout is not None
            reader.stdout.close()
