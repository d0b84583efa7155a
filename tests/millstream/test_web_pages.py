"""No web page can use a service of `millstream up`: every route, HTTP/1.1, HTTP/2, WebSocket."""

import base64
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from urllib.parse import urlsplit

import httpx
import pytest

from broker import Broker, BrokerConfig
from broker.server import Server
from millstream.commands.platform_services import Platform
from millstream.settings import PlatformSettings
from streams import StreamsApp, StreamsBuilder
from streams.serving import QueryServer
from tests.support.ports import held_ports

pytestmark = pytest.mark.slow

FORM = "application/x-www-form-urlencoded"
# Methods and paths of each service.
ROUTES: dict[str, list[tuple[str, str]]] = {
    "registry": [
        ("GET", "/"),
        ("GET", "/subjects"),
        ("POST", "/subjects/s"),
        ("DELETE", "/subjects/s"),
        ("GET", "/subjects/s/versions"),
        ("POST", "/subjects/s/versions"),
        ("GET", "/subjects/s/versions/1"),
        ("DELETE", "/subjects/s/versions/1"),
        ("GET", "/subjects/s/versions/1/schema"),
        ("GET", "/subjects/s/versions/1/referencedby"),
        ("GET", "/subjects/s/metadata"),
        ("GET", "/schemas"),
        ("GET", "/schemas/types"),
        ("GET", "/schemas/ids/1"),
        ("GET", "/schemas/ids/1/schema"),
        ("GET", "/schemas/ids/1/subjects"),
        ("GET", "/schemas/ids/1/versions"),
        ("POST", "/compatibility/subjects/s/versions"),
        ("POST", "/compatibility/subjects/s/versions/1"),
        ("GET", "/config"),
        ("PUT", "/config"),
        ("DELETE", "/config"),
        ("PUT", "/config/s"),
        ("GET", "/mode"),
        ("PUT", "/mode"),
        ("PUT", "/mode/s"),
        ("GET", "/contexts"),
        ("GET", "/v1/metadata/id"),
        ("GET", "/v1/metadata/version"),
        ("GET", "/metrics"),
        ("OPTIONS", "/subjects"),
        ("GET", "/unknown"),
    ],
    "connect": [
        ("GET", "/"),
        ("GET", "/connectors"),
        ("POST", "/connectors"),
        ("GET", "/connectors/c"),
        ("DELETE", "/connectors/c"),
        ("GET", "/connectors/c/config"),
        ("PUT", "/connectors/c/config"),
        ("PATCH", "/connectors/c/config"),
        ("GET", "/connectors/c/status"),
        ("POST", "/connectors/c/restart"),
        ("PUT", "/connectors/c/pause"),
        ("PUT", "/connectors/c/resume"),
        ("PUT", "/connectors/c/stop"),
        ("GET", "/connectors/c/tasks"),
        ("POST", "/connectors/c/tasks/0/restart"),
        ("GET", "/connectors/c/topics"),
        ("PUT", "/connectors/c/topics/reset"),
        ("GET", "/connectors/c/offsets"),
        ("PATCH", "/connectors/c/offsets"),
        ("DELETE", "/connectors/c/offsets"),
        ("GET", "/connector-plugins"),
        ("PUT", "/connector-plugins/FileStreamSink/config/validate"),
        ("GET", "/metrics"),
        ("GET", "/unknown"),
    ],
    "sql": [
        ("POST", "/ksql"),
        ("POST", "/query"),
        ("POST", "/query-stream"),
        ("POST", "/close-query"),
        ("POST", "/inserts-stream"),
        ("POST", "/ksql/terminate"),
        ("POST", "/heartbeat"),
        ("POST", "/lag"),
        ("GET", "/"),
        ("GET", "/info"),
        ("GET", "/healthcheck"),
        ("GET", "/status"),
        ("GET", "/status/stream/S/create"),
        ("GET", "/clusterStatus"),
        ("GET", "/is_valid_property/auto.offset.reset"),
        ("GET", "/v1/metadata"),
        ("GET", "/v1/metadata/id"),
        ("GET", "/chc/ready"),
        ("GET", "/chc/live"),
        ("GET", "/metrics"),
        ("GET", "/unknown"),
    ],
    "queries": [
        ("GET", "/"),
        ("GET", "/stores"),
        ("GET", "/stores/s/all"),
        ("GET", "/topology"),
        ("GET", "/metrics"),
        ("GET", "/lags"),
        ("GET", "/unknown"),
    ],
    "metrics": [("GET", "/metrics"), ("GET", "/"), ("GET", "/unknown"), ("POST", "/metrics")],
}
WITH_BODY = {"POST", "PUT", "PATCH"}


