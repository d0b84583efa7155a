"""SharedReads: fetches of many readers; each partition is read once for all of them.

A fetch whose offset is cached is answered immediately. Otherwise it waits for a read that is under
way at that offset, of any reader, or starts one. The response is cached for later readers and
returned to all that wait: the same bytes, never copied.

    fetch ──► cached? ──► answered
               │ no
               ├─► a read of that offset is under way ──► wait for it
               └─► take a free transport, read ──► cache ──► answer all fetches that wait for it

One lock guards the state. Requests are sent and futures completed without it; a future completed
here may fetch again at once, so completions go through a queue that one thread at a time empties.
"""

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import cast

from broker import concurrency
from broker.client.sharing.fetch_cache import UNKNOWN, CachedPartition, FetchCache
from broker.client.sharing.fetches import (
    NO_TOPIC_ID,
    FetchPart,
    PendingFetch,
    Reader,
    SharedFetch,
    WantedPartition,
)
from broker.client.sharing.runs import whole_run
from broker.client.sharing.transport_pool import TransportPool
from broker.clock import Clock, SystemClock
from broker.errors import ClientError, ConnectionFailed, ErrorCode
from broker.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    SnapshotId,
)

NO_RECORDS = b""
NO_DIVERGENCE = EpochEndOffset()  # readers do not change them: all responses share one of each
NO_LEADER = LeaderIdAndEpoch()
NO_SNAPSHOT = SnapshotId()
NO_SESSION = -1
CONSUMER = -1
ISOLATION_LEVELS = (0, 1)

Direct = dict[tuple[CachedPartition, int], PartitionData]


@dataclass(slots=True)
class ReadCounts:
    """The numbers of reads and bytes so far."""

    fetches: int = 0  # shared requests to brokers
    partitions_read: int = 0  # partitions with records in the responses
    bytes_read: int = 0
    bytes_given: int = 0
    private_fetches: int = 0  # requests that could not be shared


def can_share(request: FetchRequest, version_max: int | None) -> bool:
    """Whether the response may be shared with another reader: a plain long poll by topic id."""
    if (
        version_max is not None
        or request.min_bytes != 1
        or request.max_wait_ms <= 0
        or request.rack_id
        or request.replica_id != CONSUMER
        or request.session_epoch != NO_SESSION
        or request.isolation_level not in ISOLATION_LEVELS
    ):
        return False
    for topic in request.topics:
        if topic.topic_id == NO_TOPIC_ID:
            return False
        for asked in topic.partitions:
            if asked.last_fetched_epoch != UNKNOWN:
                return False
    return bool(request.topics)


