"""HttpServer: clients that connect and say nothing do not keep others out."""

import http.client
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from broker.rest import http_server
from broker.rest.http_server import HttpServer
from broker.rest.idle_connections import SILENT_SECONDS_MAX, IdleConnections

MANY = 20
DEADLINE_SECONDS = 30


async def hello(request: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(http_server, "CONNECTIONS_MANY", MANY)
    monkeypatch.setattr(http_server, "CONNECTIONS_MAX", MANY + 5)
    application = Starlette(routes=[Route("/", hello)])
    with HttpServer(application, listen="127.0.0.1:0", name="test") as server:
        host, _, port = server.address.rpartition(":")
        yield host, int(port)


def ask(address: tuple[str, int]) -> int:
    connection = http.client.HTTPConnection(*address, timeout=DEADLINE_SECONDS)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("sent", [b"", b"GET / HT"], ids=["nothing", "half a request line"])
def test_silent_clients_do_not_keep_others_out(address: tuple[str, int], sent: bytes) -> None:
    with ExitStack() as stack:
        silent = []
        for _ in range(3 * MANY):
            client = stack.enter_context(socket.create_connection(address, DEADLINE_SECONDS))
            client.sendall(sent)
            silent.append(client)
        assert ask(address) == 200
        assert silent[0].recv(1) == b"", "the oldest one was closed"


@dataclass(eq=False)
class FakeTransport:
    """Remembers that it was closed."""

    closed: bool = False

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True


@dataclass(eq=False)
class FakeCycle:
    """A request, answered or not."""

    response_complete: bool = False


@dataclass(eq=False)
class FakeConnection:
    """What is asked of uvicorn's protocols."""

    cycle: FakeCycle | None = None
    transport: FakeTransport = field(default_factory=FakeTransport)

    def shutdown(self) -> None:
        self.transport.closed = True


@dataclass
class FakeTime:
    """Seconds that pass when they should."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_a_client_that_sends_no_request_is_closed_after_a_while() -> None:
    time = FakeTime()
    idle = IdleConnections(100, now=time)
    silent, asking, answered = (
        FakeConnection(),
        FakeConnection(FakeCycle()),
        FakeConnection(FakeCycle(response_complete=True)),
    )
    connections = {silent, asking, answered}
    idle.close_silent(connections)
    time.seconds += SILENT_SECONDS_MAX - 1
    idle.close_silent(connections)
    assert not silent.transport.closed
    time.seconds += 1
    idle.close_silent(connections)
    assert silent.transport.closed
    assert not asking.transport.closed
    assert not answered.transport.closed, "uvicorn's own timeout is for these"


def test_the_longest_idle_connection_makes_room_and_busy_ones_never_do() -> None:
    time = FakeTime()
    idle = IdleConnections(3, now=time)
    busy = FakeConnection(FakeCycle())
    oldest, newer = FakeConnection(), FakeConnection(FakeCycle(response_complete=True))
    idle.close_silent({busy, oldest})
    time.seconds += 1
    idle.make_room({busy, oldest})
    assert not oldest.transport.closed
    idle.make_room({busy, oldest, newer})
    assert (oldest.transport.closed, newer.transport.closed) == (True, False)
    idle.make_room({busy, newer, FakeConnection(FakeCycle())})
    idle.make_room({busy})
    assert newer.transport.closed
    assert not busy.transport.closed


def test_of_connections_that_are_idle_equally_long_the_first_one_makes_room() -> None:
    idle = IdleConnections(3, now=FakeTime())
    connections = [FakeConnection() for _ in range(50)]
    for connection in connections:
        idle.opened(connection)
    idle.make_room(set(connections))
    assert [each.transport.closed for each in connections] == [True] + 49 * [False]