@contextmanager
def platform_urls(settings: PlatformSettings) -> Iterator[dict[str, str]]:
    """The services of `millstream up`."""
    with ExitStack() as running:
        platform = Platform(settings)
        for service in platform.services:
            running.enter_context(service())
        yield {name: platform.addresses[name] for name in ("registry", "connect", "sql")}


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Every HTTP service, without allowed hosts."""
    folder = tmp_path_factory.mktemp("pages")
    settings = PlatformSettings(
        data_dir=str(folder / "data"), port_base=0, broker={"offsets.topic.num.partitions": "1"}
    )
    config = BrokerConfig(listeners=("PLAINTEXT://127.0.0.1:0",), metrics_port=0)
    with ExitStack() as running:
        platform = running.enter_context(platform_urls(settings))
        broker = running.enter_context(Broker(config, data_directory=str(folder / "other")))
        server = running.enter_context(Server(broker))
        (port,) = held_ports(1)
        builder = StreamsBuilder()
        builder.stream("words").to("copied")
        app = StreamsApp(
            builder.build(),
            application_id="pages",
            broker=broker,
            state_dir=folder / "state",
            application_server=f"localhost:{port}",
        )
        running.enter_context(QueryServer(app))
        yield {
            **platform,
            "queries": f"http://127.0.0.1:{port}",
            "metrics": f"http://127.0.0.1:{server.metrics_port}",
        }


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The services, with an allowed host."""
    settings = PlatformSettings(
        data_dir=str(tmp_path_factory.mktemp("configured") / "data"),
        port_base=0,
        allowed_hosts="mill.example",
        broker={"offsets.topic.num.partitions": "1"},
    )
    with platform_urls(settings) as found:
        yield found


def requests(service: str) -> Iterator[tuple[str, str, bytes | None]]:
    for method, path in ROUTES[service]:
        yield method, path, b"{}" if method in WITH_BODY else None


@pytest.mark.parametrize(("service", "http2"), [*product(ROUTES, [False]), ("sql", True)])
@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:8088"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost.evil.example"},
    ],
)
def test_a_page_of_another_host_is_refused_by_every_route(
    urls: dict[str, str], service: str, http2: bool, headers: dict[str, str]
) -> None:
    with httpx.Client(base_url=urls[service], http1=not http2, http2=http2) as client:
        for method, path, body in requests(service):
            answer = client.request(
                method,
                path,
                content=body,
                headers={"content-type": "application/json", **headers},
            )
            assert answer.status_code == 403, (method, path, answer.text)
            assert "allowed hosts" in answer.text


@pytest.mark.parametrize("service", ["registry", "connect", "sql"])
@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": FORM},  # what curl -d sends
        {"content-type": "text/plain"},
        {"content-type": "multipart/form-data; boundary=x"},
        {"origin": "http://localhost"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_a_body_that_is_not_json_is_refused_by_every_route(
    urls: dict[str, str], service: str, headers: dict[str, str]
) -> None:
    with httpx.Client(base_url=urls[service]) as client:
        for method, path, body in requests(service):
            if body is None:
                continue
            answer = client.request(method, path, content=body, headers=headers)
            assert answer.status_code == 415, (method, path, answer.text)
            assert "Content-Type: application/json" in answer.json()["message"]


PLAIN_PAGES = {"sql": "/info", "metrics": "/metrics", "queries": "/topology"}


@pytest.mark.parametrize("service", ROUTES)
@pytest.mark.parametrize(
    "headers", [{}, {"host": "localhost"}, {"origin": "http://localhost:3000"}]
)
def test_programs_and_local_pages_are_answered(
    urls: dict[str, str], service: str, headers: dict[str, str]
) -> None:
    path = PLAIN_PAGES.get(service, "/")
    assert httpx.get(urls[service] + path, headers=headers).status_code == 200


@pytest.mark.parametrize("service", ["registry", "connect", "sql"])
def test_pages_of_configured_hosts_are_answered(configured: dict[str, str], service: str) -> None:
    url = configured[service] + PLAIN_PAGES.get(service, "/")
    headers = {"host": "mill.example", "origin": "https://mill.example"}
    assert httpx.get(url, headers=headers).status_code == 200
    headers = {"host": "evil.example", "origin": "https://mill.example"}
    assert httpx.get(url, headers=headers).status_code == 403


def test_a_statement_without_a_type_is_carried_out_for_a_program(urls: dict[str, str]) -> None:
    answer = httpx.post(urls["sql"] + "/ksql", content=b'{"ksql": "LIST STREAMS;"}')
    assert "content-type" not in answer.request.headers
    assert answer.status_code == 200


def opened(url: str, host: str, origin: str | None) -> bytes:
    """How a server begins its answer to who would like a WebSocket."""
    lines = [
        "GET /ws/query?request=%7B%22ksql%22%3A%22PRINT%20x%3B%22%7D HTTP/1.1",
        f"Host: {host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}",
    ]
    lines += [] if origin is None else [f"Origin: {origin}"]
    where = urlsplit(url)
    assert where.hostname is not None
    with socket.create_connection((where.hostname, where.port or 0), timeout=60) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return connection.recv(12)


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost", None, b"101"),
        ("localhost", "http://localhost:1", b"101"),
        ("evil.example", None, b"403"),
        ("localhost", "http://evil.example", b"403"),
        ("localhost", "null", b"403"),
    ],
)
def test_a_websocket_is_opened_for_allowed_hosts_only(
    urls: dict[str, str], host: str, origin: str | None, status: bytes
) -> None:
    assert opened(urls["sql"], host, origin) == b"HTTP/1.1 " + status


def test_a_websocket_is_opened_for_configured_hosts(configured: dict[str, str]) -> None:
    found = opened(configured["sql"], "mill.example", "http://mill.example")
    assert found == b"HTTP/1.1 101"
