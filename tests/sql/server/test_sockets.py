"""/ws/query: rows over a WebSocket, by a client of our own."""

import base64
import socket
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.broker import Broker
from broker.config import BrokerConfig
from sql.server.server import SqlServer
from sql.server.websocket import (
    FRAME_BYTES_MAX,
    PROTOCOL_ERROR,
    FrameError,
    accept_token,
    frame,
    take_frame,
)
from tests.sql.engine.conftest import SETTINGS
from tests.sql.engine.engines import ORDERS, engine_of
from tests.sql.server.conftest import SECONDS_MAX, Served
from tests.support.peer import wait_until

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
KEY = base64.b64encode(b"0123456789abcdef").decode()
MASK = b"\x01\x02\x03\x04"


def masked(opcode: int, content: bytes, *, first: int = 0x80) -> bytes:
    """A frame as clients send it."""
    length = len(content)
    if length < 126:
        head = struct.pack("!BB", first | opcode, 0x80 | length)
    else:
        head = struct.pack("!BBQ", first | opcode, 0xFF, length)
    return head + MASK + bytes(each ^ MASK[at % 4] for at, each in enumerate(content))


class Client:
    """The client's side of a WebSocket."""

    def __init__(self, connection: socket.socket, reader: BinaryIO) -> None:
        self._connection = connection
        self._reader = reader

    def open(self, target: str, key: str = KEY) -> str:
        """Ask for a WebSocket: the status line."""
        head = (
            f"GET {target} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        self._connection.sendall(head.encode())
        status = self._reader.readline().decode().strip()
        while self._reader.readline().strip():
            pass
        return status

    def send(self, data: bytes) -> None:
        self._connection.sendall(data)

    def frame(self) -> tuple[int, bytes]:
        first, length = self._reader.read(2)
        if length == 126:
            length = int.from_bytes(self._reader.read(2), "big")
        return first & 0x0F, self._reader.read(length)

    # Any: what JSON holds.
    def json(self) -> Any:
        opcode, content = self.frame()
        assert opcode == TEXT, content
        return orjson.loads(content)

    def closed(self) -> tuple[int, str]:
        opcode, content = self.frame()
        assert opcode == CLOSE, content
        return int.from_bytes(content[:2], "big"), content[2:].decode()


def connected(served: Served) -> AbstractContextManager[Client]:
    return connected_to(served.server)


@contextmanager
def connected_to(server: SqlServer) -> Iterator[Client]:
    host, _, port = server.address.rpartition(":")
    address = (host, int(port))
    with (
        socket.create_connection(address, timeout=SECONDS_MAX) as connection,
        connection.makefile("rb") as reader,
    ):
        yield Client(connection, reader)


def target(text: str) -> str:
    return f"/ws/query?request={quote(orjson.dumps({'ksql': text}))}"


@pytest.mark.slow
def test_columns_rows_and_an_end(served: Served) -> None:
    with connected(served) as client:
        text = "SELECT item, amount FROM orders EMIT CHANGES LIMIT 1;"
        assert client.open(target(text)) == "HTTP/1.1 101 Switching Protocols"
        columns = client.json()
        assert [each["name"] for each in columns] == ["ITEM", "AMOUNT"]
        assert columns[0]["schema"] == {"type": "STRING", "fields": None, "memberSchema": None}
        assert client.json() == {"row": {"columns": ["pen", 1]}}
        assert client.closed() == (1000, "done")


@pytest.mark.slow
def test_pull_queries_and_topics(served: Served) -> None:
    with connected(served) as client:
        client.open(target("SELECT * FROM totals WHERE id = 'b';"))
        client.json()
        assert client.json() == {"row": {"columns": ["b", 5]}}
        assert client.closed() == (1000, "done")
    with connected(served) as client:
        client.open(target("PRINT orders FROM BEGINNING LIMIT 1;"))
        assert client.frame()[1].startswith(b"Key format:")


@pytest.mark.slow
@pytest.mark.parametrize("text", ["SELECT * FROM orders EMIT CHANGES;", "PRINT orders;"])
def test_a_query_that_ends_with_its_server_is_an_error(tmp_path: Path, text: str) -> None:
    config = BrokerConfig.from_properties(SETTINGS)
    with (
        Broker(config, data_directory=str(tmp_path / "broker")) as broker,
        engine_of(broker, tmp_path) as engine,
        SqlServer(engine, listen="127.0.0.1:0") as server,
        connected_to(server) as client,
    ):
        engine.execute(ORDERS)
        client.open(target(text))
        if text.startswith("SELECT"):
            client.json()  # the columns
        server.close()
        assert "shutting down" in client.json()["message"]
        assert client.closed()[0] == 1011


@pytest.mark.slow
def test_what_is_wrong_is_sent_and_the_socket_closed(served: Served) -> None:
    with connected(served) as client:
        client.open(target("SELECT nothing FROM totals;"))
        assert client.json()["error_code"] == 40001
        assert client.closed()[0] == 1003
    with connected(served) as client:
        client.open("/ws/query")
        assert client.json()["error_code"] == 40000
        assert client.closed()[0] == 1003
    with connected(served) as client:
        assert client.open("/ws/other") == "HTTP/1.1 403 Forbidden"
    with connected(served) as client:
        assert client.open("/ws/query", key="short") == "HTTP/1.1 400 Bad Request"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["a close frame", "no frame", "no connection"])
