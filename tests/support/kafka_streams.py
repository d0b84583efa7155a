"""Apache Kafka Streams from Maven: what it says of topologies, for tests that compare."""

import functools
from pathlib import Path

from tests.support.apache_kafka import KafkaRelease
from tests.support.maven import Artifact, copy_jars, find_newest_version
from tests.support.peer import PeerMissing, cache_folder, fill_folder_once, find_command


def fetch_kafka_streams() -> KafkaRelease:
    """The newest release of the library; downloaded at the first call."""
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
            answer = cache / "newest-version"
            if not answer.exists():
                newest = find_newest_version("org.apache.kafka", "kafka-streams", versions="[4,)")
                answer.write_text(newest)
            version = answer.read_text()
            folder = fill_folder_once(cache / version, functools.partial(_copy, version))
            return KafkaRelease(version, folder)
    except PeerMissing as missing:
        return missing


def _copy(version: str, folder: Path) -> None:
    copy_jars([Artifact("org.apache.kafka", "kafka-streams", version)], folder)
    # The logging backend must be of the same version as the interface that Kafka brought.
    (interface,) = folder.glob("slf4j-api-*.jar")
    logging_version = interface.stem.removeprefix("slf4j-api-")
    copy_jars([Artifact("org.slf4j", "slf4j-simple", logging_version)], folder)
