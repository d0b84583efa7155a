"""The brokers to compare, each in its own process."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Report
from tests.support.apache_kafka import LONG_LIVED, ApacheKafka
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import PeerMissing

PEER = "Apache Kafka"


@dataclass(frozen=True, slots=True)
class Side:
    """One running broker."""

    name: str
    bootstrap: str
    process_id: int


def resident_mb(process_id: int) -> float:
    """Resident memory of a process, in MB."""
    for line in Path(f"/proc/{process_id}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(process_id)


@contextmanager
def millstream(settings: dict[str, str] | None = None) -> Iterator[Side]:
    """Our broker, with its data in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
        broker = MillstreamBroker(Path(folder), settings=settings).start()
        try:
            assert broker.pid is not None
            yield Side("Millstream", broker.bootstrap, broker.pid)
        finally:
            broker.kill()


@contextmanager
def both(report: Report) -> Iterator[list[Side]]:
    """Our broker and Apache Kafka; if Kafka is missing, only ours, and a note with the reason."""
    with millstream() as ours:
        try:
            kafka = ApacheKafka(heap_mb=1024, jvm=LONG_LIVED).start()
        except PeerMissing as missing:
            report.note(f"{PEER} skipped: {missing}")
            yield [ours]
            return
        try:
            assert kafka.pid is not None
            yield [ours, Side(f"{PEER} {kafka.release.version}", kafka.bootstrap, kafka.pid)]
        finally:
            kafka.stop()
