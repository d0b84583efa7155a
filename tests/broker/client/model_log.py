"""A log of a few lines, and pool to it whose answers come when a test lets them come."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from broker.batch.codec import control_batch, encode_batch, place_batch
from broker.client.fetched import FetchedRun
from broker.client.sharing.fetches import Reader
from broker.client.sharing.reads import SharedReads
from broker.client.sharing.transport_pool import TransportPool
from broker.client.transport import Node
from broker.clock import ManualClock
from broker.errors import ConnectionFailed, ErrorCode
from broker.model import AbortedTransaction as Aborted
from broker.model import ProducerIdentity, TopicPartition
from broker.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

NODE_ID = 1
TOPIC = "orders"
TOPIC_ID = b"0123456789abcdef"
WAIT_MS = 500
COMMITTED = 1


@dataclass(slots=True)
class Batch:
    """One batch of a model log."""

    base: int
    count: int
    data: bytes
    kind: str = "plain"  # or "data" of a transaction, "commit", "abort"
    producer: int = -1
    compacted: bool = False

    @property
    def next(self) -> int:
        return self.base + self.count


@dataclass(slots=True)
class ModelLog:
    """A partition: what a broker would answer, in the simplest words."""

    batches: list[Batch] = field(default_factory=list)
    start: int = 0
    end: int = 0
    epoch: int = 0
    written: int = 0

    def append(self, kind: str = "plain", *, count: int = 1, producer: int = -1) -> None:
        """Write a batch; its values say in which order it was written, ever."""
        identity = ProducerIdentity(producer, 0)
        if kind in ("commit", "abort"):
            count = 1
            raw = control_batch(
                commit=kind == "commit", producer=identity, coordinator_epoch=0, timestamp_ms=0
            )
        else:
            self.written += 1
            rows = [(None, b"%d-%d" % (self.written, n), (), 0) for n in range(count)]
            raw = encode_batch(
                rows, transactional=kind == "data", producer=identity, base_sequence=0
            )
        data = bytearray(raw)
        place_batch(memoryview(data), 0, base_offset=self.end, leader_epoch=self.epoch)
        self.batches.append(Batch(self.end, count, bytes(data), kind, producer))
        self.end += count

    def truncate(self, count: int) -> None:
        """Lose the last batches."""
        del self.batches[len(self.batches) - count :]
        self.end = max(self.batches[-1].next if self.batches else 0, self.start)

    def limit(self, isolation: int) -> int:
        """The offset that a reader may not go past."""
        if isolation != COMMITTED:
            return self.end
        opened: dict[int, int] = {}
        for batch in self.batches:
            if batch.kind == "data":
                opened.setdefault(batch.producer, batch.base)
            elif batch.kind in ("commit", "abort"):
                opened.pop(batch.producer, None)
        return min(opened.values(), default=self.end)

    def aborted(self, first: int, last: int) -> list[AbortedTransaction]:
        """Aborted transactions that a reader of these offsets must know of."""
        opened: dict[int, int] = {}
        found = []
        for batch in self.batches:
            if batch.kind == "data":
                opened.setdefault(batch.producer, batch.base)
            elif batch.kind in ("commit", "abort"):
                since = opened.pop(batch.producer, None)
                if batch.kind == "commit" or since is None:
                    continue
                if since < last and batch.base >= first:
                    found.append(AbortedTransaction(batch.producer, since))
        return found

    def visible(self, first: int, last: int, isolation: int, *, compacted: bool) -> list[int]:
        """Base offsets of the batches that a reader sees between two offsets."""
        found = []
        for index, batch in enumerate(self.batches):
            if batch.kind in ("commit", "abort") or batch.next <= first or batch.base >= last:
                continue
            if batch.compacted and not compacted:
                continue
            if batch.kind == "data" and isolation == COMMITTED:
                ends = (
                    b.kind
                    for b in self.batches[index:]
                    if b.producer == batch.producer and b.kind in ("commit", "abort")
                )
                if next(ends, "abort") == "abort":
                    continue
            found.append(batch.base)
        return found

    def read(self, asked: FetchPartition, isolation: int) -> PartitionData:
        """What a broker answers to a fetch of this partition."""
        limit = self.limit(isolation)
        data = PartitionData(
            asked.partition,
            ErrorCode.NONE,
            self.end,
            self.limit(COMMITTED),
            self.start,
            aborted_transactions=None,
            records=b"",
        )
        if asked.current_leader_epoch != self.epoch:
            return PartitionData(asked.partition, ErrorCode.FENCED_LEADER_EPOCH, -1, records=b"")
        if not self.start <= asked.fetch_offset <= self.end:
            return PartitionData(asked.partition, ErrorCode.OFFSET_OUT_OF_RANGE, -1, records=b"")
        taken: list[Batch] = []
        size = 0
        for batch in self.batches:
            if batch.compacted or batch.next <= asked.fetch_offset or batch.next > limit:
                continue
            size += len(batch.data)
            if taken and size > asked.partition_max_bytes:
                break
            taken.append(batch)
        data.records = memoryview(b"".join(batch.data for batch in taken))
        if isolation == COMMITTED:
            last = taken[-1].next if taken else asked.fetch_offset
            data.aborted_transactions = self.aborted(asked.fetch_offset, last)
        return data


class ModelTransport:
    """A transport that reads model logs; see ModelCluster."""

    def __init__(self, cluster: "ModelCluster", on_break: Callable[[int], None]) -> None:
        self.cluster = cluster
        self.on_break = on_break
        self.busy = False
        self.closed = False

    def nodes(self) -> list[Node]:
        return []

    def update_nodes(self, nodes: object) -> None:
        self.cluster.nodes_told = nodes

    def send(
        self,
        node_id: int | None,
        request: object,
        *,
        timeout_ms: int,
        version_max: int | None = None,
    ) -> Future[object]:
        assert isinstance(request, FetchRequest)
        assert not self.busy, "one read at a time on a transport"
        future: Future[object] = Future()
        future.set_running_or_notify_cancel()
        fetch = Fetch(self, request, future)
        self.cluster.sent.append(request)
        if self.cluster.at_once and self.cluster.has_news(request):
            future.set_result(self.cluster.respond(request))
        else:
            self.busy = True
            self.cluster.waiting.append(fetch)
        return future

    def close(self) -> None:
        self.closed = True
        for fetch in [each for each in self.cluster.waiting if each.transport is self]:
            fetch.complete(ConnectionFailed("closed"))


@dataclass(slots=True, eq=False)
class Fetch:
    """A request that has no answer yet."""

    transport: ModelTransport
    request: FetchRequest
    future: Future[object]

    def complete(self, answer: object = None) -> None:
        """Answer it: with what is there, or with something else."""
        self.transport.cluster.waiting.remove(self)
        self.transport.busy = False
        if isinstance(answer, Exception):
            self.future.set_exception(answer)
        else:
            self.future.set_result(answer or self.transport.cluster.respond(self.request))


class ModelCluster:
    """Partitions of one topic at one broker, and shared reads of them."""

    def __init__(self, partitions: int = 1, *, cache_bytes: int = 1_000_000) -> None:
        self.logs = [ModelLog() for _ in range(partitions)]
        self.clock = ManualClock()
        self.at_once = True
        self.sent: list[FetchRequest] = []
        self.waiting: list[Fetch] = []
        self.transports_opened: list[ModelTransport] = []
        self.nodes_told: object = None
        self.reads = SharedReads(cache_bytes=cache_bytes, clock=self.clock)
        self.pool = TransportPool(self._open, self.reads.forget_node)

    def _open(self, on_break: Callable[[int], None]) -> ModelTransport:
        self.transports_opened.append(ModelTransport(self, on_break))
        return self.transports_opened[-1]

    def reader(self) -> Reader:
        return Reader(self.pool)

    def ask(self, reader: Reader, *offsets: int, **fields: int) -> Future[object]:
        """PendingFetch for the first partitions, each at its offset."""
        places = [(offset, log.epoch) for offset, log in zip(offsets, self.logs, strict=False)]
        return self.ask_at(reader, places, **fields)

    def ask_at(
        self, reader: Reader, places: list[tuple[int, int]], **fields: int
    ) -> Future[object]:
        """PendingFetch for the first partitions, each at its offset of a leader's epoch."""
        request = fetch_request(places, **fields)
        return self.reads.fetch(reader, NODE_ID, request, timeout_ms=30_000)

    def has_news(self, request: FetchRequest) -> bool:
        return any(
            data.error_code or len(data.records or b"")
            for data in self.respond(request).responses[0].partitions
        )

    def respond(self, request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    "",
                    topic.topic_id,
                    [
                        self.logs[asked.partition].read(asked, request.isolation_level)
                        for asked in topic.partitions
                    ],
                )
            ]
        )

    def break_connections(self) -> None:
        """The broker goes away: what is under way fails."""
        for transport in self.transports_opened:
            transport.on_break(NODE_ID)
        for fetch in list(self.waiting):
            if fetch in self.waiting:
                fetch.complete(ConnectionFailed("broken"))


