"""Produce: appends batches and returns their offsets."""

import logging
from functools import partial
from struct import Struct

from broker.batch.codec import RecordFacts, check_batches, check_records
from broker.batch.layout import CODEC_MASK, HEADER_BYTES, MAGIC, TRANSACTIONAL_BIT
from broker.coordinator.partition import Partition
from broker.coordinator.parts import Parts
from broker.coordinator.topics import Topic
from broker.coordinator.transaction import TRANSACTIONS_V2
from broker.errors import BrokerError, CorruptBatch, ErrorCode, StorageError
from broker.handlers.answers import follow
from broker.handlers.partitions import error_code_of
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import ProducerIdentity, Records, TopicPartition
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

logger = logging.getLogger(__name__)

ACKS_ALL = -1
ACKS_NONE = 0
ACKS_LEADER = 1
NO_OFFSET = -1
REPLICAS = 1

AT_ONCE_MAX = 20  # partitions that are written without a pause for other requests

ZSTD = 4
ZSTD_VERSION_MIN = 7
ABORTABLE_VERSION_MIN = 11  # the client supports TRANSACTION_ABORTABLE
JOINING_VERSION_MIN = 12  # partitions are added to the transaction implicitly
TOPIC_ID_VERSION_MIN = 13

# Length, magic, attributes, producer id and epoch of a batch's header.
BATCH_FACTS = Struct(">8xi4xb4xh20xqh")
BEFORE_LENGTH_ENDS = 12
OLDEST_RECORD_BYTES = 14  # the smallest record of any version of the format

# Detected before the log is read; all other errors of an append contain the log start offset.
START_UNKNOWN = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
)

Waits = list[tuple[Partition, int, PartitionProduceResponse]]
# Per partition of a request: facts about its records, an error, or not inspected.
Inspected = RecordFacts | CorruptBatch | None


def inspect(
    state: BrokerState, request: ProduceRequest, context: RequestContext
) -> list[list[Inspected]]:
    """Read all records before the broker's lock is acquired: decompression may take long.

    Bytes that are not a batch, or too large for their topic, are refused by the write.
    """
    by_id = context.version >= TOPIC_ID_VERSION_MIN
    found = []
    for data in request.topic_data:
        topic = state.topics.by_id(data.topic_id) if by_id else state.topics.get(data.name)
        bytes_max = 0 if topic is None else topic.config.max_message_bytes
        found.append([_inspect(part.records, bytes_max) for part in data.partition_data])
    return found


def _inspect(records: Records | None, bytes_max: int) -> Inspected:
    if (
        not isinstance(records, (bytes, memoryview))
        or not HEADER_BYTES <= len(records) <= bytes_max
    ):
        return None
    length, magic, *_ = BATCH_FACTS.unpack_from(records)
    if length != len(records) - BEFORE_LENGTH_ENDS or magic != MAGIC:
        return None
    try:
        return check_records(memoryview(records))
    except CorruptBatch as error:
        return error


def produce(state: BrokerState, request: ProduceRequest, context: RequestContext) -> object:
    """Append the records, partition by partition; a failed one does not affect the others."""
    if request.acks not in (ACKS_ALL, ACKS_NONE, ACKS_LEADER):
        return refuse(request, ErrorCode.INVALID_REQUIRED_ACKS)
    if len(request.topic_data) > AT_ONCE_MAX:
        return _produce_in_parts(state, request, context)
    for data in request.topic_data:  # a loop: any() would cost every request more
        if len(data.partition_data) > AT_ONCE_MAX:
            return _produce_in_parts(state, request, context)
    if request.acks == ACKS_NONE:
        _write_unanswered(state, request, context)
        return None
    if context.version < JOINING_VERSION_MIN or not request.transactional_id:
        return _write(state, request, context)
    joined = join_transaction(state, request, context.version)
    if isinstance(joined, Pending):
        _keep_records(request)
    return follow(joined, lambda _: _write(state, request, context))


