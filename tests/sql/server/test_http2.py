"""HTTP/2 without TLS, on the same port as HTTP/1.1."""

import socket
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import orjson
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, Event, PingAckReceived, StreamReset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.broker import Broker
from broker.config import BrokerConfig
from sql.server.http2 import PREFACE, STREAMS_MAX
from sql.server.server import SqlServer
from tests.sql.engine.conftest import SETTINGS as BROKER_SETTINGS
from tests.sql.engine.engines import ORDERS, engine_of
from tests.sql.server.conftest import SECONDS_MAX, Served
from tests.support.peer import wait_until

pytestmark = pytest.mark.slow

ENDLESS = "SELECT * FROM orders EMIT CHANGES;"
# The headers ":method: GET", ":path: /", ":scheme: http" by their numbers.
GET_INFO = bytes([0x82, 0x84, 0x86])
PUSH = "SELECT item FROM orders EMIT CHANGES;"


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[httpx.Client]:
    """A client that knows that the server speaks HTTP/2."""
    with httpx.Client(
        base_url=served.server.url, http1=False, http2=True, timeout=SECONDS_MAX
    ) as client:
        yield client


class RawClient:
    """The client's side of a connection, frame by frame."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        self._connection = connection
        self._address = address
        self._events: deque[Event] = deque()
        self.protocol = H2Connection(H2Configuration(client_side=True))
        self.protocol.initiate_connection()
        self.flush()

    def flush(self) -> None:
        """Send what the protocol has made."""
        self._connection.sendall(self.protocol.data_to_send())

    def post(self, path: str, body: bytes, *, ends: bool = True) -> int:
        """Begin a request: its stream."""
        stream_id = self.protocol.get_next_available_stream_id()
        about = [(":method", "POST"), (":scheme", "http"), (":authority", self._address)]
        self.protocol.send_headers(stream_id, [*about, (":path", path)])
        self.protocol.send_data(stream_id, body, end_stream=ends)
        self.flush()
        return stream_id

    def events(self, *, acknowledge: bool = True) -> Iterator[Event]:
        """What comes, until the connection's end."""
        while True:
            # Who stops in the middle of what came leaves the rest for the next who asks.
            while self._events:
                event = self._events.popleft()
                if acknowledge and isinstance(event, DataReceived):
                    length = event.flow_controlled_length or 0
                    self.protocol.acknowledge_received_data(length, event.stream_id or 0)
                yield event
            self.flush()
            data = self._connection.recv(65536)
            if not data:
                return
            self._events.extend(self.protocol.receive_data(data))

    def frames(self, stream_id: int) -> Iterator[bytes]:
        """The parts of an answer."""
        for event in self.events():
            if isinstance(event, DataReceived) and event.stream_id == stream_id:
                yield event.data or b""


@contextmanager
def connected(served: Served) -> Iterator[RawClient]:
    host, port = served.server.address.split(":")
    with socket.create_connection((host, int(port)), SECONDS_MAX) as connection:
        yield RawClient(connection, served.server.address)


def query(text: str) -> bytes:
    return orjson.dumps({"sql": text})


def test_both_versions_answer_alike(served: Served, client: httpx.Client) -> None:
    for path in ("/info", "/healthcheck", "/nowhere"):
        old, new = served.client.get(path), client.get(path)
        assert (old.http_version, new.http_version) == ("HTTP/1.1", "HTTP/2")
        assert (old.status_code, old.json()) == (new.status_code, new.json())
        assert old.headers["content-type"] == new.headers["content-type"]


def test_a_query_in_the_path_and_escapes_are_understood(client: httpx.Client) -> None:
    found = client.get("/is_valid_property/auto%2Eoffset%2Ereset?why=not")
    assert (found.status_code, found.json()) == (200, True)


@pytest.mark.parametrize("request_line", [b"POST /ksql HTTP/1.1", b"PUT /ksql HTTP/1.1"])
def test_old_requests_are_distinguished_byte_by_byte(served: Served, request_line: bytes) -> None:
    host, port = served.server.address.split(":")
    with socket.create_connection((host, int(port)), SECONDS_MAX) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request_line + b"\r\nhost: x\r\ncontent-length: 0\r\n\r\n":
            connection.sendall(bytes([byte]))
        assert connection.recv(100).startswith(b"HTTP/1.1 4")


def test_each_row_is_a_frame(served: Served) -> None:
    with connected(served) as raw:
        stream_id = raw.post("/query-stream", query(PUSH))
        frames = raw.frames(stream_id)
        assert orjson.loads(next(frames))["columnNames"] == ["ITEM"]
        assert [orjson.loads(next(frames)) for _ in range(2)] == [["pen"], ["ink"]]


def test_a_query_ends_when_its_stream_is_given_up(served: Served) -> None:
    with connected(served) as raw:
        stream_id = raw.post("/query-stream", query(PUSH))
        query_id = orjson.loads(next(raw.frames(stream_id)))["queryId"]
        assert query_id in served.engine.transient_queries.push_queries
        raw.protocol.reset_stream(stream_id)
        raw.flush()
        wait_until(
            lambda: query_id not in served.engine.transient_queries.push_queries, "the query's end"
        )
        info = raw.post("/ksql", b'{"ksql": "SHOW STREAMS;"}')
        assert b"ORDERS" in next(raw.frames(info))


