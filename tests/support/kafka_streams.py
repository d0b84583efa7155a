"""Apache Kafka Streams from Maven, to compare topology descriptions with."""

import functools
from pathlib import Path

from tests.support.apache_kafka import VERSION, KafkaRelease
from tests.support.maven import Artifact, copy_jars
from tests.support.peer import PeerMissing, cache_folder, fill_folder_once, find_command


def fetch_kafka_streams() -> KafkaRelease:
    """The release that tests compare with; downloaded at the first call."""
    fetched = _fetch_once()
    if isinstance(fetched, PeerMissing):
        raise PeerMissing(*fetched.args)
    return fetched


@functools.cache
def _fetch_once() -> KafkaRelease | PeerMissing:
    # The failure is cached, too: a mirror that does not respond is tried once per run.
    try:
        find_command("java")
        with cache_folder("kafka-streams-library") as cache:
            folder = fill_folder_once(cache / VERSION, functools.partial(_copy, VERSION))
            return KafkaRelease(VERSION, folder)
    except PeerMissing as missing:
        return missing


def _copy(version: str, folder: Path) -> None:
    copy_jars([Artifact("org.apache.kafka", "kafka-streams", version)], folder)
    # The logging backend must have the version of the logging API that Kafka depends on.
    (interface,) = folder.glob("slf4j-api-*.jar")
    logging_version = interface.stem.removeprefix("slf4j-api-")
    copy_jars([Artifact("org.slf4j", "slf4j-simple", logging_version)], folder)
