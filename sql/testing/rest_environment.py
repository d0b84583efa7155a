"""The environment of REST cases: a server per process, and a broker and an engine per case."""

import atexit
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import httpx
from starlette.types import ASGIApp, Receive, Scope, Send

from broker import concurrency
from broker.broker import Broker
from broker.client.administration.values import NewTopic
from broker.client.opening import admin, consumer, producer
from broker.clock import SystemClock
from broker.config import BrokerConfig
from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.rest import HttpServer
from sql.analyse.sources import NoSchemas, SourceAnalyser
from sql.catalog import Catalog
from sql.engine.engine import Engine
from sql.engine.settings import SqlConfig
from sql.errors import SqlError
from sql.functions.registry import FunctionRegistry
from sql.plan import topics_read
from sql.server.answers import V1_JSON
from sql.server.application import SqlEndpoints, sql_application
from sql.syntax.statements import CreateSource, Statement
from sql.testing.failures import CaseFailed
from sql.testing.memory_registry import MemoryRegistry
from sql.testing.query_runs import TopicRecord

PARTITIONS = 4
TIMEOUT_MS = 20_000
LOOK_AGAIN_MS = 3
POLL_MS = 1000
BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "listeners": "PLAINTEXT://127.0.0.1:0",
}
ENGINE_SETTINGS: Mapping[str, object] = {
    "auto.offset.reset": "earliest",
    "cache.max.bytes.buffering": 0,
    "commit.interval.ms": 5,
    "num.stream.threads": 1,
    "ksql.query.push.v2.enabled": True,
}


class RestEnvironment:
    """A broker and an engine behind the server, for one case; see CaseEnvironment."""

    def __init__(
        self,
        client: httpx.Client,
        broker: Broker,
        engine: Engine,
        registry: MemoryRegistry,
        settings: Mapping[str, object],
    ) -> None:
        self.registry = registry
        self.settings = settings
        self._client = client
        self._broker = broker
        self._engine = engine
        self._administration = admin(broker)

    def close(self) -> None:
        """Close the clients."""
        self._administration.close()

    @property
    def catalog(self) -> Catalog:
        """The streams and tables."""
        return self._engine.state.catalog

    # --- topics -----------------------------------------------------------------------------

    def topic(self, name: str, partitions: int = PARTITIONS) -> None:
        """Create a topic if it does not exist."""
        made = self._administration.create_topics([NewTopic(name, partitions, 1)])
        error = made.errors.get(name)
        if error is not None and error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise error

    def make_topics(self, data: Mapping[str, Any], statements: Iterable[Statement]) -> None:
        """Create the topics of a case, then those of its CREATE statements."""
        for topic in data.get("topics") or ():
            self.topic(topic["name"], topic.get("partitions") or PARTITIONS)
        analyser = SourceAnalyser(Catalog(), self.settings, NoSchemas())
        for statement in statements:
            if not isinstance(statement, CreateSource):
                continue
            try:
                info = analyser.create(statement)
            except SqlError:
                continue  # the server will report it
            if info is not None:
                self.topic(info.topic, info.partitions or PARTITIONS)

    def produce(self, records: Iterable[tuple[str, TopicRecord]]) -> None:
        """Write records, each to the partition of its key."""
        with producer(self._broker, linger_ms=0) as out:
            sent = [
                out.send(
                    topic,
                    record.value,
                    record.key,
                    timestamp_ms=record.timestamp_ms,
                    headers=record.headers,
                )
                for topic, record in records
            ]
            for each in sent:
                each.result(TIMEOUT_MS)

    def records(self, topic: str) -> list[list[TopicRecord]]:
        """All records of a topic, by partition."""
        with consumer(self._broker, auto_offset_reset="earliest") as reader:
            places = [TopicPartition(topic, each) for each in reader.partitions_for(topic)]
            reader.assign(places)
            reader.seek_to_beginning(places)
            ends = reader.end_offsets(places)
            result: list[list[TopicRecord]] = [[] for _ in places]
            while any(reader.position(place) < ends[place] for place in places):
                for each in reader.poll(POLL_MS):
                    record = TopicRecord(each.key, each.value, each.timestamp_ms, each.headers)
                    result[each.partition].append(record)
            return result

    # --- requests ---------------------------------------------------------------------------

    def post(self, path: str, text: str, *, accept: str = V1_JSON) -> httpx.Response:
        """Send statements."""
        return self._client.post(path, json=self._body(text), headers={"accept": accept})

    def stream(self, path: str, text: str) -> AbstractContextManager[httpx.Response]:
        """Send a query and stream its response."""
        return self._client.stream("POST", path, json=self._body(text))

    def _body(self, text: str) -> dict[str, object]:
        return {"ksql": text, "streamsProperties": dict(self.settings)}

    # --- waiting ----------------------------------------------------------------------------

    def wait_until_running(self) -> None:
        """Wait until all persistent queries are running."""
        for each in self._engine.commands.running.values():
            if not each.runtime.wait_running(TIMEOUT_MS):
                raise CaseFailed(f"query {each.info.id} is not running: {each.runtime.failures}")

    def wait_until_caught_up(self) -> None:
        """Wait until the persistent queries have processed all records of their topics."""
        clock = SystemClock()
        deadline_ms = clock.monotonic_ms() + TIMEOUT_MS
        never = concurrency.Condition()
        while behind := self._behind():
            if clock.monotonic_ms() > deadline_ms:
                raise CaseFailed(f"queries do not catch up: {behind}")
            with never:
                clock.wait(never, LOOK_AGAIN_MS)

    def _behind(self) -> list[TopicPartition]:
        """The unprocessed records; positions are read before ends, so that no record is missed."""
        committed: dict[str, Mapping[TopicPartition, Any]] = {}
        read: dict[str, list[str]] = {}
        names = list(self._administration.list_topics())
        for each in self._engine.commands.running.values():
            group = each.runtime.application_id
            internal = [
                name
                for name in names
                if name.startswith(f"{group}-") and not name.endswith("-changelog")
            ]
            read[group] = [*topics_read(each.info.planned.plan), *internal]
            committed[group] = self._administration.list_group_offsets(group).values
        behind = []
        for group, topics in read.items():
            for place, end in self._ends(topics).items():
                at = committed[group].get(place)
                if end > (0 if at is None else at.offset):
                    behind.append(place)
        return behind

    def _ends(self, topics: list[str]) -> dict[TopicPartition, int]:
        described = self._administration.describe_topics(topics).values
        places = [
            TopicPartition(name, number)
            for name, info in described.items()
            for number in info.partitions
        ]
        found = self._administration.list_offsets(dict.fromkeys(places, -1)).values
        return {place: each.offset for place, each in found.items()}


