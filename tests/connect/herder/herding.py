"""A herder with a real worker on a broker in this process, and connectors that tests script."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from broker import Broker
from connect.api import SourceConnector, SourceTask
from connect.config.worker_config import WorkerConfig
from connect.herder import Herder
from connect.records import SourceRecord
from connect.server import ConnectServer
from connect.state.status_store import State
from tests.support.kafka_connect_worker import worker_settings
from tests.support.peer import wait_until

SOURCE = "tests.connect.herder.herding:MovableSource"


class Moves:
    """What a connector does and what was done to it; tests change it while it runs."""

    def __init__(self) -> None:
        self.on_start: Callable[[Mapping[str, str]], None] = lambda config: None
        self.on_task_configs: Callable[[], None] = lambda: None
        self.on_stop: Callable[[], None] = lambda: None
        self.tasks: list[dict[str, str]] = [{"part": "0"}]
        self.log: list[str] = []
        self.configs: list[dict[str, str]] = []
        self.connector: MovableSource | None = None


MOVES: dict[str, Moves] = {}


class MovableSource(SourceConnector):
    """Does what the Moves of its name say."""

    def start(self, config: Mapping[str, str]) -> None:
        self.moves = MOVES[config["name"]]
        self.moves.connector = self
        self.moves.configs.append(dict(config))
        self.moves.on_start(config)
        self.moves.log.append("start")

    def task_class(self) -> type[SourceTask]:
        return MovableTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        self.moves.on_task_configs()
        latest = self.moves.configs[-1]
        copied = {name: latest[name] for name in latest if name in ("name", "password")}
        return [{**copied, **task} for task in self.moves.tasks]

    def stop(self) -> None:
        self.moves.on_stop()
        self.moves.log.append("stop")


class MovableTask(SourceTask):
    """Waits; fails at once if its configuration says so."""

    def start(self, config: Mapping[str, str]) -> None:
        MOVES[config["name"]].log.append(f"start {config['part']}")
        MOVES[config["name"]].configs.append(dict(config))
        self._part = config["part"]
        self._log = MOVES[config["name"]].log
        if config.get("fails") == "true":
            raise RuntimeError("out of order")

    def poll(self) -> Sequence[SourceRecord] | None:
        self.context.stopping().wait(0.05)
        return None

    def stop(self) -> None:
        self._log.append(f"stop {self._part}")


def moves(name: str) -> Moves:
    """A new script for the connector of this name."""
    MOVES[name] = Moves()
    return MOVES[name]


@contextmanager
def herding(broker: Broker, **settings: str) -> Iterator[Herder]:
    """A distributed worker; settings have underscores for dots."""
    named = {name.replace("_", "."): text for name, text in settings.items()}
    config = WorkerConfig.parse({**worker_settings("localhost:9092", 0), **named})
    with ConnectServer(broker, config) as server:
        yield server.herder


def wait_for(herder: Herder, name: str, state: State, tasks: Sequence[State] = ()) -> None:
    """Wait until a connector and its tasks are in these states."""

    def there() -> bool:
        if name not in herder.connectors():
            return False
        try:
            status = herder.status(name)
        except Exception:
            return False
        found = [each.state for each in status.tasks.values()]
        return status.connector.state is state and found == list(tasks)

    wait_until(there, f"{name} {state} {tasks}")
