"""Asks and flights: who wants what, and the reads under way that will bring it.

Ask     one reader's fetch request: answered by whichever of its partitions has news first
Wanted  one partition of an ask
Flight  one fetch request to a broker, on a lane of its own
Leg     one partition of a flight, and the asks that wait for it
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import NamedTuple

from broker.client.sharing.kept import KeptPartition
from broker.client.sharing.lanes import Lanes
from broker.client.sharing.runs import Run
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
    """One transport whose fetches are shared."""

    __slots__ = ("asks", "closed", "lanes", "unclaimed")

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.closed = False
        self.asks: dict[Ask, None] = {}
        # What came when the reader had its answer from elsewhere: kept until it asks again.
        self.unclaimed: dict[Hashable, Run] = {}  # by partition

    def claim(self, key: Hashable) -> None:
        """Drop everything that waits for a partition."""
        run = self.unclaimed.pop(key, None)
        if run is not None:
            run.pins -= 1

    def expect(self, key: Hashable, run: Run) -> None:
        """Come back for a run of a partition."""
        self.claim(key)
        self.unclaimed[key] = run
        run.pins += 1


class Wanted(NamedTuple):
    """One partition of an ask."""

    partition: KeptPartition
    offset: int
    topic: FetchTopic
    asked: FetchPartition


class Ask:
    """A fetch request of a reader."""

    __slots__ = ("deadline_ms", "future", "legs", "reader", "request", "wanted")

    def __init__(self, reader: Reader, request: FetchRequest, now_ms: int) -> None:
        self.reader = reader
        self.request = request
        self.deadline_ms = now_ms + request.max_wait_ms
        self.wanted: list[Wanted] = []
        self.legs: list[Leg] = []
        self.future: Future[object] = Future()
        self.future.set_running_or_notify_cancel()  # it is completed once, by us

    def wait_for(self, leg: "Leg") -> None:
        """Wait for a leg too."""
        leg.asks[self] = None
        self.legs.append(leg)

    def leave(self) -> None:
        """Wait no more."""
        self.reader.asks.pop(self, None)
        for leg in self.legs:
            leg.asks.pop(self, None)
        self.legs.clear()


class Leg:
    """One partition of a flight."""

    __slots__ = ("asks", "flight", "place", "wanted")

    def __init__(self, wanted: Wanted, flight: "Flight") -> None:
        self.wanted = wanted
        self.place = (wanted.partition, wanted.offset)
        self.flight = flight
        self.asks: dict[Ask, None] = {}  # in the order they came


class Flight:
    """One fetch request on its way."""

    __slots__ = ("_timeout_ms", "deadline_ms", "lane", "legs", "node_id", "reader", "request")

    def __init__(
        self, reader: Reader, node_id: int, request: FetchRequest, deadline_ms: int, timeout_ms: int
    ) -> None:
        """Read with the limits of a request; its partitions are those of the legs."""
        self.reader = reader
        self.node_id = node_id
        self.request = request
        self.deadline_ms = deadline_ms
        self._timeout_ms = timeout_ms
        self.legs: list[Leg] = []
        self.lane: Transport | None = None

    def carry_all(self, wanted: Iterable[Wanted]) -> None:
        """Take the partitions of the request along."""
        self.legs = [Leg(each, self) for each in wanted]

    def carry(self, wanted: Iterable[Wanted]) -> None:
        """Take only some partitions of the request along."""
        self.carry_all(wanted)
        topics: dict[int, FetchTopic] = {}
        for leg in self.legs:
            topic = leg.wanted.topic
            if id(topic) not in topics:
                topics[id(topic)] = replace(topic, partitions=[])
            topics[id(topic)].partitions.append(leg.wanted.asked)
        self.request = replace(self.request, topics=list(topics.values()))

    def again(self, legs: Sequence[Leg], wait_ms: int) -> "Flight":
        """The same once more, for those legs that a reader still waits for."""
        request = replace(self.request, max_wait_ms=wait_ms)
        flight = Flight(self.reader, self.node_id, request, self.deadline_ms, self._timeout_ms)
        flight.carry([leg.wanted for leg in legs])
        for leg, following in zip(legs, flight.legs, strict=True):
            for ask in list(leg.asks):
                ask.legs.remove(leg)
                ask.wait_for(following)
        return flight

    def take_off(self, lane: Transport) -> Future[object]:
        """Send the request."""
        self.lane = lane
        return lane.send(self.node_id, self.request, timeout_ms=self._timeout_ms)

    def match(self, response: FetchResponse) -> Iterator[tuple[Leg, PartitionData]]:
        """What an answer says of each leg; brokers that do not know topic ids name topics."""
        legs = {(leg.wanted.topic.topic_id, leg.wanted.asked.partition): leg for leg in self.legs}
        names = {leg.wanted.topic.topic: leg.wanted.topic.topic_id for leg in self.legs}
        for topic in response.responses:
            topic_id = topic.topic_id
            if topic_id == NO_TOPIC_ID:
                topic_id = names.get(topic.topic, topic_id)
            for data in topic.partitions:
                leg = legs.get((topic_id, data.partition_index))
                if leg is not None:
                    yield leg, data