def test_the_query_ends_with_its_client(served: Served, how: str) -> None:
    with connected(served) as client:
        client.open(target("SELECT item FROM orders EMIT CHANGES;"))
        client.json()
        assert client.json() == {"row": {"columns": ["pen"]}}
        assert client.json() == {"row": {"columns": ["ink"]}}
        client.send(masked(PING, b"there?"))
        assert client.frame() == (PONG, b"there?")
        client.send(masked(TEXT, b"dropped"))
        if how == "a close frame":
            client.send(masked(CLOSE, struct.pack("!H", 1000)))
            assert client.closed()[0] == 1000
        elif how == "no frame":
            client.send(b"\xff\xff")
            assert client.closed()[0] == PROTOCOL_ERROR
    wait_until(lambda: not served.engine.transient_queries.push_queries, "the query's end")


def test_the_token_is_that_of_the_standard() -> None:
    assert accept_token(b"dGhlIHNhbXBsZSBub25jZQ==") == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert accept_token(b"") is None
    assert accept_token(b"\xff") is None


@given(opcode=st.sampled_from([TEXT, 2, 0]), content=st.binary(max_size=300), more=st.binary())
def test_frames_of_clients_are_read_when_they_are_whole(
    opcode: int, content: bytes, more: bytes
) -> None:
    data = masked(opcode, content)
    for cut in (1, len(data) - 1):
        assert take_frame(bytearray(data[:cut])) is None
    buffer = bytearray(data + more)
    assert take_frame(buffer) == (opcode, content)
    assert buffer == more


@given(st.binary(max_size=20))
def test_bytes_that_are_no_frame_are_refused_or_waited_for(data: bytes) -> None:
    with suppress(FrameError):
        found = take_frame(bytearray(data))
        assert found is None or len(found[1]) <= len(data)


def test_long_frames_are_refused_before_they_are_there() -> None:
    with pytest.raises(FrameError, match="too long"):
        take_frame(bytearray(struct.pack("!BBQ", 0x81, 0xFF, FRAME_BYTES_MAX + 1)))


@pytest.mark.parametrize("length", [0, 125, 126, 65535, 65536])
def test_frames_of_servers_say_how_long_they_are(length: int) -> None:
    written = frame(TEXT, b"x" * length)
    short = written[1]
    size = {126: 2, 127: 8}.get(short, 0)
    said = int.from_bytes(written[2 : 2 + size], "big") if size else short
    assert (said, len(written)) == (length, 2 + size + length)
