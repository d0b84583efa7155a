"""Sender: the thread that sends batches in produce requests and settles them by the responses.

One round: process the responses: settle batches or put them back; fail batches whose delivery
timeout expired; take what is ready, at most one batch per partition and request; encode and send.

Order within a partition: up to five requests may be in flight. When one fails, the queue stalls
until the others are answered; then all batches are sent again in their order, one by one, with the
same sequences.
"""

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import takewhile

from broker import concurrency
from broker.batch.layout import NO_SEQUENCE
from broker.client.accumulator import Accumulator, BatchQueue
from broker.client.answers import check, code_of
from broker.client.cluster import Cluster
from broker.client.config import ProducerConfig
from broker.client.produced_batch import NO_OFFSET, ProducedBatch
from broker.client.retry import is_retriable
from broker.client.sequences import Sequences
from broker.client.shared_threads import Work
from broker.client.transaction import Transaction
from broker.errors import (
    BrokerError,
    ClientError,
    ConnectionFailed,
    ErrorCode,
    MalformedMessage,
    MillstreamError,
    RequestTimeout,
)
from broker.model import NO_TIMESTAMP, ProducerIdentity, TopicPartition
from broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from broker.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

# Version 12 would let a transactional producer skip AddPartitionsToTxn, with epochs that move at
# every commit; 13 names topics by id. Names and explicit partitions work with every broker.
PRODUCE_VERSION_MAX = 11
WAIT_MS_MAX = 60_000
CLOSED = "the producer was closed before the record was delivered"
ABANDONED = "the producer was abandoned before the record was delivered"

STALE_METADATA = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.REPLICA_NOT_AVAILABLE,
    }
)
# The broker may have stored the batch nevertheless.
UNCERTAIN = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
SEQUENCE_ERRORS = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})
TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
HINTS = {
    ErrorCode.MESSAGE_TOO_LARGE: "the broker's message.max.bytes, or the topic's, is smaller",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "records may have been lost on the broker",
    ErrorCode.INVALID_RECORD: "records of a compacted topic need keys; see the broker's log",
}


@dataclass(slots=True)
class NodeBatches:
    """The batches of one produce request to a broker."""

    node_id: int
    batches: list[ProducedBatch] = field(default_factory=list)
    size_bytes: int = 0


@dataclass(slots=True)
class SendPlan:
    """The requests of a round, partitions to prepare first, and the time until the next round."""

    by_node: dict[int, NodeBatches] = field(default_factory=dict)
    unprepared: list[TopicPartition] = field(default_factory=list)
    wait_ms: int = WAIT_MS_MAX


