"""SharedReads: fetches of many readers, each partition read once for all of them.

An ask whose offset is among what is kept is answered at once. Otherwise it waits for a read that is
under way at that offset, of any reader, or starts one. What arrives is kept for those who come
later, and given to all who wait: the same bytes, never copied.

    ask ──► kept? ──► answered
             │ no
             ├─► a read of that offset is under way ──► wait for it
             └─► take a free lane, read ──► keep ──► answer all who wait for any of its partitions

One lock guards the state. Requests are sent and futures completed without it; a future completed
here may ask again at once, so completions go through a queue that one thread at a time works off.
"""

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import cast

from broker import concurrency
from broker.client.sharing.flights import NO_TOPIC_ID, Ask, Flight, Leg, Reader, Wanted
from broker.client.sharing.kept import UNKNOWN, Kept, KeptPartition
from broker.client.sharing.lanes import Lanes
from broker.client.sharing.runs import whole_run
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
NO_DIVERGENCE = EpochEndOffset()  # readers do not change them: one of each does for all answers
NO_LEADER = LeaderIdAndEpoch()
NO_SNAPSHOT = SnapshotId()
NO_SESSION = -1
CONSUMER = -1
ISOLATION_LEVELS = (0, 1)

Direct = dict[tuple[KeptPartition, int], PartitionData]


@dataclass(slots=True)
class ReadCounts:
    """What was read and handed out so far."""

    fetches: int = 0  # requests to brokers for all
    partitions_read: int = 0  # partitions with records in their answers
    bytes_read: int = 0
    bytes_given: int = 0
    private_fetches: int = 0  # requests that could not be shared