class SharedReads:
    """Answers the fetch requests of all readers; see the module."""

    def __init__(self, *, cache_bytes: int, clock: Clock | None = None) -> None:
        self.counts = ReadCounts()
        self._clock = clock or SystemClock()
        self._lock = concurrency.Lock()
        self._cache = FetchCache(cache_bytes)
        self._under_way: dict[tuple[CachedPartition, int], FetchPart] = {}
        self._outbox: deque[tuple[Future[object], object]] = deque()
        self._delivering = False

    def fetch(
        self, reader: Reader, node_id: int, request: FetchRequest, *, timeout_ms: int
    ) -> Future[object]:
        """Answer a shareable request, now or when one of its partitions has new records."""
        pending = PendingFetch(reader, request, self._clock.monotonic_ms())
        with self._lock:
            if reader.closed:
                raise ClientError("the client is closed")
            pending.wanted = self._wanted(reader, node_id, request)
            missing = [each for each in pending.wanted if each.partition.find(each.offset) is None]
            answer = self._answer(pending) if len(missing) < len(pending.wanted) else None
            if answer is None:
                reader.waiting[pending] = None
            fetch = self._plan(pending, missing, node_id, timeout_ms) if missing else None
        if answer is not None:
            pending.future.set_result(answer)  # the future is not published yet: no callback runs
        if fetch is not None:
            self._send(fetch)
        return pending.future

    def count_private(self) -> None:
        """Count a request that could not be shared."""
        with self._lock:
            self.counts.private_fetches += 1

    def leave(self, reader: Reader) -> None:
        """Fail the pending fetches of a reader; it cannot fetch again."""
        with self._lock:
            reader.closed = True
            waiting = list(reader.waiting)
            for pending in waiting:
                pending.leave()
            for key in list(reader.unclaimed):
                reader.claim(key)
            self._cache.evict()
            error = ConnectionFailed("the client was closed")
            self._outbox.extend((pending.future, error) for pending in waiting)
            delivers = self._start_delivering()
        if delivers:
            self._deliver()

    def forget_node(self, pool: TransportPool, node_id: int) -> None:
        """Drop everything that was read from a node: it may return with another log."""
        with self._lock:
            self._cache.forget_where(
                lambda each: each.node_id == node_id and cast("Key", each.key)[0] is pool
            )

    # --- fetching, under the lock --------------------------------------------------------------

    def _wanted(self, reader: Reader, node_id: int, request: FetchRequest) -> list[WantedPartition]:
        found = []
        for topic in request.topics:
            for asked in topic.partitions:
                key: Key = (
                    reader.pool,
                    topic.topic_id,
                    asked.partition,
                    request.isolation_level,
                )
                partition = self._cache.partition(key, node_id, asked.current_leader_epoch)
                offset = asked.fetch_offset
                if reader.unclaimed and reader.unclaimed.get(key) is not partition.find(offset):
                    reader.claim(key)  # it moved to another offset
                found.append(WantedPartition(partition, offset, topic, asked))
        return found

    def _plan(
        self, pending: PendingFetch, missing: list[WantedPartition], node_id: int, timeout_ms: int
    ) -> SharedFetch | None:
        """A request for all partitions that are not cached.

        Also for a fetch that is answered now: otherwise a partition with many records would keep
        the others from ever being read.
        """
        waits = pending in pending.reader.waiting
        unfetched = []
        for wanted in missing:
            part = self._under_way.get((wanted.partition, wanted.offset))
            if part is None or part.fetch.deadline_ms > pending.deadline_ms:
                unfetched.append(wanted)
            elif waits:
                pending.wait_for(part)
        if not unfetched:
            return None
        fetch = SharedFetch(
            pending.reader, node_id, pending.request, pending.deadline_ms, timeout_ms
        )
        if len(unfetched) == len(pending.wanted):
            fetch.add_all(unfetched)
        else:
            fetch.add_some(unfetched)
        self._register(fetch)
        if waits:
            for part in fetch.parts:
                pending.wait_for(part)
        return fetch

    def _register(self, fetch: SharedFetch) -> None:
        self.counts.fetches += 1
        for part in fetch.parts:
            self._under_way.setdefault(part.place, part)
            part.wanted.partition.reads_under_way += 1

    def _unregister(self, fetch: SharedFetch) -> None:
        for part in fetch.parts:
            if self._under_way.get(part.place) is part:
                del self._under_way[part.place]
            part.wanted.partition.reads_under_way -= 1

    # --- answering, under the lock ------------------------------------------------------------

    def _answer(self, pending: PendingFetch, direct: Direct | None = None) -> FetchResponse:
        """The response to a fetch, up to its size limit; `direct` is passed on unchanged."""
        left = pending.request.max_bytes
        topics: dict[bytes, FetchableTopicResponse] = {}
        for wanted in pending.wanted:
            partition, offset, topic, _ = wanted
            data = direct.get((partition, offset)) if direct else None
            if data is None:
                data = self._data(pending, wanted, left)
                size = len(data.records or NO_RECORDS)
                left -= size
                self.counts.bytes_given += size
            answered = topics.get(topic.topic_id)
            if answered is None:
                answered = FetchableTopicResponse(topic.topic, topic.topic_id, [])
                topics[topic.topic_id] = answered
            answered.partitions.append(data)
        return FetchResponse(responses=list(topics.values()))

    def _data(self, pending: PendingFetch, wanted: WantedPartition, left: int) -> PartitionData:
        partition, offset, _, asked = wanted
        data = PartitionData(
            asked.partition,
            ErrorCode.NONE,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
            NO_DIVERGENCE,
            NO_LEADER,
            NO_SNAPSHOT,
            aborted_transactions=None,
            records=NO_RECORDS,
        )
        run = partition.find(offset)
        if run is None:
            return data
        bytes_max = min(asked.partition_max_bytes, max(left, 0))
        untouched = left == pending.request.max_bytes
        part = run.part(offset, bytes_max, minimum_one=untouched)
        if part is not None:
            data.records = part[0]
            data.aborted_transactions = cast("list[AbortedTransaction] | None", part[1])
            if pending.reader.unclaimed:
                pending.reader.claim(partition.key)
        return data

    # --- reading ------------------------------------------------------------------------------

    def _send(self, fetch: SharedFetch | None) -> None:
        """Send a request; a loop handles responses that are available immediately."""
        while fetch is not None:
            done: Future[object]
            try:
                transport = fetch.reader.pool.take(fetch.node_id)
                done = fetch.send(transport)
            except Exception as error:  # no error may leave the others waiting
                done = Future()
                done.set_exception(error)
            if not done.done():
                done.add_done_callback(partial(self._completed, fetch))
                return
            fetch = self._complete(fetch, done)

    def _completed(self, fetch: SharedFetch, done: Future[object]) -> None:
        self._send(self._complete(fetch, done))

    def _complete(self, fetch: SharedFetch, done: Future[object]) -> SharedFetch | None:
        """Cache and return a response; returns what must be read again."""
        if fetch.transport is not None:
            fetch.reader.pool.give_back(fetch.node_id, fetch.transport)
        error = done.exception()
        with self._lock:
            self._unregister(fetch)
            again = None
            if error is not None:
                self._fail(fetch, error)
            else:
                again = self._take(fetch, cast(FetchResponse, done.result()))
            self._cache.evict()
            for part in fetch.parts:
                self._cache.release(part.wanted.partition)
            delivers = self._start_delivering()
        if delivers:
            self._deliver()
        return again

    def _fail(self, fetch: SharedFetch, answer: object) -> None:
        """Fail all waiting fetches with the same error."""
        for part in fetch.parts:
            self._cache.forget(part.wanted.partition)
            for pending in list(part.waiting):
                pending.leave()
                self._outbox.append((pending.future, answer))

    def _take(self, fetch: SharedFetch, response: FetchResponse) -> SharedFetch | None:
        """Cache a response and answer waiting fetches; returns what must be read again."""
        if response.error_code:
            self._fail(fetch, response)
            return None
        direct: Direct = {}
        can_answer = False
        for part, data in fetch.match(response):
            can_answer |= self._store(part, data, direct)
        now_ms = self._clock.monotonic_ms()
        over = not can_answer or now_ms >= fetch.deadline_ms
        answered: dict[PendingFetch, None] = {}
        for part in fetch.parts:
            if over or part.place in direct or part.wanted.partition.find(part.wanted.offset):
                answered.update(part.waiting)
        for pending in answered:
            pending.leave()
            self._outbox.append((pending.future, self._answer(pending, direct)))
        waited_for = [part for part in fetch.parts if part.waiting]
        if not waited_for:
            return None
        again = fetch.repeat(waited_for, fetch.deadline_ms - now_ms)
        self._register(again)
        return again

    def _store(self, part: FetchPart, data: PartitionData, direct: Direct) -> bool:
        """Cache the data of a partition; whether waiting fetches can be answered."""
        partition, offset = part.place
        if data.error_code:
            self._cache.forget(partition)
            direct[part.place] = data
            return True
        self._cache.learn(partition, data)
        records = data.records
        if records is None or not len(records):
            return False
        view = memoryview(cast(bytes, records))
        self.counts.partitions_read += 1
        self.counts.bytes_read += len(view)
        run = whole_run(view, offset, data.aborted_transactions)
        if run is None:
            # Not a whole batch, or corrupt: each reader reports it.
            self._cache.forget(partition)
            direct[part.place] = data
            return True
        cached = partition.find(offset)
        if cached is None:
            self._cache.add(partition, run, offset)
            cached = partition.find(offset)
        if cached is None:
            direct[part.place] = data  # before the current start of the log
        elif not part.waiting and not part.fetch.reader.closed:
            part.fetch.reader.expect(partition.key, cached)
        return True

    # --- completing, without the lock ---------------------------------------------------------

    def _start_delivering(self) -> bool:
        """Whether the caller must call `_deliver` after releasing the lock."""
        if self._delivering or not self._outbox:
            return False
        self._delivering = True
        return True

    def _deliver(self) -> None:
        """Complete futures, one thread at a time; other threads leave theirs to it."""
        try:
            while True:
                while self._outbox:
                    future, answer = self._outbox.popleft()
                    if isinstance(answer, BaseException):
                        future.set_exception(answer)
                    else:
                        future.set_result(answer)
                with self._lock:
                    if not self._outbox:
                        self._delivering = False
                        return
        except BaseException:
            self._delivering = False  # interrupted: the next caller continues
            raise


# Transports to the cluster, topic id, partition, isolation level.
Key = tuple[TransportPool, bytes, int, int]
