"""Apache Kafka Streams from Maven: what it says of topologies, for tests that compare."""

import functools
from pathlib import Path

from tests.support.apache_kafka import VERSION, KafkaRelease
from tests.support.maven import Artifact, copy_jars
from tests.support.peer import PeerMissing, cache_folder, fill_folder_once, find_command


def fetch_kafka_streams() -> KafkaRelease:
    """The release of the library that tests compare with; downloaded at the first call."""
    fetched = _fetch_once()
    if isinstance(fetched, PeerMissing):
        raise PeerMissing(*fetched.args)
    return fetched


@functools.cache
def _fetch_once() -> KafkaRelease | PeerMissing:
    # The failure is kept too: a mirror that does not answer is asked once in a run.
    try:
        find_command("java")
        with cache_folder("kafka-streams-library") as cache:
            folder = fill_folder_once(cache / VERSION, functools.partial(_copy, VERSION))
            return KafkaRelease(VERSION, folder)
    except PeerMissing as missing:
        return missing


def _copy(version: str, folder: Path) -> None:
    copy_jars([Artifact("org.apache.kafka", "kafka-streams", version)], folder)
    # The logging backend must be of the same version as the interface that Kafka brought.
    (interface,) = folder.glob("slf4j-api-*.jar")
    logging_version = interface.stem.removeprefix("slf4j-api-")
    copy_jars([Artifact("org.slf4j", "slf4j-simple", logging_version)], folder)
