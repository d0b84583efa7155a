"""A request that takes long keeps nobody waiting but the client that sent it."""

import threading
from collections.abc import Generator

import pytest

from broker.errors import BrokerError, ErrorCode
from broker.handlers.table import HANDLERS
from broker.protocol.api_keys import ApiKey
from broker.protocol.frame import decode_response
from broker.protocol.messages.metadata import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from broker.server import Server
from tests.support.raw_client import RawClient, correlation_id_of, frame_of

METADATA = MetadataRequest(None)
LARGE = FindCoordinatorRequest("group", 0)
VERSION = 3


class LargeRequest:
    """The handler of a request that is not answered before it is released."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.released = threading.Event()
        self._failure = failure

    def __call__(self, *_: object) -> Generator[None, None, object]:
        while not self.released.is_set():
            yield
        if self._failure is not None:
            raise self._failure
        return FindCoordinatorResponse(error_message="found")


def install(monkeypatch: pytest.MonkeyPatch, handler: LargeRequest) -> LargeRequest:
    monkeypatch.setitem(HANDLERS, ApiKey.FIND_COORDINATOR, handler)
    return handler


def test_others_are_served_while_a_large_request_is_answered(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = install(monkeypatch, LargeRequest())
    with RawClient(server.bootstrap) as one, RawClient(server.bootstrap) as other:
        one.send(frame_of(LARGE, VERSION, 1) + frame_of(METADATA, 12, 2))
        assert other.ask(METADATA, MetadataResponse, 12).brokers
        large.released.set()
        first = one.receive_frame()
        assert correlation_id_of(first) == 1
        decode_response(FindCoordinatorResponse, VERSION, memoryview(first))
        assert correlation_id_of(one.receive_frame()) == 2


@pytest.mark.parametrize(
    "failure", [BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "refused"), ValueError("a defect")]
)
def test_a_large_request_that_fails_is_answered_or_closes_its_connection(
    server: Server, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    large = install(monkeypatch, LargeRequest(failure))
    with RawClient(server.bootstrap) as one, RawClient(server.bootstrap) as other:
        one.send(frame_of(LARGE, VERSION, 1))
        assert other.ask(METADATA, MetadataResponse, 12).brokers
        large.released.set()
        if isinstance(failure, BrokerError):
            assert one.is_closed()
        else:
            answer = one.receive_frame()
            found = decode_response(FindCoordinatorResponse, VERSION, memoryview(answer))
            assert found.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert other.ask(METADATA, MetadataResponse, 12).brokers


def test_a_server_stops_while_a_large_request_is_answered(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = install(monkeypatch, LargeRequest())
    with RawClient(server.bootstrap) as one, RawClient(server.bootstrap) as other:
        one.send(frame_of(LARGE, VERSION, 1))
        assert other.ask(METADATA, MetadataResponse, 12).brokers
        server.close()
        assert one.is_closed()
        large.released.set()
