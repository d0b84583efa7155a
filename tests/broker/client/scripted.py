"""A transport whose answers a test writes, one function per kind of request."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from broker.client.transport import Node
from broker.protocol.messages.metadata import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

T = TypeVar("T")
Answer = object  # a response, an exception to fail with, or None to leave the future open

NODE = Node(1, "localhost", 9092)


@dataclass(slots=True)
class Sent:
    """One request as it went out."""

    node_id: int | None
    request: object
    timeout_ms: int
    version_max: int | None
    future: Future[object]


def topic_id(name: str) -> bytes:
    """The id that metadata gives a topic."""
    return name.encode().ljust(16, b"-")[:16]


class ScriptedTransport:
    """Answers at once with what the test's functions return; keeps everything that was sent."""

    def __init__(self, topics: dict[str, int] | None = None) -> None:
        self.sent: list[Sent] = []
        self.topics = dict(topics or {})
        self.closed = False
        self.leader_epoch = 0
        self.has_topic_ids = True
        self._nodes: list[Node] = []
        self._answers: dict[type[object], Callable[[object], Answer]] = {}
        self.answer(FindCoordinatorRequest, lambda _: FindCoordinatorResponse(node_id=NODE.id))
        self.answer(MetadataRequest, self._metadata)

    def answer(self, kind: type[T], function: Callable[[T], Answer]) -> None:
        """Answer this kind of request so from now on."""
        self._answers[kind] = function  # type: ignore[assignment]  # looked up by the same type

    def requests(self, kind: type[T]) -> list[T]:
        """What was sent of a kind."""
        return [each.request for each in self.sent if isinstance(each.request, kind)]

    def waiting(self, kind: type[object]) -> list[Sent]:
        """What was sent of a kind and has no answer yet."""
        return [s for s in self.sent if isinstance(s.request, kind) and not s.future.done()]

    def send(
        self,
        node_id: int | None,
        request: object,
        *,
        timeout_ms: int,
        version_max: int | None = None,
    ) -> Future[object]:
        future: Future[object] = Future()
        self.sent.append(Sent(node_id, request, timeout_ms, version_max, future))
        function = self._answers.get(type(request))
        answer = None if function is None else function(request)
        if isinstance(answer, Exception):
            future.set_exception(answer)
        elif answer is not None:
            future.set_result(answer)
        return future

    def nodes(self) -> list[Node]:
        return list(self._nodes)

    def update_nodes(self, nodes: Iterable[Node]) -> None:
        self._nodes = list(nodes)

    def close(self) -> None:
        self.closed = True

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        names = (
            list(self.topics)
            if request.topics is None
            else [topic.name or "" for topic in request.topics]
        )
        return MetadataResponse(
            brokers=[MetadataResponseBroker(NODE.id, NODE.host, NODE.port)],
            topics=[self._topic(name) for name in names],
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            error_code=0 if name in self.topics else 3,
            name=name,
            topic_id=topic_id(name) if self.has_topic_ids else bytes(16),
            partitions=[
                MetadataResponsePartition(
                    partition_index=number, leader_id=NODE.id, leader_epoch=self.leader_epoch
                )
                for number in range(self.topics.get(name, 0))
            ],
        )
