"""ConnectServer: a whole Connect worker in this process: stores, worker, herder and REST API.

with Broker() as broker, ConnectServer(broker, config) as server:
    server.url                                  # "http://127.0.0.1:8083"
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from broker.client.opening import Target, admin
from broker.client.remote import servers_of
from broker.clock import Clock
from broker.machine import Machine, on_clock
from broker.rest import HttpServer
from connect.config.connector_file import ConnectorFile
from connect.config.worker_config import WorkerConfig, parse_listener
from connect.config_def import with_prefix
from connect.errors import ConfigError, ConnectError
from connect.herder import Herder, HerderParts
from connect.herder.assignment import Assignment
from connect.plugins import Plugins
from connect.rest import connect_application
from connect.runtime.worker import Worker
from connect.runtime.worker_group import GroupTimeouts, WorkerGroup
from connect.state.offsets import FileOffsets, TopicOffsets
from connect.state.state_topic import StateTopic, TopicSpec
from connect.state.task_state import TaskId

_CLASS_SETTING = re.compile(
    r"connector\.class|(key|value|header)\.converter|(transforms|predicates)\..+\.type"
)
EVERY_INTERFACE = "0.0.0.0"
# Topic settings that are settings of the worker, not of the topic.
NOT_OF_TOPICS = ("topic", "partitions", "replication.factor", "file.filename")


class ConnectServer:
    """Runs from `start` to `close`; a distributed worker continues where the last one stopped."""

    def __init__(
        self,
        target: Target,
        config: WorkerConfig,
        *,
        plugins: Plugins | None = None,
        machine: Machine | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`target` is a broker in this process, or the addresses of brokers.

        Time, files and the worker's name are those of the machine; `clock` replaces its clock.
        Without listeners there is no REST API.
        """
        self._target = target
        self._config = config
        self._plugins = plugins or Plugins(modules=config.modules)
        self._machine = machine or on_clock(clock)
        self._options = config.own_client_settings(over_network=servers_of(target) is not None)
        self._servers: list[HttpServer] = []
        self._opened = ExitStack()
        self._herder: Herder | None = None
        self.failure: ConnectError | None = None  # why it has stopped all connectors

    @property
    def urls(self) -> list[str]:
        """The URLs of the REST API, one per listener."""
        return [f"http://{server.address}" for server in self._servers]

    @property
    def url(self) -> str:
        """The URL of the first listener."""
        assert self._servers, "the server was not started"
        return self.urls[0]

    @property
    def herder(self) -> Herder:
        """All operations of the REST API."""
        assert self._herder is not None, "the server was not started"
        return self._herder

    def start(self) -> Self:
        """Start the REST API, read the target states, and start the connectors."""
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Complete open requests, stop all connectors and release all resources."""
        for server in self._servers:
            server.close()
        self._servers.clear()
        self._opened.close()

    def create(self, connectors: Iterable[ConnectorFile]) -> None:
        """Create the connectors of files, as a standalone worker does.

        The worker's owner wrote them, so they may name any class and any file.
        """
        for each in connectors:
            self._trust(each.config)
            try:
                self.herder.create(
                    each.name, {**each.config, "name": each.name}, each.initial_state
                )
            except ConnectError as error:
                raise ConfigError(
                    error.message, at=f'connector "{each.name}"', hint=error.hint
                ) from error

    def _trust(self, config: Mapping[str, str]) -> None:
        for setting, text in config.items():
            if _CLASS_SETTING.fullmatch(setting):
                self._plugins.allow_module(text.strip())
        try:
            connector = self._plugins.connector(config.get("connector.class", "").strip())
        except ConfigError:
            return  # the validation reports it
        for paths in connector().local_paths(config).values():
            for path in paths:
                self._config.allowed_paths.add(path)

    def _start(self) -> None:
        offsets = self._offset_store()
        self._opened.callback(offsets.close)
        offsets.open()
        worker = self._opened.enter_context(
            Worker(
                self._target,
                self._config,
                self._plugins,
                offsets,
                self._machine.clock,
                self._on_topic,
            )
        )
        assignment = Assignment("")
        self._herder = Herder(
            HerderParts(
                self._config,
                worker,
                self._plugins,
                worker.clients,
                worker.offset_store,
                assignment,
                self._machine.clock,
                config_topic=self._state_topic("config", 1),
                status_topic=self._state_topic("status", self._config.status_storage_partitions),
            )
        )
        self._listen(self._herder, worker)
        bound = self._servers[0].address if self._servers else ":0"
        port = int(bound.rpartition(":")[2])
        assignment.worker_id = self._config.worker_id(port, self._machine)
        self._join_group(self._config.member_name(port, self._machine))
        self._opened.callback(self._herder.stop)
        self._herder.start()

    def _listen(self, herder: Herder, worker: Worker) -> None:
        if not self._config.listeners:
            return
        application = connect_application(
            herder, cluster_id=self._cluster_id, metrics=worker.metrics
        )
        for listener in self._config.listeners:
            host, port = parse_listener(listener)
            listen = f"[{host}]:{port}" if ":" in host else f"{host or EVERY_INTERFACE}:{port}"
            server = HttpServer(
                application,
                listen=listen,
                name="connect-rest",
                refusal=application.refusal,
                allowed_hosts=[
                    *self._config.rest_allowed_hosts,
                    self._config.rest_advertised_host_name or "",
                ],
            )
            self._servers.append(server.start())

    def _join_group(self, member: str) -> None:
        """Raise ConnectError if another worker runs the same connectors."""
        config = self._config
        if config.group_id is None:
            return  # a standalone worker has locked its offsets file
        timeouts = GroupTimeouts(
            config.session_timeout_ms, config.heartbeat_interval_ms, config.rebalance_timeout_ms
        )
        group = WorkerGroup(self._target, config.group_id, self._options, self._lost, timeouts)
        group.join(member)
        self._opened.callback(group.close)

    def _lost(self, error: ConnectError) -> None:
        """Stop the connectors without writing statuses: another worker runs them now."""
        self.failure = error
        self.herder.give_up()

    def _on_topic(self, task: TaskId, topic: str) -> None:
        self.herder.used_topic(task, topic)

    def _offset_store(self) -> TopicOffsets | FileOffsets:
        if not self._config.distributed:
            file = Path(str(self._config.offset_storage_file_filename))
            return FileOffsets(file, self._machine.files)
        topic = self._state_topic("offset", self._config.offset_storage_partitions)
        assert topic is not None, "a distributed worker has topics"
        return TopicOffsets(topic)

    def _state_topic(self, what: str, partitions: int) -> StateTopic | None:
        if not self._config.distributed:
            return None
        settings = with_prefix(f"{what}.storage.", self._config.originals)
        spec = TopicSpec(
            getattr(self._config, f"{what}_storage_topic"),
            partitions,
            getattr(self._config, f"{what}_storage_replication_factor"),
            {name: text for name, text in settings.items() if name not in NOT_OF_TOPICS},
        )
        return StateTopic(self._target, spec, options=self._options)

    def _cluster_id(self) -> str:
        with admin(self._target, **self._options) as administration:
            return administration.describe_cluster().cluster_id

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
