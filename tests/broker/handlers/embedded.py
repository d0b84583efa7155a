"""A client of an embedded broker: sends requests to its handlers and waits by moving the clock."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from broker.batch.codec import Record, decode_records, encode_batch
from broker.batch.layout import LENGTH_END, read_header
from broker.broker import Broker
from broker.clock import ManualClock
from broker.model import ConnectionInfo, FileSlice, ProducerIdentity, Records
from broker.pending import Pending
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from broker.protocol.wire import SPECS

T = TypeVar("T")

FIRST_TIMESTAMP_MS = 1_700_000_000_000


@dataclass
class EmbeddedClient:
    """Calls a broker on a manual clock."""

    broker: Broker
    clock: ManualClock
    connection: ConnectionInfo = field(default_factory=ConnectionInfo)

    def ask(self, request: object, response: type[T], version: int | None = None) -> T:
        """The response to a request, which must be there at once."""
        answer = self.start(request, version)
        assert isinstance(answer, response), answer
        return answer

    def start(self, request: object, version: int | None = None) -> object:
        """A response, a Pending one or None; the newest version unless one is given."""
        spec = SPECS[type(request)]
        assert spec.api_key is not None
        version = spec.versions.last if version is None else version
        return self.broker.handle(spec.api_key, version, request, self.connection)

    def advance(self, milliseconds: int) -> None:
        """Move the clock and run what is due."""
        self.clock.advance(milliseconds)
        self.broker.run_due()

    def create(self, topic: str, partitions: int = 1, **overrides: str) -> bytes:
        """Make a topic; its id."""
        settings = {name.replace("_", "."): value for name, value in overrides.items()}
        made = self.broker.state.topics.create(
            topic, partition_count=partitions, overrides=settings
        )
        return made.id

    def produce(self, topic: str, *values: str, partition: int = 0) -> PartitionProduceResponse:
        """Append one batch of values."""
        return self.produce_batch(topic, batch_of(*values), partition=partition)

    def produce_batch(
        self,
        topic: str,
        batch: bytes | None,
        *,
        partition: int = 0,
        version: int = 9,
        acks: int = -1,
    ) -> PartitionProduceResponse:
        """Append one batch; the answer of its partition."""
        request = produce_request(topic, batch, partition=partition, acks=acks)
        response = self.ask(request, ProduceResponse, version)
        return response.responses[0].partition_responses[0]

    def fetch(
        self, topic: str, offset: int = 0, *, partition: int = 0, isolation_level: int = 0
    ) -> PartitionData:
        """Fetch what there is of one partition, without a session."""
        asked = FetchPartition(partition, fetch_offset=offset, partition_max_bytes=1_000_000)
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            isolation_level=isolation_level,
            topics=[FetchTopic(topic, partitions=[asked])],
        )
        response = self.ask(request, FetchResponse, 12)
        return response.responses[0].partitions[0]


def produce_request(
    topic: str, batch: bytes | None, *, partition: int = 0, acks: int = -1
) -> ProduceRequest:
    """A produce request with one batch."""
    records = None if batch is None else memoryview(bytearray(batch))
    data = TopicProduceData(topic, partition_data=[PartitionProduceData(partition, records)])
    return ProduceRequest(None, acks, 30_000, [data])


def batch_of(
    *values: str,
    producer: ProducerIdentity | None = None,
    base_sequence: int = -1,
    timestamp_ms: int = FIRST_TIMESTAMP_MS,
    compression: str = "none",
) -> bytes:
    """One batch of values, a millisecond apart."""
    return encode_batch(
        [(None, value.encode(), (), timestamp_ms + number) for number, value in enumerate(values)],
        compression=compression,
        producer=producer or ProducerIdentity(),
        base_sequence=base_sequence,
    )


def values_of(records: Records | None) -> list[str]:
    """The values in fetched batches."""
    return [(record.value or b"").decode() for record in records_of(records)]


def records_of(records: Records | None) -> Sequence[Record]:
    """The records in fetched batches."""
    assert records is not None
    data = records.read() if isinstance(records, FileSlice) else bytes(records)
    view = memoryview(data)
    found: list[Record] = []
    position = 0
    while position < len(view):
        found += decode_records(view, position)
        position += LENGTH_END + read_header(view, position).batch_length
    return found


def completed(pending: object, response: type[T]) -> T | None:
    """The answer of a pending response, if it is there."""
    assert isinstance(pending, Pending)
    if not pending.done:
        return None
    answers: list[object] = []
    pending.then(answers.append)
    assert isinstance(answers[0], response)
    return answers[0]