def _produce_in_parts(
    state: BrokerState, request: ProduceRequest, context: RequestContext
) -> Parts[ProduceResponse | Pending[ProduceResponse] | None]:
    """A request for many partitions, with other requests in between."""

    def write(_: ErrorCode) -> ProduceResponse | Pending[ProduceResponse]:
        return _write(state, request, context)

    if context.version >= JOINING_VERSION_MIN and request.transactional_id:
        joined = join_transaction(state, request, context.version)
        if isinstance(joined, Pending):
            _keep_records(request)
            return follow(joined, write)
    writer = _Writer(state, request, context)
    response = ProduceResponse((yield from writer.write_in_parts()))
    if request.acks == ACKS_NONE:
        if writer.failure is not None:
            raise writer.failure
        return None
    if writer.waits:
        return _when_durable(state, request, response, writer.waits)
    return response


def _write(
    state: BrokerState, request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Pending[ProduceResponse]:
    writer = _Writer(state, request, context)
    response = ProduceResponse(writer.write_topics())
    if writer.waits:
        return _when_durable(state, request, response, writer.waits)
    return response


def _write_unanswered(state: BrokerState, request: ProduceRequest, context: RequestContext) -> None:
    writer = _Writer(state, request, context)
    writer.write_topics()
    if writer.failure is not None:
        # The producer gets no response: closing the connection makes it refresh its metadata.
        raise writer.failure


def join_transaction(
    state: BrokerState, request: ProduceRequest, version: int
) -> ErrorCode | Pending[ErrorCode]:
    """Add the partitions to the producer's transaction before the records are written.

    Partitions that cannot be added are refused by the write, one by one.
    """
    joining: dict[ProducerIdentity, list[TopicPartition]] = {}
    for data in request.topic_data:
        by_id = version >= TOPIC_ID_VERSION_MIN
        topic = state.topics.by_id(data.topic_id) if by_id else state.topics.get(data.name)
        for part in data.partition_data:
            producer = _transactional_producer(part.records)
            known = topic is not None and 0 <= part.index < topic.partition_count
            if topic is not None and known and producer is not None:
                joining.setdefault(producer, []).append(TopicPartition(topic.name, part.index))
    if len(joining) != 1:
        return ErrorCode.NONE
    ((producer, partitions),) = joining.items()
    try:
        return state.transactions.add_partitions(
            request.transactional_id or "", producer, partitions, client_version=TRANSACTIONS_V2
        )
    except BrokerError as error:
        return error.code


def _keep_records(request: ProduceRequest) -> None:
    """Copy records that are written later: the buffer of a request is reused."""
    for topic in request.topic_data:
        for part in topic.partition_data:
            if isinstance(part.records, (bytes, memoryview)):
                part.records = memoryview(bytearray(part.records))


def _transactional_producer(records: Records | None) -> ProducerIdentity | None:
    if not isinstance(records, (bytes, memoryview)) or len(records) < HEADER_BYTES:
        return None
    _, _, attributes, producer_id, epoch = BATCH_FACTS.unpack_from(records)
    return ProducerIdentity(producer_id, epoch) if attributes & TRANSACTIONAL_BIT else None


class _Writer:
    """Appends the batches of one request."""

    def __init__(
        self, state: BrokerState, request: ProduceRequest, context: RequestContext
    ) -> None:
        self._state = state
        self._request = request
        self._version = context.version
        self._inspected = context.prepared or inspect(state, request, context)
        self._now_ms = state.clock.now_ms()
        self._answers = request.acks != ACKS_NONE
        self.waits: Waits = []
        self.failure: BrokerError | None = None

    def write_topics(self) -> list[TopicProduceResponse]:
        """Append to all partitions of the request."""
        pairs = zip(self._request.topic_data, self._inspected, strict=True)
        return [self._write_topic(data, inspected) for data, inspected in pairs]

    def write_in_parts(self) -> Parts[list[TopicProduceResponse]]:
        """Append to all partitions of the request, with other requests in between."""
        responses = []
        for data, inspected in zip(self._request.topic_data, self._inspected, strict=True):
            topic, _ = self._find_topic(data)
            answers = []
            for part, facts in zip(data.partition_data, inspected, strict=True):
                # Looked up each time: it may have been deleted meanwhile.
                answers.append(self._write_partition(*self._find_topic(data), part, facts))
                yield
            name = data.name if topic is None else topic.name
            responses.append(TopicProduceResponse(name, data.topic_id, answers))
        return responses

    def _write_topic(
        self, data: TopicProduceData, inspected: list[Inspected]
    ) -> TopicProduceResponse:
        topic, code = self._find_topic(data)
        name = data.name if topic is None else topic.name
        answers = [
            self._write_partition(topic, code, part, facts)
            for part, facts in zip(data.partition_data, inspected, strict=True)
        ]
        return TopicProduceResponse(name, data.topic_id, answers)

    def _find_topic(self, data: TopicProduceData) -> tuple[Topic | None, ErrorCode]:
        if self._version >= TOPIC_ID_VERSION_MIN:
            topic = self._state.topics.by_id(data.topic_id)
            missing = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = self._state.topics.get(data.name)
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None:
            return None, missing
        if topic.internal:  # only the broker writes it, whatever the client id is
            return topic, ErrorCode.INVALID_TOPIC_EXCEPTION
        return topic, ErrorCode.NONE

    def _write_partition(
        self, topic: Topic | None, code: ErrorCode, data: PartitionProduceData, facts: Inspected
    ) -> PartitionProduceResponse:
        try:
            if topic is None or code:
                raise BrokerError(code)
            return self._append(topic, data, facts)
        except Exception as error:
            return self._refused(topic, data, error)

    def _append(
        self, topic: Topic, data: PartitionProduceData, facts: Inspected
    ) -> PartitionProduceResponse:
        records = data.records
        if not isinstance(records, memoryview):
            records = memoryview(bytearray(_bytes_of(data)))
        partition = self._state.partitions.leader(TopicPartition(topic.name, data.index))
        if self._request.acks == ACKS_ALL and topic.config.min_insync_replicas > REPLICAS:
            raise BrokerError(ErrorCode.NOT_ENOUGH_REPLICAS)
        self._check_batch(partition, records)
        try:
            if isinstance(facts, CorruptBatch):
                # A wrong checksum explains the error, and then a retry can help.
                check_batches(records, batch_bytes_max=topic.config.max_message_bytes)
                raise facts
            appended = partition.append(records, now_ms=self._now_ms, facts=facts)
        except BrokerError as error:
            answer = self._refused(topic, data, error)
            if error.code not in START_UNKNOWN:
                answer.log_start_offset = partition.start_offset
            return answer
        answer = PartitionProduceResponse(
            data.index,
            ErrorCode.NONE,
            appended.base_offset,
            appended.append_time_ms,
            appended.start_offset,
        )
        stats = self._state.metrics.topic(topic.name)
        stats.produce_requests += 1
        if not appended.duplicate:
            stats.bytes_in += len(records)
            stats.messages_in += appended.last_offset - appended.base_offset + 1
        if self._answers and not partition.is_written(appended.last_offset):
            self.waits.append((partition, appended.last_offset, answer))
        return answer

    def _check_batch(self, partition: Partition, records: memoryview) -> None:
        """Checks that apply only to batches of produce requests."""
        if len(records) < HEADER_BYTES:
            raise BrokerError(ErrorCode.INVALID_RECORD, "records end before a batch's header does")
        length, magic, attributes, producer_id, epoch = BATCH_FACTS.unpack_from(records)
        if length < OLDEST_RECORD_BYTES or magic not in range(MAGIC + 1):
            raise BrokerError(ErrorCode.CORRUPT_MESSAGE, "records do not begin with a batch")
        if length != len(records) - BEFORE_LENGTH_ENDS:
            raise BrokerError(ErrorCode.INVALID_RECORD, "records must be exactly one batch")
        if magic != MAGIC:
            raise BrokerError(ErrorCode.INVALID_RECORD, f"batches have magic {MAGIC}, not {magic}")
        if attributes & CODEC_MASK == ZSTD and self._version < ZSTD_VERSION_MIN:
            raise BrokerError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if attributes & TRANSACTIONAL_BIT:
            self._check_transaction(partition, ProducerIdentity(producer_id, epoch))

    def _check_transaction(self, partition: Partition, producer: ProducerIdentity) -> None:
        transactional_id = self._request.transactional_id
        if not transactional_id:
            raise BrokerError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "a transactional batch needs a transactional id",
            )
        abortable = self._version >= ABORTABLE_VERSION_MIN
        self._state.transactions.verify(
            transactional_id,
            producer,
            [partition.topic_partition],
            refusal=ErrorCode.TRANSACTION_ABORTABLE if abortable else ErrorCode.INVALID_TXN_STATE,
            waits=self._version >= JOINING_VERSION_MIN,
        )

    def _refused(
        self, topic: Topic | None, data: PartitionProduceData, error: Exception
    ) -> PartitionProduceResponse:
        code = error_code_of(error)
        if not isinstance(error, BrokerError):
            name = "?" if topic is None else topic.name
            logger.error("cannot append to %s-%d", name, data.index, exc_info=error)
            error = BrokerError(code, str(error))
        self.failure = error
        if topic is not None:
            self._state.metrics.topic(topic.name).produce_failures += 1
        return _failed_partition(data.index, code, error.message)


