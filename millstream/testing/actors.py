"""The processes of a test: the application, the sender of its input, the reader of its output."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from broker.client import admin, consumer, producer
from broker.client.administration.values import NewTopic
from broker.client.cluster_admin import Admin
from broker.client.produced_batch import Delivery
from broker.errors import MillstreamError
from broker.model import TopicPartition
from millstream.simulation.actors.actor import Actor
from millstream.testing.faults import CHUNKS
from millstream.testing.pipelines import SqlPipeline, StreamsPipeline
from millstream.testing.records import EncodedRecord
from sql.engine.engine import Engine
from sql.engine.settings import SqlConfig
from sql.plan import topics_read
from sql.queries import QueryState
from streams.app import AppState, StreamsApp
from streams.runtime.app_state import ENDED
from streams.runtime.partitions import external_topics

if TYPE_CHECKING:
    from millstream.testing.pipeline_platform import PipelinePlatform

APPLICATION_ID = "application"
QUERIES_FILE = "/sql/queries.sql"
LATEST = -1
REPARTITION = "-repartition"
CHECK_MS = 200  # how often the application is checked
READ_MS = 1_000  # how often the reader checks for progress
SESSION_TIMEOUT_MS = 3_000
STREAMS_SETTINGS: Mapping[str, object] = {
    "processing_guarantee": "exactly_once_v2",
    "session_timeout_ms": SESSION_TIMEOUT_MS,
    "heartbeat_interval_ms": SESSION_TIMEOUT_MS // 3,
    "transaction_timeout_ms": 2 * SESSION_TIMEOUT_MS,
}
SQL_SETTINGS: Mapping[str, object] = {
    "ksql.streams.auto.offset.reset": "earliest",
    "ksql.query.retry.backoff.initial.ms": 1_000,
    "ksql.runtime.threads": 1,
    **{f"ksql.streams.{name.replace('_', '.')}": value for name, value in STREAMS_SETTINGS.items()},
}


class PipelineActor(Actor):
    """A process of the platform of one pipeline."""

    def __init__(self, name: str, platform: "PipelinePlatform") -> None:
        super().__init__(name, platform)
        self.world = platform


class Application(PipelineActor):
    """An instance of the user's pipeline."""

    last_error = ""
    failures = 0
    is_running: Callable[[], bool] = staticmethod(lambda: False)
    reads: Mapping[str, frozenset[str]] = {}  # topics, by the group that commits their offsets

    def run(self) -> None:
        """Run until stopped; restart after a failure, as an operator would."""
        while not self.must_stop:
            try:
                self._run()
            except Exception as error:  # including errors of the user's code
                self._note_error(error)
            self.is_running = lambda: False
            self.sleep(500, 1_000)

    def _watch(self, is_running: Callable[[], bool], is_over: Callable[[], bool]) -> None:
        """Wait until it must stop, or has ended."""
        self.is_running = is_running
        was_running = False
        while not is_over() and self.sleep(CHECK_MS, CHECK_MS):
            if is_running() and not was_running:
                self.note("processes records")
            was_running = is_running()

    def kill(self) -> None:
        """Kill its process."""
        self.is_running = lambda: False
        super().kill()

    def _run(self) -> None:
        raise NotImplementedError

    def _note_error(self, error: BaseException) -> None:
        self.failures += 1
        self.last_error = f"{type(error).__name__}: {error}"
        self.note("has failed:", self.last_error.splitlines()[0])


class StreamsApplication(Application):
    """A StreamsApp."""

    def _run(self) -> None:
        pipeline = self.world.pipeline
        assert isinstance(pipeline, StreamsPipeline)
        # Any: StreamsApp checks the types of settings.
        settings: dict[str, Any] = {"state_dir": "/state", **STREAMS_SETTINGS, **pipeline.settings}
        app = StreamsApp(
            pipeline.build(),
            application_id=APPLICATION_ID,
            broker=self.target,
            machine=self.machine,
            **settings,
        )
        self.reads = {APPLICATION_ID: external_topics(app.topology)}
        try:
            app.start()
            self._watch(lambda: app.state is AppState.RUNNING, lambda: app.state in ENDED)
        finally:
            app.close()
        if app.error is not None:
            self._note_error(app.error)


