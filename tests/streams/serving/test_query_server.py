"""Two instances of one application: each answers for the keys of both."""

import http.client
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlencode

import orjson
import pytest

from broker import Broker
from broker.client import producer
from broker.serde import JsonSerde, LongSerde, StringSerde
from streams import AppState, StreamsApp, StreamsBuilder, session, tumbling
from streams.errors import StreamsError
from streams.serving import QueryServer
from streams.serving.queries import BadQuery, parse_key, parse_query
from streams.topology import Topology
from tests.streams.runtime.apps import DEADLINE_MS, make_topics
from tests.support.peer import wait_until
from tests.support.ports import held_ports

WORDS = [f"word-{number}" for number in range(20)]


def counting() -> Topology:
    """Counts of words: all, by minute, by session."""
    builder = StreamsBuilder()
    words = builder.stream("words", key=str, value=str).group_by_key()
    words.count(store="counts")
    words.windowed_by(tumbling(60_000)).count(store="by-minute")
    words.windowed_by(session(1_000)).count(store="sessions")
    return builder.build()


class Asked:
    """The answers of one instance."""

    def __init__(self, port: int) -> None:
        self.port = port

    def raw(self, path: str, **parameters: object) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("localhost", self.port, timeout=60)
        try:
            connection.request("GET", f"{path}?{urlencode(parameters)}")
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def status(self, path: str, **parameters: object) -> int:
        return self.raw(path, **parameters)[0]

    def json(self, path: str, **parameters: object) -> dict[str, object]:
        status, body = self.raw(path, **parameters)
        assert status == 200, body
        found: dict[str, object] = orjson.loads(body)
        return found


@contextmanager
def instances(broker: Broker, folder: Path) -> Iterator[list[Asked]]:
    """Two instances that run, with everything counted."""
    make_topics(broker, words=4)
    with producer(broker) as out:
        for number, word in enumerate(WORDS * 3):
            out.send("words", b"x", word.encode(), timestamp_ms=number)
    ports = held_ports(2)
    with ExitStack() as running:
        apps = []
        for port in ports:
            app = StreamsApp(
                counting(),
                application_id="counting",
                broker=broker,
                state_dir=folder / str(port),
                application_server=f"localhost:{port}",
                commit_interval_ms=50,
                heartbeat_interval_ms=100,
            )
            running.enter_context(app)
            running.enter_context(QueryServer(app))
            apps.append(app)
        asked = [Asked(port) for port in ports]

        def ready() -> bool:
            if any(app.state is not AppState.RUNNING for app in apps):
                return False
            if any(len(app.metadata("counts")) != 2 for app in apps):
                return False
            status, body = asked[0].raw("/stores/counts/all")
            entries = orjson.loads(body)["entries"] if status == 200 else []
            counted: int = sum(entry["value"] for entry in entries)
            return counted == 3 * len(WORDS)

        wait_until(ready, "two instances that have counted", timeout_s=DEADLINE_MS / 1000)
        yield asked


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_directory=str(tmp_path / "broker")) as embedded:
        yield embedded


@pytest.mark.slow
def test_any_instance_answers_for_any_key(broker: Broker, tmp_path: Path) -> None:
    with instances(broker, tmp_path) as asked:
        for instance in asked:
            for word in WORDS:
                entry = instance.json("/stores/counts/get", key=word)
                assert (entry["key"], entry["value"]) == (word, 3)
            missing = instance.raw("/stores/counts/get", key="nobody")
            assert missing[0] == 404
        local = [instance.json("/stores/counts/all", local="true")["entries"] for instance in asked]
        counts = [len(entries) for entries in local if isinstance(entries, list)]
        assert sum(counts) == len(WORDS)
        assert all(counts), "each instance has some of the partitions"
        check_many(asked[1])
        check_windows_and_sessions(asked[0])
        check_refusals(asked[0])
        check_pages(asked[0])


def check_many(instance: Asked) -> None:
    """Ranges and scans are in the order of keys over all instances."""
    entries = instance.json("/stores/counts/all")["entries"]
    assert isinstance(entries, list)
    assert [entry["key"] for entry in entries] == sorted(WORDS)
    found = instance.json("/stores/counts/range", **{"from": "word-11", "to": "word-13"})["entries"]
    assert isinstance(found, list)
    assert [entry["key"] for entry in found] == ["word-11", "word-12", "word-13"]
    backwards = instance.json("/stores/counts/range", reverse="true", limit=2)["entries"]
    assert isinstance(backwards, list)
    assert [entry["key"] for entry in backwards] == sorted(WORDS)[:-3:-1]
    prefixed = instance.json("/stores/counts/prefix", prefix="word-1")["entries"]
    assert isinstance(prefixed, list)
    assert len(prefixed) == 11


def check_windows_and_sessions(instance: Asked) -> None:
    """Windows and sessions show their times."""
    windows = instance.json("/stores/by-minute/windows", key="word-5")["entries"]
    assert windows == [
        {"key": "word-5", "start_ms": 0, "end_ms": 60_000, "value": 3, "timestamp_ms": 45}
    ]
    one = instance.json("/stores/by-minute/get", key="word-5", **{"from": 0})
    assert one["value"] == 3
    sessions = instance.json("/stores/sessions/sessions", key="word-5")["entries"]
    assert sessions == [{"key": "word-5", "start_ms": 5, "end_ms": 45, "value": 3}]
    everything = instance.json("/stores/by-minute/windows")["entries"]
    assert isinstance(everything, list)
    assert len(everything) == len(WORDS)


def check_refusals(instance: Asked) -> None:
    """What cannot be asked is refused, with the reason."""
    assert instance.status("/stores/nothing/get", key="a") == 404
    assert instance.status("/stores/counts/get") == 400
    assert instance.status("/stores/counts/sessions", key="a") == 400
    assert instance.status("/stores/counts/dance") == 400
    assert instance.status("/stores/counts/all", limit="many") == 400
    assert instance.status("/nowhere") == 404


def check_pages(instance: Asked) -> None:
    """The pages about the application itself."""
    overview = instance.json("/")
    assert overview["stores"] == ["by-minute", "counts", "sessions"]
    assert isinstance(overview["instances"], list)
    assert len(overview["instances"]) == 2
    assert b"Sub-topology: 0" in instance.raw("/topology")[1]
    assert b"# TYPE" in instance.raw("/metrics")[1]
    lags = orjson.loads(instance.raw("/lags")[1])
    assert {each["store"] for each in lags} == {"by-minute", "counts", "sessions"}
    stores = orjson.loads(instance.raw("/stores")[1])
    held = [
        number
        for each in stores
        if each["name"] == "counts"
        for partitions in each["active"].values()
        for number in partitions
    ]
    assert sorted(held) == [0, 1, 2, 3]


def test_an_application_without_an_address_serves_nothing(tmp_path: Path) -> None:
    app = StreamsApp(counting(), application_id="counting", broker="localhost:1")
    with pytest.raises(StreamsError, match="address for queries"):
        QueryServer(app)


def test_keys_are_read_as_the_store_writes_them() -> None:
    assert parse_key("12", StringSerde()) == "12"
    assert parse_key("12", LongSerde()) == 12
    assert parse_key('{"a": 1}', JsonSerde()) == {"a": 1}
    with pytest.raises(BadQuery, match="cannot be a key of this store"):
        parse_query("get", {"key": "twelve"}, LongSerde())