def fetch_request(
    places: list[tuple[int, int]],
    *,
    isolation: int = 0,
    wait_ms: int = WAIT_MS,
    partition_max_bytes: int = 1_000_000,
    max_bytes: int = 50_000_000,
) -> FetchRequest:
    """A consumer's fetch of the first partitions."""
    partitions = [
        FetchPartition(number, epoch, offset, partition_max_bytes=partition_max_bytes)
        for number, (offset, epoch) in enumerate(places)
    ]
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=isolation,
        topics=[FetchTopic(TOPIC, TOPIC_ID, partitions)],
    )


def partitions_of(answer: Future[object]) -> list[PartitionData]:
    """The partitions of an answer that is there."""
    assert answer.done()
    response = answer.result()
    assert isinstance(response, FetchResponse)
    return [data for topic in response.responses for data in topic.partitions]


def run_of(data: PartitionData, offset: int, isolation: int = 0) -> FetchedRun:
    """What a consumer makes of a partition's records."""
    aborted = data.aborted_transactions if isolation else None
    assert data.records is not None
    return FetchedRun(
        TopicPartition("t", data.partition_index),
        memoryview(data.records),  # type: ignore[arg-type]  # bytes or a view of them
        offsets=(offset, data.high_watermark),
        aborted=[Aborted(each.producer_id, each.first_offset) for each in aborted or ()],
    )


def bases_of(run: FetchedRun, position: int = 0) -> list[int]:
    """Base offsets of the batches a consumer at a position sees."""
    found = []
    while (head := run.peek()) is not None:
        if head[1].next_offset > position:
            found.append(head[1].base_offset)
        run.advance()
    return found
