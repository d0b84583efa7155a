"""A session with an engine in this process, on a broker of its own or on any cluster."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

from broker import Broker, BrokerConfig
from broker.client.opening import Target
from broker.client.registry.api import SchemaRegistry
from broker.client.registry.http_registry import HttpSchemaRegistry
from broker.clock import Clock, SystemClock
from broker.registry.registry import Registry
from sql.engine.engine import Engine
from sql.engine.extensions import functions_of
from sql.engine.messages import entity_json
from sql.engine.printed_topic import PrintedTopic
from sql.engine.results import QueryResult
from sql.engine.row_values import row_preparation
from sql.engine.session import Session as EngineSession
from sql.engine.settings import SqlConfig
from sql.shell.deadline import Deadline
from sql.shell.session import EntityJson, Scope, ShownColumn


def open_embedded(
    data_directory: Path, settings: Mapping[str, object], functions: Sequence[Path] = ()
) -> "EmbeddedSession":
    """An engine with a broker and a schema registry of its own, all in one directory."""
    with ExitStack() as opening:
        config = BrokerConfig(
            listeners=("PLAINTEXT://127.0.0.1:0",), group_initial_rebalance_delay_ms=0
        )
        broker = opening.enter_context(Broker(config, data_directory=str(data_directory)))
        registry = opening.enter_context(Registry(broker))
        made = _engine(broker, data_directory, registry, settings, functions)
        engine = opening.enter_context(made)
        where = f"an engine in this process, data in {data_directory}"
        return EmbeddedSession(engine, where, opening.pop_all())


def open_on_cluster(
    bootstrap: str,
    data_directory: Path,
    registry_url: str | None,
    settings: Mapping[str, object],
    functions: Sequence[Path] = (),
) -> "EmbeddedSession":
    """An engine on a cluster; only the state of its queries is in the directory."""
    with ExitStack() as opening:
        registry = None if registry_url is None else HttpSchemaRegistry(registry_url)
        if registry is not None:
            opening.callback(registry.close)
            settings = {"ksql.schema.registry.url": registry_url, **settings}
        made = _engine(bootstrap, data_directory, registry, settings, functions)
        engine = opening.enter_context(made)
        where = f"an engine in this process, on {bootstrap}"
        return EmbeddedSession(engine, where, opening.pop_all())


def _engine(
    target: Target,
    data_directory: Path,
    registry: SchemaRegistry | None,
    settings: Mapping[str, object],
    functions: Sequence[Path],
) -> Engine:
    config = SqlConfig(settings)
    return Engine(
        target,
        data_directory=data_directory / "sql",
        registry=registry,
        config=config,
        functions=functions_of(config, functions),
    )


class EmbeddedSession:
    """Statements carried out here; see Session."""

    def __init__(
        self, engine: Engine, where: str, closing: ExitStack, clock: Clock | None = None
    ) -> None:
        """An engine that runs; closing the stack ends it and all it stands on."""
        self.where = where
        self.engine = engine
        self._closing = closing
        self._clock = clock or SystemClock()

    def version(self) -> str:
        """Ours."""
        return version("millstream")

    def execute(self, text: str, scope: Scope) -> list[EntityJson]:
        """Carry out a statement that is no query."""
        found = self.engine.execute(text, scope.properties, scope.variables)
        return [entity_json(each) for each in found]

    def query(self, text: str, scope: Scope, timeout_ms: int | None) -> "EngineRows":
        """Begin a query."""
        result = self.engine.query(text, scope.properties, scope.variables)
        return EngineRows(result, Deadline(self._clock, timeout_ms))

    def print_topic(self, text: str, scope: Scope, timeout_ms: int | None) -> "EngineLines":
        """Begin a PRINT."""
        printed = self.engine.print_topic(text, scope.variables)
        return EngineLines(printed, Deadline(self._clock, timeout_ms))

    def check_property(self, name: str, value: str) -> None:
        """Refuse what sessions may not set."""
        EngineSession.of(self.engine.config, {name: value})

    def close(self) -> None:
        """End the engine, and what it stands on."""
        self._closing.close()


class EngineRows:
    """Rows of an engine; see Rows."""

    def __init__(self, result: QueryResult, deadline: Deadline) -> None:
        """A query that has begun."""
        self._result = result
        self._deadline = deadline
        self._shown = row_preparation(each.type for each in result.columns)
        self.columns: Sequence[ShownColumn] = [
            ShownColumn(each.name, str(each.type)) for each in result.columns
        ]

    @property
    def final_message(self) -> str | None:
        """What the engine says at the end."""
        return self._result.final_message

    def rows(self) -> Iterator[Sequence[object]]:
        """The rows; waits in short turns, so that an interrupt is heard."""
        while not self._result.done:
            wait_ms = self._deadline.wait_ms()
            row = self._result.poll(wait_ms)
            if row is not None:
                yield self._shown(row.values)
            elif wait_ms == 0:
                break

    def close(self) -> None:
        """Stop."""
        self._result.close()


class EngineLines:
    """Lines of a topic's records; see Lines."""

    def __init__(self, printed: PrintedTopic, deadline: Deadline) -> None:
        """A PRINT that has begun."""
        self._printed = printed
        self._deadline = deadline

    def lines(self) -> Iterator[str]:
        """The lines."""
        while not self._printed.done:
            wait_ms = self._deadline.wait_ms()
            yield from self._printed.poll(wait_ms)
            if wait_ms == 0:
                break

    def close(self) -> None:
        """Stop."""
        self._printed.close()