class SqlApplication(Application):
    """A SQL server whose statements are in a file."""

    def _run(self) -> None:
        pipeline, machine = self.world.pipeline, self.machine
        assert isinstance(pipeline, SqlPipeline)
        assert machine is not None
        machine.files.make_folder("/sql")
        machine.files.write_file(QUERIES_FILE, pipeline.text.encode())
        settings = {"ksql.queries.file": QUERIES_FILE, **SQL_SETTINGS, **pipeline.settings}
        engine = Engine(
            self.target,
            data_directory="/data",
            config=SqlConfig(settings),
            machine=machine,
            headless=True,
        )
        with engine:
            queries = engine.commands.running
            self.reads = {
                each.runtime.application_id: frozenset(topics_read(each.info.planned.plan))
                for each in queries.values()
            }
            self._watch(
                lambda: all(each.runtime.state is QueryState.RUNNING for each in queries.values()),
                lambda: not engine.status.is_healthy,
            )


class TopicCreator(PipelineActor):
    """Creates the topics of the test."""

    def run(self) -> None:
        with admin(self.target, default_api_timeout_ms=60_000) as cluster:
            new = [NewTopic(name, count) for name, count in self.world.topics.items()]
            cluster.create_topics(new).all()


class Sender(PipelineActor):
    """Sends the input, distributed over the run; faults do not affect it."""

    def run(self) -> None:
        """Send all records, and wait for acknowledgements."""
        records, work_ms = self.world.records, self.world.scenario.work_ms
        size = max(1, -(-len(records) // CHUNKS))
        chunks = [records[first : first + size] for first in range(0, len(records), size)]
        sent: list[Delivery] = []
        with producer(self.target, delivery_timeout_ms=600_000, request_timeout_ms=5_000) as out:
            for chunk in chunks:
                for record in chunk:
                    sent.append(
                        out.send(
                            record.topic,
                            record.value,
                            record.key,
                            partition=record.partition,
                            timestamp_ms=record.timestamp_ms,
                        )
                    )
                self.note("sends", _shown(chunk))
                self.sleep(work_ms // CHUNKS, work_ms // CHUNKS)
            for delivery in sent:
                delivery.result()


def _shown(chunk: Sequence[EncodedRecord]) -> str:
    return ", ".join(f"{each.topic}[{each.number}]" for each in chunk)


class Reader(PipelineActor):
    """Waits until the application has processed everything, and reads the output."""

    def run(self) -> None:
        """Wait and read; retry if the broker does not respond."""
        while True:
            try:
                self._wait()
                for topic in self.world.outputs:
                    self.world.stored[topic] = list(self._read(topic))
                return
            except MillstreamError as error:
                self.note("tries again:", error)

    def _wait(self) -> None:
        with admin(self.target, default_api_timeout_ms=60_000) as cluster:
            previous: object = None
            unchanged_ms = 0
            while unchanged_ms < self.world.settle_ms:
                self.sleep(READ_MS, READ_MS)
                now = self._progress(cluster)
                is_same = now is not None and now == previous
                unchanged_ms = unchanged_ms + READ_MS if is_same else 0
                previous = now

    def _progress(self, cluster: Admin) -> object:
        """End and committed offsets; None while input is not processed."""
        if not all(each.is_running() for each in self.world.applications):
            return None
        latest = dict.fromkeys(self._partitions(cluster), LATEST)
        ends = {tp: result.offset for tp, result in cluster.list_offsets(latest).all().items()}
        stable = cluster.list_offsets(latest, committed=True).all()
        if any(stable[tp].offset != end for tp, end in ends.items()):
            return None  # a transaction is open
        committed = {
            (group, tp): result.offset
            for group in self._reads()
            for tp, result in cluster.list_group_offsets(group).all().items()
        }
        for group, topics in self._reads().items():
            for tp, end in ends.items():
                is_internal = tp.topic.startswith(f"{group}-") and tp.topic.endswith(REPARTITION)
                is_read = tp.topic in topics or is_internal
                if is_read and committed.get((group, tp), 0) < end:
                    return None
        return ends, committed

    def _reads(self) -> dict[str, frozenset[str]]:
        return {
            group: topics
            for each in self.world.applications
            for group, topics in each.reads.items()
        }

    def _partitions(self, cluster: Admin) -> Iterator[TopicPartition]:
        for name, listing in cluster.list_topics().items():
            for number in range(listing.partitions):
                yield TopicPartition(name, number)

    def _read(self, topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
        with consumer(
            self.target, isolation_level="read_committed", auto_offset_reset="earliest"
        ) as reader:
            partitions = [TopicPartition(topic, number) for number in reader.partitions_for(topic)]
            reader.assign(partitions)
            ends = reader.end_offsets(partitions)
            records = []
            while any(reader.position(tp) < ends[tp] for tp in partitions):
                records += reader.poll(timeout_ms=1_000)
        for record in sorted(records, key=lambda each: (each.partition, each.offset)):
            yield record.key, record.value
