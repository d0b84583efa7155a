"""The client and its session: against our server, and against answers that servers may give."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from io import StringIO
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as some

from broker.broker import Broker
from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.errors import MillstreamError
from sql.client import ServerFailed, SqlClient
from sql.errors import SqlError
from sql.server.server import SqlServer
from sql.shell.commands import run_command
from sql.shell.remote import RemoteSession
from sql.shell.session import SessionScope
from sql.shell.shell import QueryLimits, Shell
from tests.sql.engine.conftest import SETTINGS
from tests.sql.engine.engines import ORDERS, engine_of
from tests.sql.shell.fakes import plain_screen
from tests.support.peer import wait_until

INFO = {"KsqlServerInfo": {"version": "7.7.7"}}


def client_of(answer: Callable[[httpx.Request], httpx.Response]) -> SqlClient:
    return SqlClient("http://server", transport=httpx.MockTransport(answer))


def answering(content: bytes, status: int = 200) -> SqlClient:
    return client_of(lambda _: httpx.Response(status, content=content))


# One client for many examples: to make one takes longer than to ask it.
ANY_ANSWER: list[httpx.Response] = []
ANY_CLIENT = client_of(lambda _: ANY_ANSWER.pop())


# --- our server ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    folder = tmp_path_factory.mktemp("server")
    with (
        Broker(
            BrokerConfig.from_properties(SETTINGS), data_directory=str(folder / "broker")
        ) as broker,
        engine_of(broker, folder) as engine,
        SqlServer(engine, listen="127.0.0.1:0") as server,
    ):
        engine.execute(ORDERS)
        engine.execute("INSERT INTO orders VALUES ('a', 'pen', 2);")
        engine.execute("INSERT INTO orders VALUES ('a', 'ink', 3);")
        yield server


@pytest.fixture
def remote(server: SqlServer) -> Iterator[tuple[Shell, StringIO]]:
    screen, written = plain_screen()
    session = RemoteSession(SqlClient(server.url))
    yield Shell(session, screen, run_command), written
    session.close()


@pytest.mark.slow
def test_statements_are_carried_out_by_the_server(remote: tuple[Shell, StringIO]) -> None:
    shell, written = remote
    shell.run("SHOW STREAMS;")
    assert "| ORDERS    | orders " in written.getvalue()
    with pytest.raises(ServerFailed, match="MISSING") as failed:
        shell.run("DESCRIBE missing;")
    assert failed.value.code // 100 == 400


@pytest.mark.slow
def test_rows_come_from_the_server(remote: tuple[Shell, StringIO]) -> None:
    shell, written = remote
    shell.run("SET 'auto.offset.reset' = 'earliest'; output JSON;")
    shell.run("SELECT item, amount * 2 AS twice FROM orders;")
    shell.run("DEFINE one = '1'; SELECT item FROM orders EMIT CHANGES LIMIT ${one};")
    assert written.getvalue().splitlines()[2:] == [
        '{"ITEM":"pen","TWICE":4}',
        '{"ITEM":"ink","TWICE":6}',
        '{"ITEM":"pen"}',
    ]
    with pytest.raises(ServerFailed, match="NOTHING"):
        shell.run("SELECT nothing FROM orders;")


@pytest.mark.slow
def test_a_push_query_that_is_left_ends_on_the_server(
    remote: tuple[Shell, StringIO], server: SqlServer
) -> None:
    shell, _ = remote
    shell.limits = QueryLimits(rows=1)
    shell.run("SET 'auto.offset.reset' = 'earliest'; SELECT * FROM orders EMIT CHANGES;")
    [queries] = shell.session.execute("SHOW QUERIES;", SessionScope())
    assert queries["queries"] == []


@pytest.mark.slow
def test_topics_are_printed_by_the_server(remote: tuple[Shell, StringIO]) -> None:
    shell, written = remote
    shell.run("PRINT 'orders' FROM BEGINNING LIMIT 1;")
    assert "key: a" in written.getvalue()


@pytest.mark.slow
def test_the_server_knows_which_settings_there_are(remote: tuple[Shell, StringIO]) -> None:
    shell, written = remote
    with pytest.raises(ServerFailed):
        shell.run("SET 'no.such.setting' = '1';")
    shell.run("version; server")
    assert written.getvalue().splitlines()[1] == shell.session.where


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement", ["SELECT * FROM orders EMIT CHANGES;", "PRINT 'orders' FROM BEGINNING;"]
)
def test_a_server_that_stops_while_rows_come_is_an_error(tmp_path: Path, statement: str) -> None:
    screen, written = plain_screen()
    config = BrokerConfig.from_properties(SETTINGS)
    with (
        Broker(config, data_directory=str(tmp_path / "broker")) as broker,
        engine_of(broker, tmp_path) as engine,
        SqlServer(engine, listen="127.0.0.1:0") as server,
        ThreadPoolExecutor() as threads,
    ):
        engine.execute(f"{ORDERS} INSERT INTO orders VALUES ('a', 'pen', 2);")
        session = RemoteSession(SqlClient(server.url))
        shown = threads.submit(Shell(session, screen, run_command).run, statement)
        wait_until(lambda: "pen" in written.getvalue(), "the first row")
        server.close()
        with pytest.raises(MillstreamError):
            shown.result()
        session.close()


# --- answers of any server -----------------------------------------------------------------------


def test_an_error_of_the_server_has_its_code() -> None:
    client = answering(b'{"@type":"statement_error","error_code":40001,"message":"no"}', 400)
    with pytest.raises(ServerFailed, match=r"^no$") as failed:
        client.execute("x;")
    assert failed.value.code == 40001


def test_an_error_may_come_after_rows() -> None:
    lines = b'{"queryId":"q","columnNames":["A"],"columnTypes":["DECIMAL(4, 2)"]}\n[1.50]\n'
    client = answering(lines + b'{"error_code":50000,"message":"broken"}\n')
    answer = client.query("SELECT 1;")
    rows = answer.rows()
    assert next(rows) == [Decimal("1.50")]
    with pytest.raises(ServerFailed, match="broken"):
        next(rows)


def test_the_last_line_may_say_why_it_is_the_last() -> None:
    client = answering(
        b'{"queryId":null,"columnNames":["A"],"columnTypes":["INT"]}\n'
        b'[1]\n{"finalMessage":"Limit Reached"}'
    )
    answer = client.query("SELECT 1;")
    assert list(answer.rows()) == [[1]]
    assert answer.final_message == "Limit Reached"


def test_a_query_whose_reader_is_gone_is_closed() -> None:
    paths: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        return httpx.Response(
            200, content=b'{"queryId":"q","columnNames":["A"],"columnTypes":["INT"]}\n[1]\n[2]\n'
        )

    found = client_of(answer).query("SELECT 1 EMIT CHANGES;")
    assert next(found.rows()) == [1]
    found.close()
    found.close()
    assert paths == ["/query-stream", "/close-query"]


def test_silence_for_the_time_given_ends_a_query() -> None:
    class Silent(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b'{"queryId":null,"columnNames":["A"],"columnTypes":["INT"]}\n[1]\n'
            raise httpx.ReadTimeout("")

    client = client_of(lambda _: httpx.Response(200, stream=Silent()))
    assert list(client.query("SELECT 1;", timeout_ms=1).rows()) == [[1]]


def test_a_query_whose_rows_never_stop_ends_when_its_time_is_up() -> None:
    clock = ManualClock()
    header = b'{"queryId":null,"columnNames":["A"],"columnTypes":["INT"]}\n'

    class Endless(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield header
            while True:
                clock.advance(10)
                yield b"[1]\n"

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/info":
            return httpx.Response(200, json=INFO)
        return httpx.Response(200, stream=Endless())

    session = RemoteSession(client_of(answer), clock)
    assert len(list(session.query("SELECT 1;", SessionScope(), 50).rows())) == 5
    assert len(list(session.print_topic("PRINT t;", SessionScope(), 50).lines())) == 6


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(ServerFailed, match=r"no response from http://127.0.0.1:1"):
        RemoteSession(SqlClient("127.0.0.1:1"))
    with pytest.raises(SqlError, match="not a valid server address"):
        SqlClient("http://server:port")


def test_the_version_is_the_servers() -> None:
    client = client_of(lambda _: httpx.Response(200, json=INFO))
    assert RemoteSession(client).version() == "7.7.7"


@pytest.mark.slow
@given(
    some.binary(max_size=60)
    | some.sampled_from([b"[", b"{}", b"[1]", b'{"columnNames":3}', b'{"message":{}}', b"null"]),
    some.sampled_from([200, 400, 500]),
)
def test_whatever_a_server_answers_is_an_answer_or_an_error(content: bytes, status: int) -> None:
    ANY_ANSWER[:] = [httpx.Response(status, content=content) for _ in range(3)]
    client = ANY_CLIENT
    for call in (client.info, lambda: client.execute("x"), lambda: list(client.query("x").rows())):
        try:
            call()
        except SqlError:
            continue