class Service:
    """The server of a process; the engine behind it changes with each case."""

    def __init__(self) -> None:
        """Listens immediately: starting and stopping takes longer than most cases."""
        self._behind: ASGIApp | None = None
        self._server = HttpServer(self, listen="127.0.0.1:0", name="rest-cases")
        self._server.start()
        url = f"http://{self._server.address}"
        # The server closes idle connections, possibly just when one is used again.
        kept = httpx.Limits(max_keepalive_connections=0)
        self._client = httpx.Client(base_url=url, timeout=TIMEOUT_MS / 1000, limits=kept)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request of the running case."""
        assert self._behind is not None, "requests are only sent during cases"
        await self._behind(scope, receive, send)

    def close(self) -> None:
        """Stop."""
        self._client.close()
        self._server.close()

    @contextmanager
    def environment(
        self, functions: FunctionRegistry, settings: Mapping[str, object]
    ) -> Iterator[RestEnvironment]:
        """A separate broker and engine."""
        registry = MemoryRegistry()
        config = SqlConfig(ENGINE_SETTINGS)
        with (
            tempfile.TemporaryDirectory() as folder,
            Broker(
                BrokerConfig.from_properties(BROKER_SETTINGS), data_directory=f"{folder}/broker"
            ) as broker,
            Engine(
                broker,
                data_directory=f"{folder}/sql",
                registry=registry,
                config=config,
                functions=functions,
            ) as engine,
        ):
            endpoints = SqlEndpoints(engine)
            self._behind = sql_application(endpoints)
            opened = RestEnvironment(self._client, broker, engine, registry, settings)
            try:
                yield opened
            finally:
                opened.close()
                endpoints.close()


@cache
def service() -> Service:
    """The server of this process, which is closed with it."""
    made = Service()
    atexit.register(made.close)
    return made
