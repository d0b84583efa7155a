"""Answers that are streamed: they come as rows come, and end with their readers."""

import threading
from pathlib import Path

import httpx
import orjson
import pytest

from broker.broker import Broker
from broker.config import BrokerConfig
from sql.engine.engine import Engine
from sql.engine.results import LIMIT_REACHED
from sql.server.answers import DELIMITED, JSON, PROTOBUF, V1_JSON
from sql.server.server import SqlServer
from tests.sql.engine.conftest import SETTINGS as BROKER_SETTINGS
from tests.sql.engine.engines import ORDERS, TOTALS, engine_of
from tests.sql.server.conftest import SECONDS_MAX, Served
from tests.support.peer import wait_until

pytestmark = pytest.mark.slow

PUSH = {"sql": "SELECT item FROM orders EMIT CHANGES;"}


def no_push_query(engine: Engine) -> bool:
    return not engine.transient_queries.push_queries


def test_rows_come_while_the_query_runs(served: Served) -> None:
    query = {"ksql": "SELECT k FROM kinds WHERE k > 100 EMIT CHANGES LIMIT 2;"}
    with served.client.stream("POST", "/query", json=query) as response:
        lines = response.iter_lines()
        assert orjson.loads(next(lines).strip("[,"))["header"]["schema"] == "`K` INTEGER"
        for number in (101, 102):
            served.client.post("/ksql", json={"ksql": f"INSERT INTO kinds (k) VALUES ({number});"})
            assert orjson.loads(next(lines).rstrip(",")) == {"row": {"columns": [number]}}
        assert orjson.loads(next(lines).rstrip("]")) == {"finalMessage": LIMIT_REACHED}
    wait_until(lambda: no_push_query(served.engine), "the query's end")


def test_a_query_ends_when_its_reader_goes_away(served: Served) -> None:
    with served.client.stream("POST", "/query-stream", json=PUSH) as response:
        lines = response.iter_lines()
        query_id = orjson.loads(next(lines))["queryId"]
        assert orjson.loads(next(lines)) == ["pen"]
        assert list(served.engine.transient_queries.push_queries) == [query_id]
    wait_until(lambda: no_push_query(served.engine), "the query's end")


@pytest.mark.parametrize("by", ["close-query", "terminate"])
def test_a_query_ends_on_request(served: Served, by: str) -> None:
    with served.client.stream("POST", "/query-stream", json=PUSH) as response:
        lines = response.iter_lines()
        query_id = orjson.loads(next(lines))["queryId"]
        if by == "close-query":
            closed = served.client.post("/close-query", json={"queryId": query_id})
        else:
            closed = served.client.post("/ksql", json={"ksql": f"TERMINATE {query_id};"})
        assert closed.status_code == httpx.codes.OK
        assert {line for line in lines if line} <= {'["pen"]', '["ink"]'}
    wait_until(lambda: no_push_query(served.engine), "the query's end")


def test_many_rows_wait_for_a_slow_reader(served: Served) -> None:
    create = (
        "CREATE STREAM many (n INT, t STRING) "
        "WITH (kafka_topic='many', value_format='JSON', partitions=1);"
    )
    served.client.post("/ksql", json={"ksql": create})
    count = 300
    lines = [{"target": "many"}, *({"n": number, "t": "x" * 5000} for number in range(count))]
    body = b"\n".join(map(orjson.dumps, lines))
    acknowledged = served.client.post("/inserts-stream", content=body).text.splitlines()
    assert orjson.loads(acknowledged[-1]) == {"status": "ok", "seq": count - 1}
    query = {"sql": f"SELECT n, t FROM many EMIT CHANGES LIMIT {count};"}
    with served.client.stream("POST", "/query-stream", json=query) as response:
        rows = response.iter_lines()
        next(rows)
        assert [orjson.loads(row)[0] for row in rows] == list(range(count))


def test_inserts_are_acknowledged_while_the_request_goes_on(served: Served) -> None:
    """The rows are there, although the stream breaks off with an error."""
    body = b'{"target": "kinds"}\n{"k": 1001}\n{"k": 1002, "f": []}\n{"k": 1003}\n'
    acks = served.client.post("/inserts-stream", content=body).text.splitlines()
    assert [orjson.loads(each)["status"] for each in acks] == ["ok", "error"]
    found = served.client.post("/query", json={"ksql": "SELECT k FROM kinds WHERE k > 1000;"})
    assert [each["row"]["columns"] for each in found.json()[1:-1]] == [[1001]]


def test_a_printed_topic_ends_with_its_reader(served: Served) -> None:
    query = {"ksql": "PRINT orders FROM BEGINNING;"}
    with served.client.stream("POST", "/query", json=query) as response:
        lines = response.iter_lines()
        assert next(lines).startswith("Key format:")


