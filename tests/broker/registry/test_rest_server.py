"""The registry's server: sockets, sizes, counters, a clean end."""

import asyncio
import logging
import socket
import threading
from collections.abc import Iterator
from importlib.metadata import version

import httpx
import orjson
import pytest

from broker import Broker
from broker.errors import (
    BrokerError,
    ConfigError,
    ConnectionFailed,
    ErrorCode,
    RegistryError,
    RequestTimeout,
    SchemaError,
)
from broker.registry.registry import Registry
from broker.registry.rest import registry_application
from broker.registry.rest.registry_request import BODY_BYTES_MAX
from broker.registry.rest.replies import error_reply
from broker.registry.server import RegistryServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    folder = str(tmp_path_factory.mktemp("registry"))
    with Broker(data_directory=folder) as broker, Registry(broker) as registry:
        yield registry


@pytest.fixture(scope="module")
def server(registry: Registry) -> Iterator[RegistryServer]:
    with RegistryServer(registry, listen="127.0.0.1:0", cluster_id="the-cluster") as server:
        yield server


@pytest.fixture
def client(server: RegistryServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def test_answers_have_the_media_type_that_was_asked_for(client: httpx.Client) -> None:
    def content_type(accept: str, path: str = "/subjects") -> str:
        return client.get(path, headers={"Accept": accept}).headers["content-type"]

    assert content_type("*/*") == "application/vnd.schemaregistry.v1+json"
    assert content_type("application/json") == "application/json"
    assert content_type("application/json;q=0.1, application/vnd.schemaregistry+json") == (
        "application/vnd.schemaregistry+json"
    )
    assert content_type("application/json", "/subjects/none/versions") == "application/json"
    assert content_type("text/html") == "application/vnd.schemaregistry.v1+json"


def test_a_refused_method_is_told_which_ones_there_are(client: httpx.Client) -> None:
    answer = client.put("/subjects/a/versions", json={})
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, POST"


def test_a_body_that_is_too_large_is_refused(client: httpx.Client) -> None:
    answer = client.post("/subjects/a/versions", content=b"x" * (BODY_BYTES_MAX + 1))
    assert answer.status_code == 413
    assert answer.json() == {"error_code": 413, "message": "HTTP 413 Request Entity Too Large"}
    assert client.get("/").json() == {}


def test_a_body_that_does_not_say_its_size_is_bounded_too(client: httpx.Client) -> None:
    part = b"x" * (1 << 20)
    parts = (part for _ in range(BODY_BYTES_MAX // len(part) + 2))
    answer = client.post("/subjects/a/versions", content=parts)
    assert answer.status_code == 413


def test_a_schema_that_the_topic_cannot_take_is_too_large(client: httpx.Client) -> None:
    doc = "x" * (2 << 20)
    text = orjson.dumps({"type": "record", "name": "Large", "doc": doc, "fields": []}).decode()
    answer = client.post("/subjects/large/versions", content=orjson.dumps({"schema": text}))
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42209)
    assert client.get("/subjects/large/versions").status_code == 404


def test_a_schema_is_found_by_the_guid_it_was_given(client: httpx.Client) -> None:
    given = client.post("/subjects/guid/versions", json={"schema": '"double"'}).json()
    found = client.get(f"/schemas/guids/{given['guid']}").json()
    assert found == {"guid": given["guid"], "schema": '"double"'}
    client.post("/subjects/:.far:guid/versions", json={"schema": '"double"'})
    ids = client.get(f"/schemas/guids/{given['guid']}/ids").json()
    assert ids == [{"context": ".", "id": given["id"]}, {"context": ".far", "id": 1}]


def test_the_cluster_is_told(client: httpx.Client) -> None:
    assert client.get("/v1/metadata/id").json()["scope"]["clusters"] == {
        "kafka-cluster": "the-cluster",
        "schema-registry-cluster": "schema-registry",
    }


def test_the_version_is_told(client: httpx.Client) -> None:
    told = client.get("/v1/metadata/version").json()
    assert told == {"version": version("millstream"), "commitId": ""}


def test_requests_and_schemas_are_counted(registry: Registry) -> None:
    with (
        RegistryServer(registry, listen="127.0.0.1:0") as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        client.post("/subjects/counted/versions", json={"schema": '"bytes"'})
        client.get("/subjects/counted/versions/7")
        client.get("/nowhere")
        client.request("BREW", "/subjects")
        answer = client.get("/metrics", headers={"Accept": "text/plain"})
    name = "millstream_registry_requests_total"
    path = 'path="/subjects/{subject}/versions/{version}"'
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert f'{name}{{method="GET",{path},status="404"}} 1' in answer.text
    assert f'{name}{{method="GET",path="unknown",status="404"}} 1' in answer.text
    assert f'{name}{{method="other",path="/subjects",status="405"}} 1' in answer.text
    assert f"millstream_registry_subjects {len(registry.subjects(prefix=':*:'))}" in answer.text


def test_many_clients_at_once_get_one_id_for_one_schema(server: RegistryServer) -> None:
    ids: list[int] = []

    def register() -> None:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            answer = client.post("/subjects/race/versions", json={"schema": '"float"'})
            ids.append(answer.json()["id"])

    threads = [threading.Thread(target=register) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8
    assert len(set(ids)) == 1


def test_what_nobody_foresaw_is_logged_and_not_told(
    registry: Registry, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> list[str]:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(registry, "contexts", broken)
    with (
        caplog.at_level(logging.ERROR),
        RegistryServer(registry, listen="127.0.0.1:0") as server,
    ):
        answer = httpx.get(f"{server.url}/contexts", timeout=60)
    assert answer.status_code == 500
    assert answer.json() == {"error_code": 50001, "message": "Internal Server Error"}
    assert "ZeroDivisionError" in caplog.text


def test_a_registry_whose_broker_is_gone_says_so(tmp_path: object) -> None:
    with Broker(data_directory=str(tmp_path)) as broker:
        registry = Registry(broker)
        registry.start()
        registry.close()
        with RegistryServer(registry, listen="127.0.0.1:0") as server:
            body = {"schema": '"int"'}
            answer = httpx.post(f"{server.url}/subjects/a/versions", json=body, timeout=60)
    assert answer.status_code == 500
    assert answer.json()["error_code"] in (50001, 50002)


def test_a_registry_that_another_took_over_writes_no_more(tmp_path: object) -> None:
    with (
        Broker(data_directory=str(tmp_path)) as broker,
        Registry(broker) as old,
        RegistryServer(old, listen="127.0.0.1:0") as server,
        Registry(broker),
    ):
        answer = httpx.post(
            f"{server.url}/subjects/a/versions", json={"schema": '"int"'}, timeout=60
        )
    assert (answer.status_code, answer.json()["error_code"]) == (500, 50004)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (RegistryError(40401, "no"), 404, 40401),
        (RegistryError(406, "no"), 406, 406),
        (SchemaError("no"), 422, 42201),
        (RequestTimeout("no"), 500, 50002),
        (ConnectionFailed("no"), 500, 50001),
        (BrokerError(ErrorCode.NOT_CONTROLLER, "no"), 500, 50001),
    ],
)
def test_every_error_becomes_a_code(error: Exception, status: int, code: int) -> None:
    answer = error_reply(error)
    assert answer.status == status
    assert answer.content == {"error_code": code, "message": "no"}


def test_a_client_that_goes_away_in_the_middle_is_forgotten(
    server: RegistryServer, client: httpx.Client
) -> None:
    host, _, port = server.address.rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(
            b"POST /subjects/a/versions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
        )
    assert client.get("/").json() == {}


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"GET /subjects\r\n\r\n",
        b"GET /subjects HTTP/9.9\r\n\r\n",
        b"POST /subjects/a HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /subjects/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_no_http_does_no_harm(
    server: RegistryServer, client: httpx.Client, sent: bytes
) -> None:
    host, _, port = server.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(100)
    assert not answer.startswith(b"HTTP/1.1 5")
    assert client.get("/").json() == {}


def test_an_address_may_be_of_version_6(registry: Registry) -> None:
    try:
        server = RegistryServer(registry, listen="[::1]:0").start()
    except ConfigError as error:
        pytest.skip(f"no address of version 6 here: {error}")
    try:
        assert server.url.startswith("http://[::1]:")
        assert httpx.get(server.url, timeout=60).json() == {}
    finally:
        server.close()


def test_a_port_that_is_taken_is_refused(registry: Registry, server: RegistryServer) -> None:
    with pytest.raises(ConfigError, match="cannot listen"):
        RegistryServer(registry, listen=server.address).start()


@pytest.mark.parametrize("listen", ["8081", "host:", "host:port", "host:70000", ":8081"])
def test_an_address_must_have_host_and_port(registry: Registry, listen: str) -> None:
    with pytest.raises(ConfigError, match="address to listen on"):
        RegistryServer(registry, listen=listen)


def test_a_closed_server_no_longer_listens(registry: Registry) -> None:
    server = RegistryServer(registry, listen="127.0.0.1:0").start()
    url = server.url
    server.close()
    server.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)


def test_only_http_is_answered(registry: Registry) -> None:
    async def ask() -> None:
        await registry_application(registry)({"type": "lifespan"}, receive, send)

    async def receive() -> dict[str, object]:
        raise AssertionError("nothing is read")

    async def send(message: object) -> None:
        raise AssertionError("nothing is sent")

    asyncio.run(ask())
