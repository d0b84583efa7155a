"""Which hosts, origins and bodies a service takes."""

import asyncio
import json
import socket

import pytest
from starlette.types import Message, Receive, Scope, Send

from broker.rest.request_guard import AllowedHosts, RequestGuard

MACHINE = socket.gethostname()
LOOPBACK_CASES = [
    ("localhost", True),
    ("localhost:8088", True),
    ("LOCALHOST.:8088", True),
    ("console.localhost:1", True),
    ("127.0.0.1:8088", True),
    ("127.9.9.9", True),
    ("[::1]:8088", True),
    ("evil.example", False),
    ("evil.example:8088", False),
    ("localhost.evil.example", False),
    ("localhost@evil.example", False),
    ("127.0.0.1.evil.example", False),
    ("notlocalhost", False),
    ("192.168.0.7", False),
    ("", False),
    ("localhost:port", False),
    ("localhost/x", False),
    ("127.1", False),
    (f"not-{MACHINE}", False),
]
EVERYWHERE_CASES = [
    (MACHINE, True),
    (f"{MACHINE}:8088", True),
    ("192.168.0.7:8088", True),
    ("[2001:db8::7]:8088", True),
    ("localhost", True),
    ("evil.example", False),
    ("192.168.0.7.evil.example", False),
]


@pytest.mark.parametrize(("host", "allowed"), LOOPBACK_CASES)
@pytest.mark.parametrize("listen", ["127.0.0.1", "localhost", "::1"])
def test_on_loopback_only_loopback_is_a_host(listen: str, host: str, allowed: bool) -> None:
    assert (AllowedHosts(listen).problem([(b"host", host.encode())]) is None) is allowed


@pytest.mark.parametrize(("host", "allowed"), EVERYWHERE_CASES)
@pytest.mark.parametrize("listen", ["0.0.0.0", "::", "192.168.0.7"])
def test_on_other_interfaces_addresses_and_the_machine_are_hosts(
    listen: str, host: str, allowed: bool
) -> None:
    assert (AllowedHosts(listen).problem([(b"host", host.encode())]) is None) is allowed


@pytest.mark.parametrize(
    ("host", "origin", "allowed"),
    [
        ("192.168.0.7:8088", "http://192.168.0.7:8080", True),
        ("192.168.0.7:8088", "http://192.168.0.8", False),
        ("localhost:8088", "http://192.168.0.7", False),
        ("192.168.0.7:8088", f"http://{MACHINE}", True),
        ("192.168.0.7:8088", "http://localhost:3000", True),
    ],
)
def test_a_page_at_an_address_uses_only_the_services_there(
    host: str, origin: str, allowed: bool
) -> None:
    headers = [(b"origin", origin.encode()), (b"host", host.encode())]
    assert (AllowedHosts("0.0.0.0").problem(headers) is None) is allowed


@pytest.mark.parametrize(
    ("names", "host", "allowed"),
    [
        (["sql.example.org"], "sql.example.org:80", True),
        (["SQL.example.org."], "sql.example.org", True),
        (["sql.example.org"], "example.org", False),
        (["*.example.org"], "sql.example.org", True),
        (["*.example.org"], "example.org", False),
        (["*.example.org"], "evilexample.org", False),
        (["*"], "anything", True),
        ([" ", ""], "evil.example", False),
    ],
)
def test_more_names_can_be_configured(names: list[str], host: str, allowed: bool) -> None:
    hosts = AllowedHosts("127.0.0.1", names)
    assert (hosts.problem([(b"host", host.encode())]) is None) is allowed
    assert (hosts.problem([(b"origin", f"https://{host}".encode())]) is None) is allowed


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost:3000", True),
        ("http://127.0.0.1:8088", True),
        ("https://[::1]:1", True),
        ("http://evil.example", False),
        ("null", False),
        ("file://", False),
        ("chrome-extension://localhost", False),
        ("", False),
        ("localhost", False),
    ],
)
def test_an_origin_is_of_the_same_hosts(origin: str, allowed: bool) -> None:
    headers = [(b"host", b"localhost"), (b"origin", origin.encode())]
    assert (AllowedHosts("127.0.0.1").problem(headers) is None) is allowed


def test_all_hosts_of_a_request_count() -> None:
    headers = [(b"host", b"localhost"), (b"host", b"evil.example")]
    assert AllowedHosts("127.0.0.1").problem(headers) is not None


def test_a_program_that_names_no_host_is_answered() -> None:
    assert AllowedHosts("127.0.0.1").problem([]) is None


# --- bodies --------------------------------------------------------------------------------------


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def answer(method: str, headers: dict[str, str], parts: list[bytes]) -> tuple[int, bytes]:
    guard = RequestGuard(echo, AllowedHosts("127.0.0.1"))
    messages: list[Message] = [
        {"type": "http.request", "body": part, "more_body": number < len(parts)}
        for number, part in enumerate(parts, 1)
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": "/", "headers": encoded}
    asyncio.run(guard(scope, receive, send))
    return sent[0]["status"], sent[1]["body"]


OK = (200, b"{}")


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("application/vnd.ksql.v1+json", 200),
        ("application/vnd.ksqlapi.delimited.v1", 200),
        ("application/vnd.schemaregistry.v1+json", 200),
        ("application/vnd.schemaregistry+json", 200),
        ("application/octet-stream", 200),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("text/plain", 415),
        ("text/plain;charset=application/json", 415),
        ("text/x+json", 415),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_body_must_be_json(method: str, content_type: str, status: int) -> None:
    found, body = answer(method, {"content-type": content_type}, [b"", b"{", b"}"])
    assert found == status
    if status == 415:
        assert "-H" in json.loads(body)["message"]
    else:
        assert body == b"{}"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),  # ksqlDB's Java client and its CLI send no type
        ({"origin": "http://localhost"}, 415),
        ({"sec-fetch-site": "cross-site"}, 415),
        ({"sec-fetch-mode": "no-cors"}, 415),
    ],
)
def test_a_body_without_a_type_is_taken_from_programs_only(
    headers: dict[str, str], status: int
) -> None:
    assert answer("POST", headers, [b"{}"])[0] == status


@pytest.mark.parametrize("parts", [[b""], [b"", b""]])
def test_a_request_without_a_body_needs_no_type(parts: list[bytes]) -> None:
    assert answer("PUT", {"content-type": "text/plain"}, parts) == (200, b"")
