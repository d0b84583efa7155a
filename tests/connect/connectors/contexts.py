"""What a worker gives to tasks, for tests that drive a task by hand."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future

from broker.model import TopicPartition
from connect.records import SinkRecord


class StoredOffsets:
    """Offsets that were stored before the task started."""

    def __init__(self, *entries: tuple[Mapping[str, object], Mapping[str, object]]) -> None:
        self._entries = [(dict(partition), dict(offset)) for partition, offset in entries]

    def offset(self, partition: Mapping[str, object]) -> Mapping[str, object] | None:
        return next((offset for key, offset in self._entries if key == dict(partition)), None)

    def offsets(
        self, partitions: Iterable[Mapping[str, object]]
    ) -> Sequence[Mapping[str, object] | None]:
        return [self.offset(partition) for partition in partitions]


class HandSourceContext:
    """The context of a source task that a test drives."""

    transaction_context = None

    def __init__(self, *entries: tuple[Mapping[str, object], Mapping[str, object]]) -> None:
        self.offset_reader = StoredOffsets(*entries)
        self._stopping = threading.Event()

    def configs(self) -> Mapping[str, str]:
        return {}

    def stopping(self) -> threading.Event:
        return self._stopping


class ReportedRecords:
    """Takes records that a task could not deliver."""

    def __init__(self) -> None:
        self.reported: list[tuple[SinkRecord, Exception]] = []

    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        self.reported.append((record, error))
        written: Future[None] = Future()
        written.set_result(None)
        return written


class HandSinkContext:
    """The context of a sink task that a test drives; it keeps what the task asks for."""

    def __init__(self, reporter: ReportedRecords | None = None) -> None:
        self.errant_record_reporter = reporter
        self.rewound: dict[TopicPartition, int] = {}
        self.timeouts_ms: list[int] = []
        self.commits_requested = 0

    def configs(self) -> Mapping[str, str]:
        return {}

    def offset(self, partition: TopicPartition, offset: int) -> None:
        self.rewound[partition] = offset

    def timeout(self, timeout_ms: int) -> None:
        self.timeouts_ms.append(timeout_ms)

    def assignment(self) -> set[TopicPartition]:
        return set()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        raise AssertionError("no connector of ours pauses")

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        raise AssertionError("no connector of ours resumes")

    def request_commit(self) -> None:
        self.commits_requested += 1