def _bytes_of(data: PartitionProduceData) -> bytes:
    # Embedded clients pass bytes; offsets can only be written into writable memory.
    if isinstance(data.records, bytes):
        return data.records
    raise BrokerError(ErrorCode.INVALID_RECORD, "a produce request needs a batch per partition")


def _failed_partition(
    index: int, code: ErrorCode, message: str | None = None
) -> PartitionProduceResponse:
    return PartitionProduceResponse(index, code, NO_OFFSET, error_message=message)


def _when_durable(
    state: BrokerState, request: ProduceRequest, response: ProduceResponse, waits: Waits
) -> Pending[ProduceResponse]:
    """Respond when everything is on disk; partitions that time out get an error."""
    pending: Pending[ProduceResponse] = Pending()
    unfinished = {id(answer): answer for _, _, answer in waits}

    def finish(answer: PartitionProduceResponse) -> None:
        unfinished.pop(id(answer), None)
        if not unfinished:
            timer.cancel()
            pending.complete(response)

    def fail(answer: PartitionProduceResponse, error: StorageError) -> None:
        _fail(answer, ErrorCode.KAFKA_STORAGE_ERROR)
        finish(answer)

    def expire() -> None:
        for answer in unfinished.values():
            _fail(answer, ErrorCode.REQUEST_TIMED_OUT)
        pending.complete(response)

    timer = state.timers.schedule(max(request.timeout_ms, 0), expire)
    for partition, last_offset, answer in waits:
        partition.when_written(last_offset + 1, partial(finish, answer), partial(fail, answer))
    return pending


def _fail(answer: PartitionProduceResponse, code: ErrorCode) -> None:
    answer.error_code = code
    answer.base_offset = NO_OFFSET


def refuse(request: ProduceRequest, code: ErrorCode) -> ProduceResponse:
    """The same error for every partition."""
    return ProduceResponse(
        [
            TopicProduceResponse(
                topic.name,
                topic.topic_id,
                [_failed_partition(data.index, code) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


HANDLERS: dict[ApiKey, Handler] = {ApiKey.PRODUCE: produce}
PREPARATIONS: dict[ApiKey, Handler] = {ApiKey.PRODUCE: inspect}
REFUSALS = {ApiKey.PRODUCE: refuse}
