"""Shared transports: one thread and one read for many clients, each closed by itself."""

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from broker.client import admin, consumer, producer
from broker.client.administration.values import NewTopic
from broker.client.opening import open_transport
from broker.client.record_consumer import Consumer
from broker.client.sharing import SharedTransports
from broker.client.transport import Transport
from broker.clock import ManualClock
from broker.errors import ClientError, ConfigError, ConnectionFailed, RequestTimeout
from broker.model import TopicPartition
from broker.protocol.frame import Request
from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from broker.protocol.messages.groups import HeartbeatRequest
from broker.protocol.messages.metadata import (
    ApiVersionsRequest,
    MetadataRequest,
    MetadataResponse,
)
from tests.broker.client.fake_broker import FakeBroker, all_versions
from tests.broker.client.test_embedded import LateBroker

TIMEOUT_MS = 60_000
READERS = 50
RECORDS = 300


@pytest.fixture(params=["embedded", "tcp"])
def shared(request: pytest.FixtureRequest) -> Iterator[SharedTransports]:
    with SharedTransports(request.getfixturevalue(f"{request.param}_target")) as transports:
        yield transports


@pytest.fixture
def topic(shared: SharedTransports) -> str:
    name = f"shared-{uuid.uuid4().hex[:10]}"
    with admin(shared) as administration:
        administration.create_topics([NewTopic(name, 2)])[name]
    return name


def write(shared: SharedTransports, topic: str, first: int, count: int) -> None:
    with producer(shared) as out:
        for number in range(first, first + count):
            out.send(topic, b"%d" % number, partition=number % 2)


def read_until(readers: list[Consumer], counts: list[int], wanted: int) -> None:
    while min(counts) < wanted:
        for number, reader in enumerate(readers):
            counts[number] += len(reader.poll(timeout_ms=20))


def ours() -> list[str]:
    """Names of the threads that do I/O for clients."""
    names = ("millstream-embedded", "millstream-network")
    return [thread.name for thread in threading.enumerate() if thread.name in names]


@pytest.mark.slow
def test_many_consumers_read_a_topic_once_by_one_thread(
    shared: SharedTransports, topic: str
) -> None:
    write(shared, topic, 0, RECORDS)
    before = len(ours())
    readers: list[Consumer] = []
    for _ in range(READERS):
        readers.append(consumer(shared, auto_offset_reset="earliest"))
        readers[-1].assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
    counts = [0] * READERS
    read_until(readers, counts, RECORDS)
    write(shared, topic, RECORDS, RECORDS)
    read_until(readers, counts, 2 * RECORDS)
    assert counts == [2 * RECORDS] * READERS
    assert len(ours()) <= max(before, 1)
    assert shared.counts.bytes_given >= READERS * shared.counts.bytes_read / 1.5
    assert shared.counts.private_fetches == 0
    for reader in readers:
        reader.close()


@pytest.mark.slow
def test_readers_in_threads_of_their_own_each_see_everything_in_order(
    shared: SharedTransports, topic: str
) -> None:
    partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]

    def read_all() -> dict[int, list[int]]:
        seen: dict[int, list[int]] = {0: [], 1: []}
        with consumer(shared, auto_offset_reset="earliest", max_poll_records=7) as reader:
            reader.assign(partitions)
            while sum(map(len, seen.values())) < 4 * RECORDS:
                for record in reader.poll(timeout_ms=100):
                    seen[record.partition].append(int(record.value or b"-1"))
        return seen

    with ThreadPoolExecutor(8) as threads:
        readings = [threads.submit(read_all) for _ in range(16)]
        for turn in range(4):
            write(shared, topic, turn * RECORDS, RECORDS)
        for reading in readings:
            evens, odds = reading.result(60).values()
            assert evens == list(range(0, 4 * RECORDS, 2))
            assert odds == list(range(1, 4 * RECORDS, 2))