@pytest.fixture
def own(tmp_path: Path) -> "Own":
    """A server that the test may end."""
    return Own(tmp_path)


class Own:
    """A broker, an engine and a server for one test."""

    def __init__(self, folder: Path) -> None:
        """Nothing runs before it is entered."""
        config = BrokerConfig.from_properties(BROKER_SETTINGS)
        self._broker = Broker(config, data_directory=str(folder / "broker"))
        self._folder = folder

    def __enter__(self) -> tuple[Engine, SqlServer]:
        """Start."""
        self._broker.__enter__()
        self._engine = engine_of(self._broker, self._folder).start()
        self._server = SqlServer(self._engine, listen="127.0.0.1:0").start()
        return self._engine, self._server

    def __exit__(self, *failure: object) -> None:
        """Stop."""
        self._server.close()
        self._engine.close()
        self._broker.close()


def test_a_server_that_closes_ends_its_answers(own: Own) -> None:
    with own as (engine, server):
        engine.execute(ORDERS)
        answered: list[httpx.Response] = []
        query = {"ksql": "SELECT * FROM orders EMIT CHANGES;"}

        def ask() -> None:
            answered.append(httpx.post(f"{server.url}/query", json=query, timeout=SECONDS_MAX))

        reader = threading.Thread(target=ask)
        reader.start()
        wait_until(lambda: not no_push_query(engine), "the query")
        server.close()
        reader.join()
        assert [each.status_code for each in answered] == [httpx.codes.OK]
        assert no_push_query(engine)


@pytest.mark.parametrize("http2", [False, True])
@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/query", V1_JSON),
        ("/query-stream", DELIMITED),
        ("/query-stream", JSON),
        ("/query-stream", PROTOBUF),
    ],
)
def test_an_answer_that_ends_with_its_server_is_an_error(
    own: Own, path: str, accept: str, http2: bool
) -> None:
    with (
        own as (engine, server),
        httpx.Client(http1=not http2, http2=http2, timeout=SECONDS_MAX) as client,
    ):
        engine.execute(ORDERS)
        text = "SELECT * FROM orders EMIT CHANGES;"
        body = {"ksql": text, "sql": text}
        headers = {"accept": accept}
        with client.stream("POST", server.url + path, json=body, headers=headers) as response:
            parts = response.iter_text()
            next(parts)
            server.close()
            assert "shutting down" in "".join(parts)


@pytest.mark.parametrize("http2", [False, True])
def test_a_printed_topic_that_ends_with_its_server_is_broken_off(own: Own, http2: bool) -> None:
    with (
        own as (engine, server),
        httpx.Client(http1=not http2, http2=http2, timeout=SECONDS_MAX) as client,
    ):
        engine.execute(ORDERS + "INSERT INTO orders VALUES ('a', 'pen', 1);")
        body = {"ksql": "PRINT orders FROM BEGINNING;"}
        with client.stream("POST", f"{server.url}/query", json=body) as response:
            parts = response.iter_text()
            next(parts)
            server.close()
            with pytest.raises(httpx.RemoteProtocolError):
                list(parts)


def test_push_queries_have_a_limit(own: Own) -> None:
    with own as (engine, server), httpx.Client(base_url=server.url, timeout=SECONDS_MAX) as client:
        engine.execute(ORDERS)
        many = engine.config.whole("ksql.max.push.queries")
        engine.transient_queries._push_queries.update(dict.fromkeys(map(str, range(many))))  # type: ignore[arg-type]
        refused = client.post("/query", json={"ksql": "SELECT * FROM orders EMIT CHANGES;"})
        engine.transient_queries._push_queries.clear()
        assert (refused.status_code, refused.json()["error_code"]) == (400, 40003)


def test_a_terminated_cluster_has_nothing_left(own: Own) -> None:
    with own as (engine, server), httpx.Client(base_url=server.url, timeout=SECONDS_MAX) as client:
        engine.execute(ORDERS + TOTALS)
        wrong = client.post("/ksql/terminate", json={"deleteTopicList": ["("]})
        assert wrong.status_code == httpx.codes.BAD_REQUEST
        done = client.post("/ksql/terminate", json={"deleteTopicList": ["TOT.*"]})
        assert done.status_code == httpx.codes.OK, done.text
        assert not engine.state.catalog.sources
        assert not engine.state.queries
        after = client.post("/ksql", json={"ksql": "SHOW TOPICS;"})
        assert (after.status_code, after.json()["error_code"]) == (503, 50304)
        assert client.get("/info").status_code == httpx.codes.OK
        [topics] = engine.execute("SHOW TOPICS;")
        assert "TOTALS" not in str(topics)
        assert "orders" in str(topics)