def can_share(request: FetchRequest, version_max: int | None) -> bool:
    """Whether it can share the response to another reader: a plain long poll by topic id."""
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
    """Answers fetch requests of all readers; see the top."""

    def __init__(self, *, cache_bytes: int, clock: Clock | None = None) -> None:
        self.counts = ReadCounts()
        self._clock = clock or SystemClock()
        self._lock = concurrency.Lock()
        self._kept = Kept(cache_bytes)
        self._under_way: dict[tuple[KeptPartition, int], Leg] = {}
        self._outbox: deque[tuple[Future[object], object]] = deque()
        self._delivering = False

    def ask(
        self, reader: Reader, node_id: int, request: FetchRequest, *, timeout_ms: int
    ) -> Future[object]:
        """Answer a request that `can_share`, now or when any of its partitions has news."""
        ask = Ask(reader, request, self._clock.monotonic_ms())
        with self._lock:
            if reader.closed:
                raise ClientError("the client is closed")
            ask.wanted = self._wanted(reader, node_id, request)
            missing = [each for each in ask.wanted if each.partition.find(each.offset) is None]
            answer = self._answer(ask) if len(missing) < len(ask.wanted) else None
            if answer is None:
                reader.asks[ask] = None
            flight = self._plan(ask, missing, node_id, timeout_ms) if missing else None
        if answer is not None:
            ask.future.set_result(answer)  # the future is not published yet: no callback runs
        if flight is not None:
            self._launch(flight)
        return ask.future

    def count_private(self) -> None:
        """Note a request that went its own way."""
        with self._lock:
            self.counts.private_fetches += 1

    def leave(self, reader: Reader) -> None:
        """Fail what a reader still waits for; it cannot ask any more."""
        with self._lock:
            reader.closed = True
            asks = list(reader.asks)
            for ask in asks:
                ask.leave()
            for key in list(reader.unclaimed):
                reader.claim(key)
            self._kept.evict()
            error = ConnectionFailed("the client was closed")
            self._outbox.extend((ask.future, error) for ask in asks)
            delivers = self._start_delivering()
        if delivers:
            self._deliver()

    def forget_node(self, lanes: Lanes, node_id: int) -> None:
        """Keep nothing that a node gave: it may come back with another log."""
        with self._lock:
            self._kept.forget_where(
                lambda kept: kept.node_id == node_id and cast("Key", kept.key)[0] is lanes
            )

    # --- asking, under the lock ---------------------------------------------------------------

    def _wanted(self, reader: Reader, node_id: int, request: FetchRequest) -> list[Wanted]:
        found = []
        for topic in request.topics:
            for asked in topic.partitions:
                key: Key = (
                    reader.lanes,
                    topic.topic_id,
                    asked.partition,
                    request.isolation_level,
                )
                partition = self._kept.partition(key, node_id, asked.current_leader_epoch)
                offset = asked.fetch_offset
                if reader.unclaimed and reader.unclaimed.get(key) is not partition.find(offset):
                    reader.claim(key)  # it went elsewhere
                found.append(Wanted(partition, offset, topic, asked))
        return found

    def _plan(
        self, ask: Ask, missing: list[Wanted], node_id: int, timeout_ms: int
    ) -> Flight | None:
        """See that all is on its way that is not there.

        Also for an ask that is answered now: otherwise a partition with much to read would keep
        the others from ever being read.
        """
        waits = ask in ask.reader.asks
        grounded = []
        for wanted in missing:
            leg = self._under_way.get((wanted.partition, wanted.offset))
            if leg is None or leg.flight.deadline_ms > ask.deadline_ms:
                grounded.append(wanted)
            elif waits:
                ask.wait_for(leg)
        if not grounded:
            return None
        flight = Flight(ask.reader, node_id, ask.request, ask.deadline_ms, timeout_ms)
        if len(grounded) == len(ask.wanted):
            flight.carry_all(grounded)
        else:
            flight.carry(grounded)
        self._register(flight)
        if waits:
            for leg in flight.legs:
                ask.wait_for(leg)
        return flight

    def _register(self, flight: Flight) -> None:
        self.counts.fetches += 1
        for leg in flight.legs:
            self._under_way.setdefault(leg.place, leg)
            leg.wanted.partition.reads_under_way += 1

    def _unregister(self, flight: Flight) -> None:
        for leg in flight.legs:
            if self._under_way.get(leg.place) is leg:
                del self._under_way[leg.place]
            leg.wanted.partition.reads_under_way -= 1

    # --- answering, under the lock ------------------------------------------------------------

    def _answer(self, ask: Ask, direct: Direct | None = None) -> FetchResponse:
        """What is there for an ask, within its bytes; `direct` is handed through as it came."""
        left = ask.request.max_bytes
        topics: dict[bytes, FetchableTopicResponse] = {}
        for wanted in ask.wanted:
            partition, offset, topic, _ = wanted
            data = direct.get((partition, offset)) if direct else None
            if data is None:
                data = self._data(ask, wanted, left)
                size = len(data.records or NO_RECORDS)
                left -= size
                self.counts.bytes_given += size
            answered = topics.get(topic.topic_id)
            if answered is None:
                answered = FetchableTopicResponse(topic.topic, topic.topic_id, [])
                topics[topic.topic_id] = answered
            answered.partitions.append(data)
        return FetchResponse(responses=list(topics.values()))

    def _data(self, ask: Ask, wanted: Wanted, left: int) -> PartitionData:
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
        untouched = left == ask.request.max_bytes
        part = run.part(offset, bytes_max, minimum_one=untouched)
        if part is not None:
            data.records = part[0]
            data.aborted_transactions = cast("list[AbortedTransaction] | None", part[1])
            if ask.reader.unclaimed:
                ask.reader.claim(partition.key)
        return data

    # --- reading ------------------------------------------------------------------------------

    def _launch(self, flight: Flight | None) -> None:
        """Send a request; answers that are there at once are dealt with in a loop."""
        while flight is not None:
            done: Future[object]
            try:
                lane = flight.reader.lanes.take(flight.node_id)
                done = flight.take_off(lane)
            except Exception as error:  # whatever it is, it must not leave the others waiting
                done = Future()
                done.set_exception(error)
            if not done.done():
                done.add_done_callback(partial(self._landed, flight))
                return
            flight = self._land(flight, done)

    def _landed(self, flight: Flight, done: Future[object]) -> None:
        self._launch(self._land(flight, done))

    def _land(self, flight: Flight, done: Future[object]) -> Flight | None:
        """Keep and hand out what a read brought; return what must be read once more."""
        if flight.lane is not None:
            flight.reader.lanes.give_back(flight.node_id, flight.lane)
        error = done.exception()
        with self._lock:
            self._unregister(flight)
            again = None
            if error is not None:
                self._fail(flight, error)
            else:
                again = self._take(flight, cast(FetchResponse, done.result()))
            self._kept.evict()
            for leg in flight.legs:
                self._kept.release(leg.wanted.partition)
            delivers = self._start_delivering()
        if delivers:
            self._deliver()
        return again

    def _fail(self, flight: Flight, answer: object) -> None:
        """Give all who wait the same bad news."""
        for leg in flight.legs:
            self._kept.forget(leg.wanted.partition)
            for ask in list(leg.asks):
                ask.leave()
                self._outbox.append((ask.future, answer))

    def _take(self, flight: Flight, response: FetchResponse) -> Flight | None:
        """Keep what came and answer who waits for it; return what must be read once more."""
        if response.error_code:
            self._fail(flight, response)
            return None
        direct: Direct = {}
        has_news = False
        for leg, data in flight.match(response):
            has_news |= self._keep(leg, data, direct)
        now_ms = self._clock.monotonic_ms()
        over = not has_news or now_ms >= flight.deadline_ms
        told: dict[Ask, None] = {}
        for leg in flight.legs:
            if over or leg.place in direct or leg.wanted.partition.find(leg.wanted.offset):
                told.update(leg.asks)
        for ask in told:
            ask.leave()
            self._outbox.append((ask.future, self._answer(ask, direct)))
        waited_for = [leg for leg in flight.legs if leg.asks]
        if not waited_for:
            return None
        again = flight.again(waited_for, flight.deadline_ms - now_ms)
        self._register(again)
        return again

    def _keep(self, leg: Leg, data: PartitionData, direct: Direct) -> bool:
        """Take in what was read of a partition; whether there is news for those who wait."""
        partition, offset = leg.place
        if data.error_code:
            self._kept.forget(partition)
            direct[leg.place] = data
            return True
        self._kept.learn(partition, data)
        records = data.records
        if records is None or not len(records):
            return False
        view = memoryview(cast(bytes, records))
        self.counts.partitions_read += 1
        self.counts.bytes_read += len(view)
        run = whole_run(view, offset, data.aborted_transactions)
        if run is None:
            # No whole batch, or nonsense: each reader says so in its own words.
            self._kept.forget(partition)
            direct[leg.place] = data
            return True
        kept = partition.find(offset)
        if kept is None:
            self._kept.add(partition, run, offset)
            kept = partition.find(offset)
        if kept is None:
            direct[leg.place] = data  # before the start of the log as it is now
        elif not leg.asks and not leg.flight.reader.closed:
            leg.flight.reader.expect(partition.key, kept)
        return True

    # --- completing, without the lock ---------------------------------------------------------

    def _start_delivering(self) -> bool:
        """Whether the caller is the one to deliver, once it has released the lock."""
        if self._delivering or not self._outbox:
            return False
        self._delivering = True
        return True

    def _deliver(self) -> None:
        """Complete futures, one thread at a time; others leave theirs to it."""
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


Key = tuple[Lanes, bytes, int, int]  # how it is reached, topic id, partition, isolation level
