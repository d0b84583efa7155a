"""A session with an engine in this process, on its own broker or on any cluster."""

import fcntl
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from broker import Broker, BrokerConfig
from broker.client.opening import Target, admin
from broker.clock import Clock, SystemClock
from broker.errors import ClientError, MillstreamError
from broker.registry.registry import Registry
from broker.serde.registry.api import SchemaRegistry
from broker.serde.registry.http_registry import HttpSchemaRegistry
from sql.engine.engine import Engine
from sql.engine.extensions import functions_of
from sql.engine.messages import entity_json
from sql.engine.printed_topic import PrintedTopic
from sql.engine.results import QueryResult
from sql.engine.row_values import row_preparation
from sql.engine.session import SqlSession
from sql.engine.settings import SqlConfig
from sql.shell.deadline import Deadline
from sql.shell.session import EntityJson, SessionScope, ShownColumn

logger = logging.getLogger(__name__)

FOLDER = "sql"  # of a data directory


class ServiceInUse(ClientError):
    """Another engine runs with the same service id."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The data directory and the settings of an engine."""

    data_directory: Path
    settings: Mapping[str, object] = field(default_factory=dict)
    functions: Sequence[Path] = ()


def open_embedded(options: EngineOptions) -> "EmbeddedSession":
    """An engine with its own broker and schema registry, in one directory."""
    data_directory = options.data_directory
    with ExitStack() as opening:
        config = BrokerConfig(
            listeners=("PLAINTEXT://127.0.0.1:0",), group_initial_rebalance_delay_ms=0
        )
        broker = opening.enter_context(Broker(config, data_directory=str(data_directory)))
        registry = opening.enter_context(Registry(broker))
        engine = opening.enter_context(_engine(broker, registry, options))
        where = f"an engine in this process, data in {data_directory}"
        return EmbeddedSession(engine, where, opening.pop_all())


def open_on_cluster(
    bootstrap: str,
    registry_url: str | None,
    options: EngineOptions,
    *,
    is_temporary: bool = False,
    is_exclusive: bool = False,
) -> "EmbeddedSession":
    """An engine on a cluster; only the state of its queries is in the directory.

    `is_temporary`: it leaves nothing but the topics of its statements. `is_exclusive`: raises
    ServiceInUse if another engine runs with this service id.
    """
    settings, directory = {**options.settings}, options.data_directory
    service_id = SqlConfig(settings).text("ksql.service.id")
    with ExitStack() as opening:
        if is_temporary:
            directory = Path(opening.enter_context(TemporaryDirectory(prefix="millstream-sql-")))
        else:
            opening.enter_context(_held(directory / FOLDER, service_id))
        if is_exclusive:
            _refuse_if_running(bootstrap, service_id)
        registry = None if registry_url is None else HttpSchemaRegistry(registry_url)
        if registry is not None:
            opening.callback(registry.close)
            settings = {"ksql.schema.registry.url": registry_url, **settings}
        made = _engine(bootstrap, registry, EngineOptions(directory, settings, options.functions))
        engine = opening.enter_context(made)
        if is_temporary:
            opening.callback(_discard, engine)
        where = f"an engine in this process, on {bootstrap}"
        return EmbeddedSession(engine, where, opening.pop_all())


def _engine(target: Target, registry: SchemaRegistry | None, options: EngineOptions) -> Engine:
    config = SqlConfig(options.settings)
    return Engine(
        target,
        data_directory=options.data_directory / FOLDER,
        registry=registry,
        config=config,
        functions=functions_of(config, options.functions),
    )


@contextmanager
def _held(directory: Path, service_id: str) -> Iterator[None]:
    """Lock the service id on this machine during the block; a crash releases the lock."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / f"{service_id}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _in_use(service_id, f"another command on {directory}") from None
        yield


def _refuse_if_running(bootstrap: str, service_id: str) -> None:
    """Raise ServiceInUse if consumer groups of the service have members."""
    prefixes = tuple(f"_confluent-ksql-{service_id}{kind}_" for kind in ("query", "transient"))
    with admin(bootstrap) as cluster:
        for group in cluster.list_groups():
            if group.group_id.startswith(prefixes) and group.state not in ("Empty", "Dead"):
                raise _in_use(service_id, f'the consumer group "{group.group_id}" has members')


def _in_use(service_id: str, why: str) -> ServiceInUse:
    return ServiceInUse(
        f'the SQL service "{service_id}" is already running ({why}): its queries would run twice',
        hint="choose another --service-id, or use the server's URL instead of --bootstrap; after "
        "a crash, members of its groups time out within a minute",
    )


def _discard(engine: Engine) -> None:
    """Terminate the queries of a temporary service, and delete its internal topics."""
    try:
        engine.transient_queries.close()
        engine.commands.terminate_cluster([])
    except MillstreamError as error:
        logger.warning("could not delete all topics of a temporary SQL service: %s", error)


class EmbeddedSession:
    """Executes statements in this process; see ShellSession."""

    def __init__(
        self, engine: Engine, where: str, closing: ExitStack, clock: Clock | None = None
    ) -> None:
        """`closing` closes the engine and all its resources."""
        self.where = where
        self.engine = engine
        self._closing = closing
        self._clock = clock or SystemClock()

    def version(self) -> str:
        return version("millstream")

    def execute(self, text: str, scope: SessionScope) -> list[EntityJson]:
        """Execute a statement that is not a query."""
        found = self.engine.execute(text, scope.properties, scope.variables)
        return [entity_json(each) for each in found]

    def query(self, text: str, scope: SessionScope, timeout_ms: int | None) -> "EngineRows":
        """Start a query."""
        result = self.engine.query(text, scope.properties, scope.variables)
        return EngineRows(result, Deadline(self._clock, timeout_ms))

    def print_topic(self, text: str, scope: SessionScope, timeout_ms: int | None) -> "EngineLines":
        """Start a PRINT."""
        printed = self.engine.print_topic(text, scope.variables)
        return EngineLines(printed, Deadline(self._clock, timeout_ms))

    def check_property(self, name: str, value: str) -> None:
        """Refuse properties that sessions may not set."""
        SqlSession.of(self.engine.config, {name: value})

    def close(self) -> None:
        """Close the engine and all its resources."""
        self._closing.close()


class EngineRows:
    """Rows of an engine; see QueryRows."""

    def __init__(self, result: QueryResult, deadline: Deadline) -> None:
        self._result = result
        self._deadline = deadline
        self._shown = row_preparation(each.type for each in result.columns)
        self.columns: Sequence[ShownColumn] = [
            ShownColumn(each.name, str(each.type)) for each in result.columns
        ]

    @property
    def final_message(self) -> str | None:
        """The engine's final message."""
        return self._result.final_message

    def rows(self) -> Iterator[Sequence[object]]:
        """The rows; waits in short steps, so that Ctrl-C works."""
        while not self._result.done:
            wait_ms = self._deadline.wait_ms()
            row = self._result.poll(wait_ms)
            if row is not None:
                yield self._shown(row.values)
            elif wait_ms == 0:
                break

    def close(self) -> None:
        self._result.close()


class EngineLines:
    """Printed records of a topic; see PrintedLines."""

    def __init__(self, printed: PrintedTopic, deadline: Deadline) -> None:
        self._printed = printed
        self._deadline = deadline

    def lines(self) -> Iterator[str]:
        while not self._printed.done:
            wait_ms = self._deadline.wait_ms()
            yield from self._printed.poll(wait_ms)
            if wait_ms == 0:
                break

    def close(self) -> None:
        self._printed.close()
