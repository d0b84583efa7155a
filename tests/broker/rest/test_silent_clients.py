"""Clients of a service that connect and say nothing do not keep others out."""

import http.client
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from broker.rest.http_server import CONNECTIONS_MAX, HttpServer

DEADLINE_SECONDS = 30
DESCRIPTORS = 2 * CONNECTIONS_MAX + 200  # both ends are in this process


@pytest.fixture
def _enough_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = before
    if hard != resource.RLIM_INFINITY and hard < DESCRIPTORS:
        pytest.skip("too few descriptors")
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, DESCRIPTORS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def hello(request: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


@pytest.mark.slow
@pytest.mark.usefixtures("_enough_descriptors")
def test_a_request_is_answered_among_more_silent_clients_than_connections() -> None:
    application = Starlette(routes=[Route("/", hello)])
    with (
        HttpServer(application, listen="127.0.0.1:0", name="test") as server,
        ExitStack() as stack,
    ):
        host, _, port = server.address.rpartition(":")
        for _ in range(CONNECTIONS_MAX + 5):
            stack.enter_context(socket.create_connection((host, int(port)), DEADLINE_SECONDS))
        asking = http.client.HTTPConnection(host, int(port), timeout=DEADLINE_SECONDS)
        asking.request("GET", "/")
        assert asking.getresponse().status == 200
        asking.close()
