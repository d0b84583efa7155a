"""Fetches of readers, and the requests to brokers that serve them.

PendingFetch     one reader's fetch request: answered when any of its partitions can be answered
WantedPartition  one partition of a pending fetch
SharedFetch      one fetch request to a broker, on a transport of its own
FetchPart        one partition of a shared fetch, and the pending fetches that wait for it
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import NamedTuple

from broker.client.sharing.fetch_cache import CachedPartition
from broker.client.sharing.runs import Run
from broker.client.sharing.transport_pool import TransportPool
from broker.client.transport import Transport
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

NO_TOPIC_ID = bytes(16)


class Reader:
    """A transport that shares fetches."""

    __slots__ = ("closed", "pool", "unclaimed", "waiting")

    def __init__(self, pool: TransportPool) -> None:
        self.pool = pool
        self.closed = False
        self.waiting: dict[PendingFetch, None] = {}
        # Runs that arrived after the reader was answered: cached until it fetches again.
        self.unclaimed: dict[Hashable, Run] = {}  # by partition

    def claim(self, key: Hashable) -> None:
        """Drop the unclaimed run of a partition."""
        run = self.unclaimed.pop(key, None)
        if run is not None:
            run.pins -= 1

    def expect(self, key: Hashable, run: Run) -> None:
        """Keep a run for the next fetch of a partition."""
        self.claim(key)
        self.unclaimed[key] = run
        run.pins += 1


class WantedPartition(NamedTuple):
    """One partition of a pending fetch."""

    partition: CachedPartition
    offset: int
    topic: FetchTopic
    asked: FetchPartition


class PendingFetch:
    """A fetch request of a reader."""

    __slots__ = ("deadline_ms", "future", "parts", "reader", "request", "wanted")

    def __init__(self, reader: Reader, request: FetchRequest, now_ms: int) -> None:
        self.reader = reader
        self.request = request
        self.deadline_ms = now_ms + request.max_wait_ms
        self.wanted: list[WantedPartition] = []
        self.parts: list[FetchPart] = []
        self.future: Future[object] = Future()
        self.future.set_running_or_notify_cancel()  # only SharedReads completes it

    def wait_for(self, part: "FetchPart") -> None:
        """Wait for this part, too."""
        part.waiting[self] = None
        self.parts.append(part)

    def leave(self) -> None:
        """Stop waiting."""
        self.reader.waiting.pop(self, None)
        for part in self.parts:
            part.waiting.pop(self, None)
        self.parts.clear()


class FetchPart:
    """One partition of a shared fetch."""

    __slots__ = ("fetch", "place", "waiting", "wanted")

    def __init__(self, wanted: WantedPartition, fetch: "SharedFetch") -> None:
        self.wanted = wanted
        self.place = (wanted.partition, wanted.offset)
        self.fetch = fetch
        self.waiting: dict[PendingFetch, None] = {}  # in the order of their arrival


class SharedFetch:
    """One fetch request to a broker, for all readers that wait for it."""

    __slots__ = ("_timeout_ms", "deadline_ms", "node_id", "parts", "reader", "request", "transport")

    def __init__(
        self, reader: Reader, node_id: int, request: FetchRequest, deadline_ms: int, timeout_ms: int
    ) -> None:
        """Use the limits of a request; `add_all` or `add_some` set its partitions."""
        self.reader = reader
        self.node_id = node_id
        self.request = request
        self.deadline_ms = deadline_ms
        self._timeout_ms = timeout_ms
        self.parts: list[FetchPart] = []
        self.transport: Transport | None = None

    def add_all(self, wanted: Iterable[WantedPartition]) -> None:
        """Fetch all partitions of the request."""
        self.parts = [FetchPart(each, self) for each in wanted]

    def add_some(self, wanted: Iterable[WantedPartition]) -> None:
        """Fetch only some partitions of the request."""
        self.add_all(wanted)
        topics: dict[int, FetchTopic] = {}
        for part in self.parts:
            topic = part.wanted.topic
            if id(topic) not in topics:
                topics[id(topic)] = replace(topic, partitions=[])
            topics[id(topic)].partitions.append(part.wanted.asked)
        self.request = replace(self.request, topics=list(topics.values()))

    def repeat(self, parts: Sequence[FetchPart], wait_ms: int) -> "SharedFetch":
        """The same request for the parts that readers still wait for."""
        request = replace(self.request, max_wait_ms=wait_ms)
        fetch = SharedFetch(self.reader, self.node_id, request, self.deadline_ms, self._timeout_ms)
        fetch.add_some([part.wanted for part in parts])
        for part, following in zip(parts, fetch.parts, strict=True):
            for pending in list(part.waiting):
                pending.parts.remove(part)
                pending.wait_for(following)
        return fetch

    def send(self, transport: Transport) -> Future[object]:
        self.transport = transport
        return transport.send(self.node_id, self.request, timeout_ms=self._timeout_ms)

    def match(self, response: FetchResponse) -> Iterator[tuple[FetchPart, PartitionData]]:
        """The data of each part; brokers without topic ids return names."""
        parts = {
            (part.wanted.topic.topic_id, part.wanted.asked.partition): part for part in self.parts
        }
        names = {part.wanted.topic.topic: part.wanted.topic.topic_id for part in self.parts}
        for topic in response.responses:
            topic_id = topic.topic_id
            if topic_id == NO_TOPIC_ID:
                topic_id = names.get(topic.topic, topic_id)
            for data in topic.partitions:
                part = parts.get((topic_id, data.partition_index))
                if part is not None:
                    yield part, data
