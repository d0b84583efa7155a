"""TaskBuilder: creates a task and its parts from its configuration, in the task's thread."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import cast

from broker.client.api import GroupMetadata
from broker.client.cluster_admin import Admin
from broker.client.record_consumer import Consumer
from broker.client.record_producer import Producer
from broker.clock import Clock
from broker.errors import MillstreamError
from connect.api import Converter, HeaderConverter, SinkTask, SourceTask
from connect.clients import LONGEST_MS, Clients
from connect.config.connector import (
    ConnectorConfig,
    ErrorSettings,
    SinkConfig,
    SourceConfig,
)
from connect.config.worker_config import WorkerConfig
from connect.config_def import with_prefix
from connect.errors import ConfigError, ConnectError, RetriableError
from connect.plugin_finder import PluginKind
from connect.plugins import Plugins
from connect.retries import is_transient, retry_until_stopped
from connect.runtime.conversion import Converters, Transform
from connect.runtime.dead_letters import DeadLetterClients, DeadLetters, create_topic
from connect.runtime.error_handling import ErrorHandler, ErrorLog
from connect.runtime.metrics import SinkMetrics, SourceMetrics, TaskMetrics
from connect.runtime.sink.errant_records import ErrantRecords
from connect.runtime.sink.pipeline import SinkPipeline
from connect.runtime.sink.runner import SinkRunner
from connect.runtime.sink.setup import SinkSetup
from connect.runtime.source.at_least_once import AtLeastOnce
from connect.runtime.source.boundaries import ConnectorBoundary, boundary_of
from connect.runtime.source.exactly_once import ExactlyOnce, transactional_id
from connect.runtime.source.offset_stores import OffsetStores
from connect.runtime.source.pipeline import SourcePipeline
from connect.runtime.source.runner import SourceRunner, TaskContext
from connect.runtime.source.sending import RecordSender
from connect.runtime.source.setup import SourceDelivery, SourceSetup, StoredOffsets
from connect.runtime.task_thread import TaskBody
from connect.runtime.topic_creation import TopicCreator
from connect.state.group_offsets import group_of
from connect.state.task_state import TaskId
from connect.stop_signal import StopSignal
from connect.transforms.chain import TransformationChain

# After this time, a send returns, checks whether the task must stop, and is retried.
SEND_BLOCK_MS = 10_000
CLOSE_TIMEOUT_MS = 5_000
FENCE_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """A task to create."""

    task_id: TaskId
    connector: Mapping[str, str]  # the connector's configuration
    task: Mapping[str, str]
    on_topic: Callable[[str], None]  # called for every topic that the task writes or reads
    # An exactly-once source calls it once no other task can use its transactional id; raises
    # TaskStopped if other tasks have replaced this one.
    confirm: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class TaskBuilder:
    """Creates the tasks of one worker."""

    clients: Clients
    config: WorkerConfig
    plugins: Plugins
    offsets: OffsetStores
    clock: Clock

    def build(self, request: TaskRequest, stop: StopSignal) -> TaskBody:
        """Create a task and its parts; waits while the broker is unavailable."""
        config = ConnectorConfig.parse(request.connector)
        connector = self.plugins.connector(config.class_name)
        self.config.allowed_paths.check(connector, request.connector)
        task = connector().task_class()()
        with ExitStack() as opened:
            if isinstance(task, SourceTask):
                return self._source(request, config, task, stop, opened)
            return self._sink(request, config, task, stop, opened)

    # --- sources -------------------------------------------------------------------------------

    def _source(
        self,
        request: TaskRequest,
        config: ConnectorConfig,
        task: SourceTask,
        stop: StopSignal,
        opened: ExitStack,
    ) -> SourceRunner:
        task_id, metrics = request.task_id, SourceMetrics(self.clock)
        own = SourceConfig.parse(config.given, creates_topics=self.config.topic_creation_enable)
        handler = ErrorHandler(config.errors, metrics.errors, self.clock, stop)
        if config.errors.logs:
            handler.reporters.append(_error_log(task_id, config.errors, metrics))
        pipeline = SourcePipeline(
            self._transforms(config.given, opened), self._converters(config), handler
        )
        boundary = boundary_of(own, self.clock, self.config.offset_flush_interval_ms)
        setup = SourceSetup(
            task_id,
            task,
            pipeline,
            self._producer(request, opened),
            retry_until_stopped(
                "open the offsets topic", lambda: self.offsets.of(own.offsets_topic), stop
            ),
            handler,
            metrics,
            stop,
            self.clock,
            self.config.offset_flush_interval_ms,
            self.config.offset_flush_timeout_ms,
        )
        creator = None
        if own.topic_groups:
            creator = TopicCreator(self._admin(request, opened), own.topic_groups)
        sender = RecordSender(setup.producer, stop, creator, request.on_topic)
        delivery: SourceDelivery = AtLeastOnce(setup, sender)
        if self.config.exactly_once:
            topic = own.offsets_topic or self.config.offset_storage_topic
            delivery = ExactlyOnce(
                setup, sender, boundary, offsets_topic=topic, confirm=request.confirm
            )
        decides = self.config.exactly_once and isinstance(boundary, ConnectorBoundary)
        context = TaskContext(
            request.task,
            StoredOffsets(task_id.connector, lambda: setup.offsets, stop),
            cast(ConnectorBoundary, boundary) if decides else None,
            stop.event,
        )
        return SourceRunner(setup, context, delivery, opened.pop_all().close)

    def _producer(self, request: TaskRequest, opened: ExitStack) -> Producer:
        settings: dict[str, object] = {"max_block_ms": SEND_BLOCK_MS}
        if self.config.exactly_once:
            # A transaction with a failed send could only be aborted.
            name = self._transactional_id(request.task_id)
            settings = {"max_block_ms": LONGEST_MS, "transactional_id": name}
        return self._opened(
            opened,
            self.clients.producer(
                request.connector,
                client_id=f"connector-producer-{request.task_id}",
                delivery_timeout_ms=LONGEST_MS,
                **settings,
            ),
        )

    def _transactional_id(self, task_id: TaskId) -> str:
        return transactional_id(self.config.group_id or "", task_id)

    def fence(self, task_id: TaskId, connector: Mapping[str, str]) -> None:
        """Fence a source task, wherever it may run: its transactions end."""
        try:
            with self.clients.producer(
                connector,
                client_id=f"connector-fencer-{task_id}",
                transactional_id=self._transactional_id(task_id),
                max_block_ms=FENCE_TIMEOUT_MS,
            ) as producer:
                producer.init_transactions()
        except MillstreamError as error:
            kind = RetriableError if is_transient(error) else ConnectError
            raise kind(f"cannot fence task {task_id}: {error.message}", hint=error.hint) from error

    # --- sinks ---------------------------------------------------------------------------------

    def _sink(
        self,
        request: TaskRequest,
        config: ConnectorConfig,
        task: SinkTask,
        stop: StopSignal,
        opened: ExitStack,
    ) -> SinkRunner:
        task_id, metrics = request.task_id, SinkMetrics(self.clock)
        settings = config.errors
        handler = ErrorHandler(settings, metrics.errors, self.clock, stop)
        converters = self._converters(config)
        pipeline = SinkPipeline(
            self._transforms(config.given, opened), converters, handler, reportable=settings.reports
        )
        dead_letters: DeadLetters | None = None
        if settings.dead_letter_topic:
            admin = self._admin(request, opened)
            retry_until_stopped(
                "look for the dead letter queue topic", lambda: create_topic(admin, settings), stop
            )
            writing = DeadLetterClients(self._dead_letter_producer(request, opened), admin)
            dead_letters = DeadLetters(task_id, settings, writing, metrics.errors, stop)
            handler.reporters.append(dead_letters)
        if settings.logs:
            handler.reporters.append(_error_log(task_id, settings, metrics))
        setup = SinkSetup(
            task_id,
            task,
            request.task,
            SinkConfig.parse(config.given).topics,
            self._consumer(request),
            pipeline,
            handler,
            metrics,
            stop,
            self.clock,
            request.on_topic,
            lambda member: self._leave(request, member),
            dead_letters,
            ErrantRecords(handler, converters) if settings.reports else None,
            self.config.offset_flush_interval_ms,
            self.config.offset_flush_timeout_ms,
        )
        return SinkRunner(setup, opened.pop_all().close)

    def _consumer(self, request: TaskRequest) -> Consumer:
        return self.clients.consumer(
            request.connector,
            client_id=f"connector-consumer-{request.task_id}",
            group_id=group_of(request.task_id.connector, request.connector),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )

    def _leave(self, request: TaskRequest, member: GroupMetadata) -> None:
        with self.clients.admin(request.connector) as admin:
            admin.remove_group_members(member.group_id, [member.member_id]).all()

    def _dead_letter_producer(self, request: TaskRequest, opened: ExitStack) -> Producer:
        return self._opened(
            opened,
            self.clients.producer(
                request.connector,
                client_id=f"connector-dlq-producer-{request.task_id}",
                delivery_timeout_ms=LONGEST_MS,
                max_block_ms=SEND_BLOCK_MS,
            ),
        )

    # --- both ----------------------------------------------------------------------------------

    def _admin(self, request: TaskRequest, opened: ExitStack) -> Admin:
        admin = self.clients.admin(
            request.connector, client_id=f"connector-adminclient-{request.task_id}"
        )
        opened.callback(admin.close)
        return admin

    def _opened(self, opened: ExitStack, producer: Producer) -> Producer:
        opened.callback(producer.close, CLOSE_TIMEOUT_MS)
        return producer

    def _transforms(self, config: Mapping[str, str], opened: ExitStack) -> list[Transform]:
        """The connector's transforms, with the names for error reports."""
        chain = TransformationChain.build(config, self.plugins)
        opened.callback(chain.close)
        return [
            # Without a predicate, the transform always applies.
            Transform(
                each.class_name,
                each.transformation.apply if each.predicate is None else each.apply,
            )
            for each in chain.transforms
        ]

    def _converters(self, config: ConnectorConfig) -> Converters:
        """The converters of the connector, or of the worker, each with its own settings."""
        key, key_name = self._converter("key_converter", config)
        value, value_name = self._converter("value_converter", config)
        header, header_name = self._converter("header_converter", config)
        return Converters(
            cast(Converter, key),
            cast(Converter, value),
            cast(HeaderConverter, header),
            key_name,
            value_name,
            header_name,
        )

    def _converter(
        self, field: str, config: ConnectorConfig
    ) -> tuple[Converter | HeaderConverter, str]:
        own, setting = getattr(config, field), field.replace("_", ".")
        where = config.given if own else self.config.originals
        name = own or getattr(self.config, field)
        is_header = setting == "header.converter"
        kind = PluginKind.HEADER_CONVERTER if is_header else PluginKind.CONVERTER
        found = self.plugins.find(kind, name)
        if found is None:
            raise ConfigError(f'"{setting}" is not a converter: "{name}"')
        converter = cast("Converter | HeaderConverter", found())
        converter.configure(with_prefix(f"{setting}.", where), setting == "key.converter")
        return converter, self.plugins.class_name(name) or name


def _error_log(task_id: TaskId, settings: ErrorSettings, metrics: TaskMetrics) -> ErrorLog:
    return ErrorLog(task_id, metrics.errors, with_records=settings.logs_records)
