"""GlobalRunner: the thread that fills the global stores from all partitions of their topics.

The stores are loaded completely before the first task starts, by the same node that updates them
later. They are rebuilt at each start: a global store has no changelog other than its topic.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from broker import concurrency
from broker.client.api import FetchedBatch
from broker.client.record_consumer import Consumer, WokenUp
from broker.errors import CorruptBatchError
from broker.machine import Machine
from broker.model import TopicPartition
from streams.config import StreamsConfig
from streams.errors import StreamsError
from streams.record import Headers
from streams.runtime.chunks import to_chunk
from streams.runtime.global_task import GlobalTask
from streams.runtime.task_metrics import TaskMetrics
from streams.state.databases import databases_of
from streams.state.task_state import TaskState
from streams.topology import Topology


class _NoOutput:
    """Refuses output: the node of a global store writes only to its store."""

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers,
        partition: int | None,
    ) -> None:
        raise StreamsError(f'a global store\'s processor cannot write to topic "{topic}"')

    def partition_count(self, topic: str) -> int:
        raise StreamsError(f'a global store\'s processor cannot write to topic "{topic}"')


class GlobalRunner:
    """Updates the global stores of an application; `start` returns when they are loaded."""

    def __init__(  # noqa: PLR0913 - its dependencies
        self,
        topology: Topology,
        config: StreamsConfig,
        machine: Machine,
        *,
        directory: Path,
        cache_bytes: int,
        open_consumer: Callable[[], Consumer],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._config = config
        self._open_consumer = open_consumer
        self._on_failure = on_failure
        self._topics = sorted({store.topic for store in topology.global_stores.values()})
        machine.files.remove_folder(str(directory))
        self.state = TaskState(
            [store.spec for store in topology.global_stores.values()],
            directory=directory,
            databases=databases_of(machine),
            default_key_serde=config.default_key_serde,
            default_value_serde=config.default_value_serde,
            buffer_bytes=cache_bytes,
        )
        self.metrics = TaskMetrics()
        self._task = GlobalTask(
            topology,
            application_id=config.application_id,
            state=self.state,
            output=_NoOutput(),
            clock=machine.clock,
            config=config,
            metrics=self.metrics,
        )
        self._consumer: Consumer | None = None
        self._stop = concurrency.Event()
        self._loaded = concurrency.Event()
        self._failure: BaseException | None = None
        self._thread = concurrency.Thread(
            target=self._run, name=f"{config.application_id}-global", daemon=True
        )

    # Any: only the caller knows the kind of the store.
    def views(self) -> dict[str, Any]:
        """Read-only views for tasks and queries, by store."""
        return {name: self.state.view(name) for name in self.state.names}

    def start(self) -> None:
        """Start the thread, and wait until the stores are loaded."""
        self._thread.start()
        self._loaded.wait()
        if self._failure is not None:
            raise StreamsError(f"global stores cannot be loaded: {self._failure}") from (
                self._failure
            )

    def stop(self) -> None:
        """Stop the thread and close the stores."""
        self._stop.set()
        if self._consumer is not None:
            self._consumer.wakeup()
        if self._thread.is_alive():
            self._thread.join()
        self.state.close()

    def _run(self) -> None:
        try:
            with self._open_consumer() as consumer:
                self._consumer = consumer
                self._read_topics(consumer)
        except BaseException as error:
            self._failure = error
            if self._loaded.is_set():
                self._on_failure(error)
        finally:
            self._loaded.set()

    def _read_topics(self, consumer: Consumer) -> None:
        partitions = [
            TopicPartition(topic, number)
            for topic in self._topics
            for number in consumer.partitions_for(topic)
        ]
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        ends = consumer.end_offsets(partitions)
        while not self._stop.is_set():
            try:
                batches = consumer.poll_batches(self._config.poll_ms)
            except WokenUp:
                continue
            except CorruptBatchError as error:
                self._task.skip_corrupt_batch(error)
                consumer.seek(TopicPartition(error.topic, error.partition), error.next_offset)
                batches = []
            for batch in batches:
                self._apply(batch)
            if batches:
                self._task.commit()
            if not self._loaded.is_set() and all(
                consumer.position(tp) >= end for tp, end in ends.items()
            ):
                self._loaded.set()

    def _apply(self, batch: FetchedBatch) -> None:
        try:
            chunk = to_chunk(batch, 0)
        except CorruptBatchError as error:
            self._task.skip_corrupt_batch(error)
            return
        if chunk is not None:
            self._task.apply(chunk)
