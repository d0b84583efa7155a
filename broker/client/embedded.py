"""EmbeddedTransport: requests to a broker in the same process, as calls; nothing is encoded.

The sending thread handles the request. A delayed response (a long poll, a group that is still
joining) completes its future in a separate thread; see ResponseThread.
"""

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Protocol

from broker.client.response_thread import (
    ExpectedResponse,
    ResponseSource,
    ResponseThread,
    complete,
)
from broker.client.transport import Node
from broker.clock import Clock
from broker.errors import (
    BrokerError,
    ClientError,
    ConnectionFailed,
    UnsupportedVersion,
)
from broker.model import ConnectionInfo
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.wire import SPECS


class RequestHandler(ResponseSource, Protocol):
    """The interface of a broker that the transport needs."""

    def handle(
        self, api_key: ApiKey, version: int, request: object, connection: ConnectionInfo
    ) -> object:
        """Handle a request; returns a response, a Pending one, or None."""
        ...


class EmbeddedTransport:
    """Requests to a broker in this process; see Transport. The broker is not closed with it."""

    def __init__(
        self,
        broker: RequestHandler,
        *,
        client_id: str = "millstream",
        clock: Clock | None = None,
        response_thread: ResponseThread | None = None,
    ) -> None:
        """Connect to this broker; without a thread for delayed responses, create one.

        A broker that was closed may be started again; one that was never started is an error.
        """
        if getattr(broker, "never_started", False):
            raise ClientError(
                "the embedded broker was never started",
                hint="call its `start()` first, or use it as a context manager: `with broker:`",
            )
        self._broker = broker
        self._connection = ConnectionInfo(client_id=client_id)
        self._nodes: list[Node] = []
        self._shares_thread = response_thread is not None
        self._response_thread = response_thread or ResponseThread(clock)
        self._response_thread.join(self)
        self._closed = False

    def nodes(self) -> list[Node]:
        """The broker, once the metadata is known."""
        return list(self._nodes)

    def update_nodes(self, nodes: Iterable[Node]) -> None:
        """Remember the broker."""
        self._nodes = list(nodes)

    def send(
        self,
        node_id: int | None,
        request: object,
        *,
        timeout_ms: int,
        version_max: int | None = None,
    ) -> Future[object]:
        """Handle a request; see Transport."""
        if self._closed:
            raise ClientError("the client is closed")
        spec = SPECS[type(request)]
        assert spec.api_key is not None, f"{type(request).__name__} is not a request"
        version = spec.versions.last if version_max is None else version_max
        if isinstance(request, ProduceRequest):
            request = _with_own_records(request)
        future: Future[object] = Future()
        future.set_running_or_notify_cancel()
        try:
            answer = self._broker.handle(
                spec.api_key, min(version, spec.versions.last), request, self._connection
            )
            if isinstance(answer, Pending):
                late = f"{type(request).__name__} was not answered within {timeout_ms} ms"
                expected = ExpectedResponse(self, self._broker, answer, late)
                self._response_thread.wait_for(expected, future, timeout_ms)
                return future
        except UnsupportedVersion as error:
            future.set_exception(error)
            return future
        except BrokerError as error:
            # There is no response: over the network, the connection would be closed.
            future.set_exception(ConnectionFailed(f"the embedded broker failed: {error}"))
            return future
        complete(future, answer)
        return future

    def close(self) -> None:
        """Fail all pending requests."""
        self._closed = True
        if self._shares_thread:
            self._response_thread.leave(self)
        else:
            self._response_thread.close()


def _with_own_records(request: ProduceRequest) -> ProduceRequest:
    """The request with copies of its batches: the broker writes offsets into them."""
    for topic in request.topic_data:
        for partition in topic.partition_data:
            records = partition.records
            if isinstance(records, bytes | memoryview):
                partition.records = memoryview(bytearray(records))
    return request