def test_a_reader_that_takes_nothing_holds_up_only_its_own_query(
    served: Served, client: httpx.Client
) -> None:
    create = (
        "CREATE STREAM wide (n INT, t STRING) "
        "WITH (kafka_topic='wide', value_format='JSON', partitions=1);"
    )
    client.post("/ksql", json={"ksql": create})
    count = 100
    lines = [{"target": "wide"}, *({"n": number, "t": "x" * 3000} for number in range(count))]
    # The request is larger than what may be sent before the server says that it goes on.
    body = b"\n".join(map(orjson.dumps, lines))
    acknowledged = client.post("/inserts-stream", content=body).text.splitlines()
    assert orjson.loads(acknowledged[-1]) == {"status": "ok", "seq": count - 1}
    everything = f"SELECT n, t FROM wide EMIT CHANGES LIMIT {count};"
    with connected(served) as raw:
        held = raw.post("/query-stream", query(everything))
        taken = []
        for event in raw.events(acknowledge=False):
            if isinstance(event, DataReceived):
                assert event.stream_id == held
                taken.append(event)
            if raw.protocol.remote_flow_control_window(held) == 0:
                break
        # Nothing fits into the whole connection any more; others go on.
        assert client.get("/info").status_code == httpx.codes.OK
        for part in taken:
            raw.protocol.acknowledge_received_data(part.flow_controlled_length or 0, held)
        raw.flush()
        text = b"".join(part.data or b"" for part in taken)
        frames = raw.frames(held)
        while text.count(b"\n") < count + 1:
            text += next(frames)
    assert [orjson.loads(line)[0] for line in text.splitlines()[1:]] == list(range(count))


def test_rows_are_acknowledged_while_the_request_goes_on(served: Served) -> None:
    with connected(served) as raw:
        stream_id = raw.post("/inserts-stream", b'{"target": "kinds"}\n', ends=False)
        frames = raw.frames(stream_id)
        for number in range(3):
            raw.protocol.send_data(stream_id, orjson.dumps({"k": -number}) + b"\n")
            raw.flush()
            assert orjson.loads(next(frames)) == {"status": "ok", "seq": number}
        raw.protocol.end_stream(stream_id)
        raw.flush()


def test_a_request_too_many_is_refused(served: Served) -> None:
    with connected(served) as raw:
        # So many requests without an end, of which the server knows no more than that.
        for _ in range(STREAMS_MAX):
            raw.post("/ksql", b"{", ends=False)
        raw.post("/ksql", b"{", ends=False)
        refused = (StreamReset, ConnectionTerminated)
        assert any(isinstance(event, refused) for event in raw.events())
    wait_until(lambda: served.client.get("/info").status_code == httpx.codes.OK, "an answer")


def test_what_was_refused_unread_does_not_use_up_the_connection(served: Served) -> None:
    part = b"x" * 16000
    with connected(served) as raw:
        # More than all streams of a connection may send together before some of it is read.
        for _ in range(6):
            stream_id = raw.post("/nowhere", part, ends=False)
            assert b"Path not found" in next(raw.frames(stream_id))
        window = raw.protocol.outbound_flow_control_window
        assert window > len(part)


def test_an_answer_to_head_has_no_body(client: httpx.Client) -> None:
    found = client.head("/info")
    assert (found.status_code, found.content) == (200, b"")


def test_a_client_that_says_goodbye_is_left_alone(served: Served) -> None:
    with connected(served) as raw:
        stream_id = raw.post("/query-stream", query(PUSH))
        query_id = orjson.loads(next(raw.frames(stream_id)))["queryId"]
        raw.protocol.close_connection()
        raw.flush()
        wait_until(
            lambda: query_id not in served.engine.transient_queries.push_queries, "the query's end"
        )


def test_pings_are_answered(served: Served) -> None:
    with connected(served) as raw:
        raw.protocol.ping(b"12345678")
        raw.flush()
        assert any(isinstance(event, PingAckReceived) for event in raw.events())


FRAMES = st.lists(
    st.builds(
        lambda kind, flags, stream, payload: (
            len(payload).to_bytes(3, "big")
            + bytes([kind, flags])
            + stream.to_bytes(4, "big")
            + payload
        ),
        st.integers(0, 12),
        st.integers(0, 255),
        st.integers(0, 7),
        st.binary(max_size=40) | st.sampled_from([bytes(4), bytes(6), bytes(8), GET_INFO]),
    ),
    min_size=1,
    max_size=8,
).map(b"".join)


@given(st.binary(min_size=1, max_size=300) | FRAMES)
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_comes_the_server_goes_on(served: Served, noise: bytes) -> None:
    host, port = served.server.address.split(":")
    with socket.create_connection((host, int(port)), SECONDS_MAX) as connection:
        connection.sendall(PREFACE + noise)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
    assert served.client.get("/info").status_code == httpx.codes.OK


def test_answers_end_with_an_error_when_the_server_closes(tmp_path: Path) -> None:
    config = BrokerConfig.from_properties(BROKER_SETTINGS)
    with (
        Broker(config, data_directory=str(tmp_path / "broker")) as broker,
        engine_of(broker, tmp_path) as engine,
    ):
        engine.execute(ORDERS)
        server = SqlServer(engine, listen="127.0.0.1:0").start()
        with (
            httpx.Client(http1=False, http2=True, timeout=SECONDS_MAX) as client,
            client.stream(
                "POST",
                f"{server.url}/query-stream",
                content=query("SELECT * FROM orders EMIT CHANGES;"),
            ) as response,
        ):
            lines = response.iter_lines()
            assert "queryId" in next(lines)
            closing = threading.Thread(target=server.close)
            closing.start()
            assert ["shutting down" in line for line in lines] == [True]
            closing.join(SECONDS_MAX)
            assert not closing.is_alive()
