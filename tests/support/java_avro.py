"""Java programs that write and read Avro with a schema registry, built with Maven."""

import functools
from dataclasses import dataclass
from pathlib import Path

from tests.support.apache_kafka import KafkaRelease, java_command, run_java
from tests.support.maven import Artifact, copy_jars
from tests.support.peer import PeerMissing, cache_folder, fill_folder_once, find_command

SOURCES = Path(__file__).parent / "java"


@dataclass(frozen=True, slots=True)
class JavaAvro:
    """A program and its library; Confluent's library is not on Maven Central."""

    program: str
    library: Artifact

    def run(self, url: str, topic: str, lines: list[list[str]]) -> list[str]:
        """Return the program's responses; raise PeerMissing without Java or the library."""
        fetched = _fetch_once(self.library)
        if isinstance(fetched, PeerMissing):
            raise PeerMissing(*fetched.args)
        class_path = fetched.compile(SOURCES / f"{self.program}.java")
        stdin = "".join("\t".join(line) + "\n" for line in lines)
        return run_java(
            java_command(class_path, self.program, url, topic), stdin=stdin
        ).splitlines()


PLAIN_AVRO = JavaAvro("PlainAvro", Artifact("org.apache.avro", "avro", "1.12.2"))
CONFLUENT_AVRO = JavaAvro(
    "ConfluentAvro", Artifact("io.confluent", "kafka-avro-serializer", "7.9.0")
)


@functools.cache
def _fetch_once(library: Artifact) -> KafkaRelease | PeerMissing:
    # The failure is cached, too: a mirror that does not respond is tried once per run.
    try:
        find_command("java")
        with cache_folder(library.name) as cache:
            folder = fill_folder_once(
                cache / library.version, lambda folder: copy_jars([library], folder)
            )
            return KafkaRelease(library.version, folder)
    except PeerMissing as missing:
        return missing