@pytest.mark.slow
def test_groups_rebalance_over_shared_transports(shared: SharedTransports, topic: str) -> None:
    """Members wait for each other in joins: they must not share a connection."""
    write(shared, topic, 0, 10)
    settings = {"group_id": topic, "auto_offset_reset": "earliest"}
    with consumer(shared, **settings) as first, consumer(shared, **settings) as second:
        for reader in (first, second):
            reader.subscribe([topic])
        found: list[bytes | None] = []
        while len(found) < 10 or not (first.assignment() and second.assignment()):
            for reader in (first, second):
                found += [record.value for record in reader.poll(timeout_ms=20)]
        assert sorted(int(value or b"-1") for value in set(found)) == list(range(10))


def test_transactions_are_seen_as_a_whole_or_not_at_all(
    shared: SharedTransports, topic: str
) -> None:
    readers = [consumer(shared, isolation_level="read_committed") for _ in range(3)]
    for reader in readers:
        reader.assign([TopicPartition(topic, 0)])
        reader.seek_to_beginning([TopicPartition(topic, 0)])
    with producer(shared, transactional_id=topic) as out:
        out.init_transactions()
        for turn in range(4):
            out.begin_transaction()
            out.send(topic, b"%d" % turn, partition=0)
            if turn % 2:
                out.commit_transaction()
            else:
                out.flush()
                out.abort_transaction()
    for reader in readers:
        seen: list[bytes | None] = []
        while len(seen) < 2:
            seen += [record.value for record in reader.poll(timeout_ms=20)]
        assert seen == [b"1", b"3"]
        reader.close()


