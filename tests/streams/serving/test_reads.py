"""Stores as an application reads them itself, and bad queries over HTTP."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from broker import Broker
from broker.client import producer
from streams import AppState, StreamsApp, StreamsBuilder, session, tumbling
from streams.errors import StoreNotFound, StreamsError
from streams.serdes import serde_of
from streams.serving import QueryServer
from streams.serving.queries import BadQuery, parse_query
from streams.serving.routing import HostUnreachable, query_instance
from streams.state.store import StoreKind
from tests.streams.runtime.apps import DEADLINE_MS, make_topics
from tests.streams.serving.test_query_server import Asked, counting
from tests.support.peer import wait_until
from tests.support.ports import held_ports

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(data_directory=str(tmp_path_factory.mktemp("broker"))) as embedded:
        make_topics(embedded, words=2, names=1, raw=2)
        with producer(embedded) as out:
            for number, word in enumerate(["oats", "rye", "oats"]):
                out.send("words", b"x", word.encode(), timestamp_ms=number)
                out.send("names", word.upper().encode(), word.encode(), timestamp_ms=number)
            for key in (b"\xff\xfe", b"plain"):
                out.send("raw", b"y", key, timestamp_ms=7)
        yield embedded


@pytest.fixture(scope="module")
def app(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamsApp]:
    """Counts of all kinds, with everything counted; its QueryServer runs."""
    builder = StreamsBuilder()
    words = builder.stream("words", key=str, value=str).group_by_key()
    words.count(store="counts")
    words.windowed_by(tumbling(60_000)).count(store="by-minute")
    words.windowed_by(session(1_000)).count(store="sessions")
    builder.stream("raw", key=bytes, value=bytes).group_by_key().count(store="by-bytes")
    builder.global_table("names", key=str, value=str, store="names")
    (port,) = held_ports(1)
    with ExitStack() as running:
        started = running.enter_context(
            StreamsApp(
                builder.build(),
                application_id="reads",
                broker=broker,
                state_dir=tmp_path_factory.mktemp("state"),
                application_server=f"localhost:{port}",
                commit_interval_ms=50,
            )
        )
        running.enter_context(QueryServer(started))
        assert started.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)

        def counted() -> bool:
            stores = [started.store(name) for name in ("counts", "by-bytes")]
            return [len(list(store.all())) for store in stores] == [2, 2]

        wait_until(counted, "everything is counted", timeout_s=DEADLINE_MS / 1000)
        wait_until(lambda: started.store("counts").get("oats") == 2, "the second of them")
        yield started


@pytest.fixture
def asked(app: StreamsApp) -> Asked:
    return Asked(int(app.config.application_server.rpartition(":")[2]))


def test_a_table_is_read_as_plain_values_or_with_their_times(app: StreamsApp) -> None:
    assert dict(app.store("counts").all()) == {"oats": 2, "rye": 1}
    assert dict(app.store("counts", timestamped=True).all()) == {"oats": (2, 2), "rye": (1, 1)}
    plain = app.store("counts")
    assert (plain.get("rye"), plain.get("bran")) == (1, None)
    assert list(plain.range("p", None)) == [("rye", 1)]
    assert list(plain.reverse_range()) == list(plain.reverse_all()) == [("rye", 1), ("oats", 2)]
    assert list(plain.prefix_scan(b"oa")) == [("oats", 2)]
    assert plain.approximate_num_entries() >= 2


def test_windows_are_read_as_plain_values_or_with_their_times(app: StreamsApp) -> None:
    plain, timed = app.store("by-minute"), app.store("by-minute", timestamped=True)
    assert (plain.get("oats", 0), timed.get("oats", 0)) == (2, (2, 2))
    assert list(plain.fetch("oats", 0, 9)) == list(plain.backward_fetch("oats", 0, 9)) == [(0, 2)]
    everything = [("oats", 2), ("rye", 1)]
    for entries in (plain.all(), plain.fetch_all(0, 9), plain.fetch_keys(None, None, 0, 9)):
        assert [(window.key, count) for window, count in entries] == everything


def test_stores_without_times_are_the_same_either_way(app: StreamsApp) -> None:
    for timestamped in (False, True):
        ((window, count),) = app.store("sessions", timestamped=timestamped).fetch("oats")
        assert (window.start_ms, window.end_ms, count) == (0, 2, 2)


def test_a_global_table_has_plain_values_too(app: StreamsApp) -> None:
    assert app.store("names").get("rye") == "RYE"
    assert app.store("names", timestamped=True).get("rye") == ("RYE", 1)


def test_an_unknown_store_is_refused_with_the_known_ones(app: StreamsApp) -> None:
    with pytest.raises(StoreNotFound, match='no store "cuonts"') as refused:
        app.store("cuonts")
    assert refused.value.hint == "stores are by-bytes, by-minute, counts, names, sessions"


def test_answers_show_times(asked: Asked) -> None:
    assert asked.json("/stores/counts/get", key="oats") == {
        "key": "oats",
        "value": 2,
        "timestamp_ms": 2,
    }


def test_a_key_may_be_of_any_bytes(asked: Asked) -> None:
    status, body = asked.raw("/stores/by-bytes/get?key=%FF%FE&unused")
    assert (status, b'"value":1' in body) == (200, True)
    assert asked.raw("/stores/by-bytes/prefix?prefix=%FF&unused")[1].count(b'"value"') == 1
    assert asked.status("/stores/counts/get?key=%FF%FE&unused") == 400


def test_a_huge_limit_is_bounded_and_a_longer_one_refused(asked: Asked) -> None:
    entries = asked.json("/stores/counts/all", limit=10**15)["entries"]
    assert isinstance(entries, list)
    assert len(entries) == 2
    for limit in ("9" * 5000, "-1", "ten", str(1 << 63)):
        assert asked.status("/stores/counts/all", limit=limit) == 400
    assert asked.status("/stores/by-minute/windows", key="oats", to="9" * 30) == 400


def test_an_unknown_store_or_method_is_answered_in_json(asked: Asked) -> None:
    status, body = asked.raw("/stores/%FF/get", key="a")
    assert (status, b"there is no store" in body) == (404, True)


def test_entries_in_reverse_and_by_prefix_keep_their_order(asked: Asked) -> None:
    reverse = asked.json("/stores/counts/prefix", prefix="", reverse="true")["entries"]
    assert isinstance(reverse, list)
    assert [entry["key"] for entry in reverse] == ["oats", "rye"]


def test_keys_that_the_store_cannot_have_are_refused() -> None:
    for key, kind in (("9" * 30, int), ("9" * 5000, int), ("null", dict), ("{", dict)):
        with pytest.raises(BadQuery, match="cannot be a key of this store") as refused:
            parse_query("get", {"key": key}, serde_of(kind))
        assert len(str(refused.value)) < 300


def test_only_maps_are_read_backwards() -> None:
    query = parse_query("all", {"reverse": "true"}, serde_of(str))
    assert query.is_backwards(StoreKind.TIMESTAMPED_KEY_VALUE)
    assert not query.is_backwards(StoreKind.TIMESTAMPED_WINDOW)


def test_a_port_that_is_taken_is_named(broker: Broker, tmp_path: Path) -> None:
    with socket.create_server(("localhost", 0)) as taken:
        address = f"localhost:{taken.getsockname()[1]}"
        app = StreamsApp(
            counting(), application_id="taken", broker=broker, application_server=address
        )
        with pytest.raises(StreamsError, match="cannot serve queries: Address already in use"):
            QueryServer(app).start()


def test_an_application_in_processes_serves_no_queries() -> None:
    app = StreamsApp(
        counting(), application_id="a", broker="b:1", processes=2, application_server="b:2"
    )
    with pytest.raises(StreamsError, match="in processes"):
        QueryServer(app)
    with pytest.raises(StreamsError, match="in processes"):
        app.store("counts")


def test_an_instance_without_an_address_is_not_asked() -> None:
    with pytest.raises(HostUnreachable, match="which is not valid"):
        query_instance("", "counts", "all", {})