class Sender:
    """Sends batches until it is stopped; other threads only start and stop it.

    Senders of clients that share threads have no thread of their own: any shared thread runs them,
    one at a time.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ProducerConfig,
        accumulator: Accumulator,
        sequences: Sequences | None,
        transaction: Transaction | None,
    ) -> None:
        """Without sequences it is not idempotent, without a transaction not transactional."""
        self._cluster = cluster
        self._clock = cluster.clock
        self._config = config
        self._accumulator = accumulator
        self._sequences = sequences
        self._transaction = transaction
        self._in_flight: dict[int, int] = {}
        self._answers: deque[tuple[NodeBatches, Future[object]]] = deque()
        self._turn = 0
        self._stopping = False
        self._abandoned: MillstreamError | None = None
        self._thread: concurrency.Thread | None = None
        self._work: Work | None = None  # on threads that producers share
        cluster.on_refresh(accumulator.wake)

    def start(self) -> None:
        """Start, on a new thread or on those that the clients share."""
        shared = self._cluster.threads
        if shared is None:
            name = "millstream-producer"
            self._thread = concurrency.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()
            return
        self._work = shared.senders.run(self._turn_on_shared_thread)
        self._accumulator.on_signal = self._work.wake
        self._work.wake()  # for records that were queued before

    def stop_soon(self) -> None:
        """End the thread after its round; batches without outcome fail."""
        self._stopping = True
        self._accumulator.wake()

    def abandon(self) -> None:
        """Fail all batches that are not in flight, now and later; any thread may call it."""
        self._abandoned = ClientError(ABANDONED)
        self._accumulator.wake()

    def join(self) -> None:
        """Wait until the sender has ended."""
        if self._work is not None:
            self._work.join()
        elif self._thread is not None and not self.is_current():
            self._thread.join()

    def is_current(self) -> bool:
        """Whether this is the sender's thread."""
        if self._work is not None:
            return self._work.is_current()
        return concurrency.current_thread() is self._thread

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._accumulator.wait_for_work(self.round())
        except BaseException as error:
            if not self._fail_all(error):
                raise
        else:
            self._drop_incomplete(CLOSED)

    def _turn_on_shared_thread(self) -> int | None:
        if self._stopping:
            self._drop_incomplete(CLOSED)
            return None
        try:
            return self.round()
        except BaseException as error:
            if not self._fail_all(error):
                raise
            return None

    def _fail_all(self, error: BaseException) -> bool:
        """Fail everything; whether the error is a consequence of closing the producer."""
        expected = self._stopping and isinstance(error, MillstreamError)
        self._drop_incomplete(CLOSED if expected else f"the producer failed: {error!r}")
        return expected

    def _drop_incomplete(self, why: str) -> None:
        reason = ClientError(why)
        self._accumulator.refuse(reason)
        with self._accumulator.work:
            left = self._accumulator.incomplete()
            for batch in left:
                self._accumulator.drop(batch)
        for batch in left:
            batch.fail(reason)
            self._accumulator.forget(batch)

    def round(self) -> int:
        """Do all that can be done now; returns the time in ms until the next round."""
        while self._answers:
            self._take_answer(*self._answers.popleft())
        self._fail_expired()
        self._drop_refused()
        self._restart_sequences()
        if not self._identified():
            return 0
        plan = self._plan()
        for outgoing in plan.by_node.values():
            self._send_request(outgoing)
        if plan.unprepared and self._transaction is not None:
            self._transaction.prepare(plan.unprepared)
        return 0 if plan.by_node or plan.unprepared else plan.wait_ms

    # --- what to send -------------------------------------------------------------------------

    def _plan(self) -> SendPlan:
        plan = SendPlan()
        now_ms = self._clock.monotonic_ms()
        with self._accumulator.work:
            queues = list(self._accumulator.active())
            self._turn += 1  # rotates the queues, so that a busy one does not starve the others
            for index in range(len(queues)):
                self._plan_queue(queues[(index + self._turn) % len(queues)], plan, now_ms)
        if queues:
            plan.wait_ms = min(plan.wait_ms, self._cluster.refresh_soon())
        return plan

    def _plan_queue(self, queue: BatchQueue, plan: SendPlan, now_ms: int) -> None:
        batch = queue.batches[0]
        expires_ms = batch.created_ms + self._config.delivery_timeout_ms
        plan.wait_ms = min(plan.wait_ms, max(1, expires_ms - now_ms))
        if queue.stalled or self._must_wait(queue, batch):
            return
        ready_in_ms = self._accumulator.ready_in_ms(queue, now_ms)
        if ready_in_ms > 0:
            plan.wait_ms = min(plan.wait_ms, ready_in_ms)
            return
        if self._transaction is not None and not self._transaction.is_prepared(queue.tp):
            plan.unprepared.append(queue.tp)
            return
        leader = self._cluster.known_leader(queue.tp)
        if leader is None:
            self._cluster.invalidate(queue.tp.topic)
        elif self._in_flight.get(leader, 0) < self._config.max_in_flight_requests_per_connection:
            self._add_batch(queue, plan.by_node.setdefault(leader, NodeBatches(leader)))

    def _add_batch(self, queue: BatchQueue, outgoing: NodeBatches) -> None:
        size_bytes = queue.batches[0].size_bytes
        if outgoing.batches and outgoing.size_bytes + size_bytes > self._config.max_request_size:
            return
        batch = self._accumulator.take(queue)
        if self._sequences is not None and not batch.has_sequence:
            self._sequences.number(batch)
        outgoing.batches.append(batch)
        outgoing.size_bytes += size_bytes

    def _send_request(self, outgoing: NodeBatches) -> None:
        topics = self._encode(outgoing)
        if not topics:
            return
        request = ProduceRequest(
            self._config.transactional_id,
            self._config.required_acks,
            self._cluster.config.request_timeout_ms,
            topics,
        )
        oldest_ms = min(batch.created_ms for batch in outgoing.batches)
        expires_ms = oldest_ms + self._config.delivery_timeout_ms
        left_ms = max(1, expires_ms - self._clock.monotonic_ms())
        node_id = outgoing.node_id
        self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
        future = self._cluster.submit(
            node_id,
            request,
            timeout_ms=min(left_ms, self._cluster.config.request_timeout_ms),
            version_max=PRODUCE_VERSION_MAX,
        )
        future.add_done_callback(lambda answered: self._answered(outgoing, answered))

    def _encode(self, outgoing: NodeBatches) -> list[TopicProduceData]:
        topics: dict[str, TopicProduceData] = {}
        for batch in tuple(outgoing.batches):
            try:
                batch.encode(
                    self._config.compression_type,
                    self._config.compression_level,
                    transactional=self._transaction is not None,
                )
            except Exception as error:
                # Values are checked in `send`; any remaining error must not stop other batches.
                outgoing.batches.remove(batch)
                self._fail(batch, ClientError(f"cannot build a batch for {batch.tp}: {error!r}"))
                continue
            assert batch.data is not None
            topic = topics.setdefault(batch.tp.topic, TopicProduceData(batch.tp.topic))
            topic.partition_data.append(PartitionProduceData(batch.tp.partition, batch.data))
        return list(topics.values())

    def _answered(self, outgoing: NodeBatches, answered: Future[object]) -> None:
        self._answers.append((outgoing, answered))
        self._accumulator.wake()

    # --- identity -----------------------------------------------------------------------------

    def _identified(self) -> bool:
        """Get a producer id before the first batch is sent; waits for it, False without one."""
        if self._sequences is None or self._sequences.producer is not None:
            return True
        if self._transaction is not None:
            return True  # no records are taken before init_transactions
        with self._accumulator.work:
            if not any(True for _ in self._accumulator.active()):
                return True
        try:
            self._sequences.start(self._ask_identity())
        except MillstreamError as error:
            if not is_retriable(error):
                self._fail_waiting(error)
            return False
        return True

    def _ask_identity(self) -> ProducerIdentity:
        def attempt(left_ms: int) -> ProducerIdentity:
            request = InitProducerIdRequest(None, self._config.transaction_timeout_ms)
            answer = self._cluster.ask(None, request, InitProducerIdResponse, timeout_ms=left_ms)
            check(answer.error_code, "requesting a producer id")
            return ProducerIdentity(answer.producer_id, answer.producer_epoch)

        limit_ms = min(self._cluster.config.request_timeout_ms, self._config.delivery_timeout_ms)
        return self._cluster.retry("requesting a producer id", attempt, timeout_ms=limit_ms)

    def _must_wait(self, queue: BatchQueue, batch: ProducedBatch) -> bool:
        """Whether sending a batch now could break the order of sequences."""
        sequences = self._sequences
        if sequences is None:
            return False
        if sequences.producer is None:
            return True  # it was queued after the check of the producer id; the next round has one
        if sequences.restart_wanted and not batch.uncertain:
            return True
        if not queue.in_flight:
            return False
        # A broker accepts any sequence number of an unknown producer: the second batch must
        # wait until the first one is accepted. Retried batches are sent one by one, too. Nothing
        # follows them: a retried batch may be stored already, and if its connection breaks, later
        # ones could go ahead on the next, until it is not among the last five that brokers know.
        is_retried = queue.in_flight[0].attempts > 0
        return is_retried or batch.has_sequence or queue.accepted_producer != sequences.producer

    def _restart_sequences(self) -> None:
        """Renumber everything once no batch can be stored with its old sequence."""
        sequences = self._sequences
        if sequences is None or not sequences.restart_wanted or any(self._in_flight.values()):
            return
        with self._accumulator.work:
            waiting = [batch for queue in self._accumulator.active() for batch in queue.batches]
            if any(batch.uncertain for batch in waiting):
                return
            for batch in waiting:
                batch.base_sequence = NO_SEQUENCE
            sequences.restart()

    # --- outcomes -----------------------------------------------------------------------------

    def _take_answer(self, outgoing: NodeBatches, answered: Future[object]) -> None:
        self._in_flight[outgoing.node_id] -= 1
        error = answered.exception()
        if error is not None:
            assert isinstance(error, MillstreamError), error
            self._cluster.invalidate()
            for batch in outgoing.batches:
                self._not_answered(batch, error)
            return
        response = answered.result()
        if response is None:
            for batch in outgoing.batches:
                self._complete(batch, NO_OFFSET, NO_TIMESTAMP)
            return
        assert isinstance(response, ProduceResponse), response
        answers = {
            (topic.name, partition.index): partition
            for topic in response.responses
            for partition in topic.partition_responses
        }
        for batch in outgoing.batches:
            answer = answers.get(batch.tp)
            if answer is None:
                silent = f"broker {outgoing.node_id} did not respond for {batch.tp}"
                self._not_answered(batch, MalformedMessage(silent))
            else:
                self._settle(batch, answer)

    def _not_answered(self, batch: ProducedBatch, error: MillstreamError) -> None:
        """Handle a lost request or response."""
        lost = isinstance(error, ConnectionFailed | RequestTimeout | MalformedMessage)
        batch.uncertain = batch.uncertain or lost
        self._retry_or_fail(batch, error, retriable=lost)

    def _settle(self, batch: ProducedBatch, answer: PartitionProduceResponse) -> None:
        code = code_of(answer.error_code)
        if code is ErrorCode.NONE or code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._complete(batch, answer.base_offset, answer.log_append_time_ms)
            return
        if code in TOO_LARGE and len(batch.rows) > 1:
            self._split(batch)
            return
        if code in STALE_METADATA:
            leader = answer.current_leader
            if not self._cluster.learn_leader(batch.tp, leader.leader_id, leader.leader_epoch):
                self._cluster.invalidate(batch.tp.topic)
        reason = answer.error_message or code.name.lower().replace("_", " ")
        error = BrokerError(code, f"{batch.tp}: {reason}", hint=HINTS.get(code, ""))
        batch.uncertain = batch.uncertain or code in UNCERTAIN
        retriable = error.retriable
        if code in SEQUENCE_ERRORS and self._sequences is not None:
            retriable = self._sequence_refused(batch, code)
        self._retry_or_fail(batch, error, retriable=retriable)

    def _sequence_refused(self, batch: ProducedBatch, code: ErrorCode) -> bool:
        """Whether a batch with a refused sequence may be sent again."""
        assert self._sequences is not None
        batch.uncertain = False
        if self._sequences.restart_wanted:
            return True
        with self._accumulator.work:
            if not self._accumulator.queue_of(batch).is_oldest(batch):
                return True  # an earlier batch must be stored first
        if code is ErrorCode.UNKNOWN_PRODUCER_ID and self._transaction is None:
            # Retention removed all records of this producer; the batch itself is valid.
            self._sequences.restart_wanted = True
            return True
        return False

    def _retry_or_fail(
        self, batch: ProducedBatch, error: MillstreamError, *, retriable: bool
    ) -> None:
        now_ms = self._clock.monotonic_ms()
        batch.attempts += 1
        batch.last_error = error
        late = now_ms >= batch.created_ms + self._config.delivery_timeout_ms
        if not retriable or late or batch.attempts > self._config.retries:
            self._fail(batch, _timed_out(batch, now_ms) if late and retriable else error)
            return
        batch.retry_at_ms = now_ms + self._cluster.backoff.delay_ms(batch.attempts)
        with self._accumulator.work:
            self._accumulator.put_back(batch)

    def _complete(self, batch: ProducedBatch, base_offset: int, append_time_ms: int) -> None:
        with self._accumulator.work:
            self._accumulator.queue_of(batch).accepted_producer = batch.producer
            self._accumulator.drop(batch)
        batch.complete(base_offset, append_time_ms)
        self._accumulator.forget(batch)

    def _fail(self, batch: ProducedBatch, error: MillstreamError) -> None:
        if self._transaction is not None:
            self._transaction.batch_failed(batch, error)
        elif self._sequences is not None and batch.has_sequence:
            self._sequences.restart_wanted = True
        with self._accumulator.work:
            self._accumulator.drop(batch)
        batch.fail(error)
        self._accumulator.forget(batch)

    def _split(self, batch: ProducedBatch) -> None:
        batch.attempts += 1
        parts = batch.split(batch.size_bytes // 2)
        with self._accumulator.work:
            self._accumulator.replace(batch, parts)

    def _fail_expired(self) -> None:
        now_ms = self._clock.monotonic_ms()
        oldest_ms = now_ms - self._config.delivery_timeout_ms
        with self._accumulator.work:
            late = [
                batch
                for queue in self._accumulator.active()
                for batch in takewhile(lambda batch: batch.created_ms <= oldest_ms, queue.batches)
            ]
        for batch in late:
            self._fail(batch, _timed_out(batch, now_ms))

    def _drop_refused(self) -> None:
        failure = self._abandoned or (
            None if self._transaction is None else self._transaction.failure()
        )
        if failure is not None:
            self._fail_waiting(failure)

    def _fail_waiting(self, error: MillstreamError) -> None:
        with self._accumulator.work:
            waiting = [batch for queue in self._accumulator.active() for batch in queue.batches]
        for batch in waiting:
            self._fail(batch, error)


def _timed_out(batch: ProducedBatch, now_ms: int) -> RequestTimeout:
    last = batch.last_error
    reason = f"the last attempt failed: {last}" if last else "it could not be sent"
    return RequestTimeout(
        f"{batch.record_count or len(batch.rows)} records for {batch.tp} were not delivered in "
        f"{now_ms - batch.created_ms} ms; {reason}",
        hint="check that the leader of the partition is available, or raise delivery_timeout_ms",
    )
