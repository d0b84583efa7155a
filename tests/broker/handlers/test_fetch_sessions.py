"""Fetch sessions: full and incremental fetches, eviction."""

from random import Random

import pytest

from broker.clock import ManualClock
from broker.errors import BrokerError, ErrorCode
from broker.handlers import fetch as fetch_module
from broker.handlers.fetch_sessions import EVICTION_MS, FetchSessions
from broker.pending import Pending
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from tests.broker.handlers.embedded import EmbeddedClient, values_of


@pytest.fixture(autouse=True, params=[1_000, 0], ids=["at once", "in parts"])
def _size_of_a_large_fetch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large fetches are answered in parts: the same answers."""
    monkeypatch.setattr(fetch_module, "AT_ONCE_MAX", request.param)


def full(session_id: int = 0, epoch: int = 0, partitions: int = 2) -> FetchRequest:
    asked = [
        FetchPartition(number, fetch_offset=0, partition_max_bytes=1000)
        for number in range(partitions)
    ]
    return FetchRequest(
        session_id=session_id, session_epoch=epoch, topics=[FetchTopic("orders", partitions=asked)]
    )


def incremental(session_id: int, epoch: int, **offsets: int) -> FetchRequest:
    """Partitions are given as p0=offset."""
    asked = [
        FetchPartition(int(name[1:]), fetch_offset=offset, partition_max_bytes=1000)
        for name, offset in offsets.items()
    ]
    topics = [FetchTopic("orders", partitions=asked)] if asked else []
    return FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics)


def told(response: FetchResponse) -> dict[int, list[str]]:
    """Values by partition, for the partitions that the response names."""
    return {
        data.partition_index: values_of(data.records)
        for topic in response.responses
        for data in topic.partitions
    }


def test_a_session_tells_only_what_is_new(client: EmbeddedClient) -> None:
    client.create("orders", 2)
    client.produce("orders", "a")
    first = client.ask(full(), FetchResponse, 12)
    assert first.session_id > 0
    assert told(first) == {0: ["a"], 1: []}
    nothing = client.ask(incremental(first.session_id, 1, p0=1), FetchResponse, 12)
    assert (nothing.session_id, told(nothing)) == (first.session_id, {})
    client.produce("orders", "b", partition=1)
    news = client.ask(incremental(first.session_id, 2), FetchResponse, 12)
    assert told(news) == {1: ["b"]}


def test_a_moved_high_watermark_or_log_start_is_news(client: EmbeddedClient) -> None:
    client.create("orders", 1)
    client.produce("orders", "a")
    session = client.ask(full(partitions=1), FetchResponse, 12).session_id
    assert told(client.ask(incremental(session, 1, p0=1), FetchResponse, 12)) == {}
    client.broker.state.storage.logs()[0].delete_records_before(1)
    assert told(client.ask(incremental(session, 2), FetchResponse, 12)) == {0: []}
    assert told(client.ask(incremental(session, 3), FetchResponse, 12)) == {}


def test_partitions_can_be_added_and_forgotten(client: EmbeddedClient) -> None:
    client.create("orders", 3)
    for partition in range(3):
        client.produce("orders", f"v{partition}", partition=partition)
    session = client.ask(full(), FetchResponse, 12).session_id
    request = incremental(session, 1, p2=0)
    request.forgotten_topics_data = [ForgottenTopic("orders", partitions=[0])]
    assert told(client.ask(request, FetchResponse, 12)) == {1: ["v1"], 2: ["v2"]}


def test_an_error_is_told_each_time(client: EmbeddedClient) -> None:
    client.create("orders", 1)
    session = client.ask(full(), FetchResponse, 12).session_id
    for epoch in (1, 2):
        response = client.ask(incremental(session, epoch), FetchResponse, 12)
        (topic,) = response.responses
        assert [data.error_code for data in topic.partitions] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ]


@pytest.mark.parametrize(
    ("session_id", "epoch", "version", "code"),
    [
        (1, 5, 12, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (1, 1, 13, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
        (0, 1, 12, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ],
)
def test_a_session_out_of_step_is_refused(
    client: EmbeddedClient, session_id: int, epoch: int, version: int, code: ErrorCode
) -> None:
    client.create("orders", 2)
    opened = client.ask(full(), FetchResponse, 12).session_id
    wanted = opened if session_id else opened + 1
    response = client.ask(incremental(wanted, epoch), FetchResponse, version)
    assert (response.error_code, response.session_id) == (code, 0)


def test_the_final_epoch_closes_the_session(client: EmbeddedClient) -> None:
    client.create("orders", 2)
    session = client.ask(full(), FetchResponse, 12).session_id
    last = client.ask(full(session, -1), FetchResponse, 12)
    assert last.session_id == 0
    again = client.ask(incremental(session, 1), FetchResponse, 12)
    assert again.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_fetch_without_partitions_opens_no_session(client: EmbeddedClient) -> None:
    response = client.ask(FetchRequest(session_epoch=0), FetchResponse, 12)
    assert response.session_id == 0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def open_session(sessions: FetchSessions, partitions: int = 2) -> int:
    return sessions.plan(full(partitions=partitions), by_topic_id=False).session_id


def test_a_session_in_use_is_not_evicted(clock: ManualClock) -> None:
    sessions = FetchSessions(slots=1, clock=clock, random=Random(1))
    first = open_session(sessions)
    clock.advance(EVICTION_MS)
    sessions.plan(incremental(first, 1), by_topic_id=False)
    assert open_session(sessions) == 0
    assert len(sessions) == 1


def test_a_session_unused_for_long_makes_room(clock: ManualClock) -> None:
    sessions = FetchSessions(slots=1, clock=clock, random=Random(1))
    first = open_session(sessions)
    clock.advance(EVICTION_MS + 1)
    assert open_session(sessions) not in (0, first)
    with pytest.raises(BrokerError):
        sessions.plan(incremental(first, 1), by_topic_id=False)


def test_a_bigger_session_replaces_a_small_one_that_had_its_time(clock: ManualClock) -> None:
    sessions = FetchSessions(slots=1, clock=clock, random=Random(1))
    first = open_session(sessions, partitions=1)
    assert open_session(sessions, partitions=5) == 0
    clock.advance(EVICTION_MS + 1)
    sessions.plan(incremental(first, 1), by_topic_id=False)
    assert open_session(sessions, partitions=5) != 0


def test_no_slots_means_no_sessions(clock: ManualClock) -> None:
    sessions = FetchSessions(slots=0, clock=clock, random=Random(1))
    assert open_session(sessions) == 0


def test_partitions_that_gave_data_are_served_last(clock: ManualClock) -> None:
    sessions = FetchSessions(slots=1, clock=clock, random=Random(1))
    session_id = open_session(sessions, partitions=3)
    plan = sessions.plan(incremental(session_id, 1), by_topic_id=False)
    assert plan.session is not None
    plan.session.serve_last(plan.targets[:1])
    again = sessions.plan(incremental(session_id, 2), by_topic_id=False)
    assert [target.topic_partition.partition for target in again.targets] == [1, 2, 0]


def test_a_large_fetch_that_finds_nothing_looks_again_before_it_answers(
    client: EmbeddedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_module, "AT_ONCE_MAX", 0)
    client.create("orders", 2)
    request = full()
    request.max_wait_ms, request.min_bytes = 500, 1
    answer = client.start(request, 12)
    assert isinstance(answer, Pending)
    client.produce("orders", "a")
    client.advance(fetch_module.LARGE_WAIT_MS)
    assert answer.done
    assert isinstance(answer.value, FetchResponse)
    assert told(answer.value)[0] == ["a"]


def test_a_fetch_of_too_many_partitions_is_refused(
    client: EmbeddedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_module, "AT_ONCE_MAX", 1)
    monkeypatch.setattr(fetch_module, "TARGETS_MAX", 2)
    client.create("orders", 3)
    answer = client.ask(full(partitions=3), FetchResponse, 12)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