def test_a_topic_made_again_is_read_anew(shared: SharedTransports, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    write(shared, topic, 0, 2)
    with admin(shared) as administration, consumer(shared) as old:
        old.assign([partition])
        old.seek_to_beginning([partition])
        while not old.poll(timeout_ms=20):
            pass
        administration.delete_topics([topic])[topic]
        administration.create_topics([NewTopic(topic, 2)])[topic]
        write(shared, topic, 10, 2)
        with consumer(shared) as new:
            new.assign([partition])
            new.seek_to_beginning([partition])
            while not (records := new.poll(timeout_ms=20)):
                pass
            assert records[0].value == b"10"


# --- opening and closing -------------------------------------------------------------------------


@pytest.mark.parametrize("target", [LateBroker(), "127.0.0.1:1"])
def test_options_are_taken_and_unknown_ones_refused(target: LateBroker | str) -> None:
    with SharedTransports(target) as shared:
        with pytest.raises(ConfigError, match='unknown setting "client_idd"'):
            shared.open({"client_idd": "x"})
        options: dict[str, object] = {"client_id": "x"}
        open_transport(shared, options)
        assert "client_id" not in options
    with pytest.raises(ClientError, match="closed"):
        shared.open({})


def metadata(transport: Transport, timeout_ms: int = TIMEOUT_MS) -> Future[object]:
    return transport.send(None, MetadataRequest([]), timeout_ms=timeout_ms)


def test_closing_one_embedded_transport_fails_only_what_it_waits_for() -> None:
    late = LateBroker()
    with SharedTransports(late) as shared:
        first, second = shared.open({"client_id": "first"}), shared.open({"client_id": "second"})
        mine, other = metadata(first), metadata(second)
        assert [each[3].client_id for each in late.requests] == ["first", "second"]
        first.close()
        with pytest.raises(ConnectionFailed, match="closed"):
            mine.result(0)
        with pytest.raises(ClientError, match="closed"):
            metadata(first)
        assert late.abandoned == late.pending[:1]
        late.pending[1].complete(MetadataResponse())
        assert isinstance(other.result(60), MetadataResponse)
        last = metadata(second)
    with pytest.raises(ConnectionFailed, match="closed"):
        last.result(60)


def test_each_embedded_answer_has_a_deadline_of_its_own() -> None:
    clock = ManualClock()
    with SharedTransports(LateBroker(), clock=clock) as shared:
        patient = metadata(shared.open({}), 10_000)
        hasty = metadata(shared.open({}), 1_000)
        clock.advance(1_001)
        with pytest.raises(RequestTimeout):
            hasty.result(60)
        assert not patient.done()
        clock.advance(9_000)
        with pytest.raises(RequestTimeout):
            patient.result(60)


def holding(released: threading.Event) -> Callable[[Request], object]:
    """Answers metadata only when released; heartbeats are hung up on."""

    def script(request: Request) -> object:
        if isinstance(request.body, ApiVersionsRequest):
            return all_versions()
        if isinstance(request.body, HeartbeatRequest):
            return None
        released.wait(60)
        return MetadataResponse(cluster_id=request.client_id)

    return script


def test_closing_one_tcp_transport_fails_only_what_it_waits_for() -> None:
    released = threading.Event()
    with FakeBroker(holding(released)) as fake, SharedTransports(fake.address) as shared:
        before = len(ours())
        first, second = shared.open({"client_id": "first"}), shared.open({"client_id": "second"})
        mine, other = metadata(first), metadata(second)
        first.close()
        with pytest.raises(ClientError, match="closed"):
            mine.result(60)
        with pytest.raises(ClientError, match="closed"):
            metadata(first)
        released.set()
        response = other.result(60)
        assert isinstance(response, MetadataResponse)
        assert response.cluster_id == "second"
        assert len(ours()) == before


def test_a_connection_that_breaks_is_one_transports_own() -> None:
    released = threading.Event()
    with FakeBroker(holding(released)) as fake, SharedTransports(fake.address) as shared:
        first, second = shared.open({}), shared.open({})
        waiting = metadata(second)
        with pytest.raises(ConnectionFailed):
            first.send(None, HeartbeatRequest(), timeout_ms=TIMEOUT_MS).result(60)
        released.set()
        assert isinstance(waiting.result(60), MetadataResponse)


def test_each_tcp_request_has_a_deadline_of_its_own() -> None:
    released = threading.Event()
    with FakeBroker(holding(released)) as fake, SharedTransports(fake.address) as shared:
        patient = metadata(shared.open({}))
        hasty = metadata(shared.open({}), 50)
        with pytest.raises(RequestTimeout):
            hasty.result(60)
        released.set()
        assert isinstance(patient.result(60), MetadataResponse)


def test_threads_do_not_grow_with_clients() -> None:
    for target in (LateBroker(), "127.0.0.1:1"):
        before = len(ours())
        with SharedTransports(target) as shared:
            waiting = [metadata(shared.open({})) for _ in range(100)]
            assert len(ours()) == before + 1
        for future in waiting:
            assert future.exception(60) is not None
        assert len(ours()) == before


def test_a_fetch_that_cannot_be_shared_goes_its_own_way() -> None:
    late = LateBroker()
    with SharedTransports(late) as shared:
        topics = [FetchTopic("t", b"i" * 16, [FetchPartition(0)])]
        plain = FetchRequest(max_wait_ms=10, min_bytes=1, topics=topics)
        first, second = shared.open({"client_id": "first"}), shared.open({"client_id": "second"})
        for transport in (first, second):
            transport.send(1, plain, timeout_ms=TIMEOUT_MS)
        assert shared.counts.private_fetches == 0
        for transport in (first, second):
            transport.send(1, plain, timeout_ms=TIMEOUT_MS, version_max=12)
        assert shared.counts.private_fetches == 2
        names = [each[3].client_id for each in late.requests]
        assert names == ["millstream-shared-reads", "first", "second"]
        second.close()


def test_those_who_sign_in_differently_do_not_share_reads() -> None:
    with SharedTransports("127.0.0.1:1") as shared:
        sasl: dict[str, object] = {"security_protocol": "SASL_PLAINTEXT", "sasl_username": "a"}
        transports = [
            shared.open({"client_id": "one"}),
            shared.open({"client_id": "two"}),
            shared.open({**sasl}),
            shared.open({**sasl, "sasl_username": "b"}),
        ]
        pools = [transport._reader.pool for transport in transports]  # type: ignore[attr-defined]
        assert pools[0] is pools[1]
        assert len(set(pools)) == 3
