"""Shared reads, rule by rule: what is kept, who waits for whom, and what is forgotten."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.sharing.fetches import Reader
from broker.client.sharing.reads import can_share
from broker.client.sharing.runs import whole_run
from broker.errors import ClientError, ConnectionFailed, ErrorCode
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tests.broker.client.model_log import (
    COMMITTED,
    TOPIC_ID,
    WAIT_MS,
    ModelCluster,
    ModelLog,
    bases_of,
    fetch_request,
    partitions_of,
    run_of,
)


def cluster_with(*counts: int, cache_bytes: int = 1_000_000) -> ModelCluster:
    """Partitions with so many batches of one record each."""
    cluster = ModelCluster(len(counts), cache_bytes=cache_bytes)
    for log, count in zip(cluster.logs, counts, strict=True):
        for _ in range(count):
            log.append()
    return cluster


def bases(answer: Future[object], offset: int = 0, partition: int = 0) -> list[int]:
    """Which batches an answer brings of a partition."""
    data = partitions_of(answer)[partition]
    assert data.records is not None
    return bases_of(run_of(data, offset)) if len(data.records) else []


def view_of(answer: Future[object]) -> memoryview:
    records = partitions_of(answer)[0].records
    assert isinstance(records, memoryview)
    return records


def error_of(answer: Future[object]) -> ErrorCode:
    return ErrorCode(partitions_of(answer)[0].error_code)


# --- once for all --------------------------------------------------------------------------------


def test_what_one_reader_read_is_handed_to_the_others_as_the_same_object() -> None:
    cluster = cluster_with(5)
    views = [view_of(cluster.ask(cluster.reader(), 0)) for _ in range(10)]
    assert all(view is views[0] for view in views)
    counts = cluster.reads.counts
    assert len(cluster.sent) == counts.fetches == counts.partitions_read == 1
    assert counts.bytes_read == len(views[0])
    assert counts.bytes_given == 10 * len(views[0])


def test_an_offset_in_the_middle_is_answered_from_the_same_buffer() -> None:
    cluster = cluster_with(5)
    whole = view_of(cluster.ask(cluster.reader(), 0))
    later = cluster.ask(cluster.reader(), 3)
    assert bases(later, 3) == [3, 4]
    assert view_of(later).obj is whole.obj
    assert len(cluster.sent) == 1


def test_readers_at_the_end_wait_for_one_fetch() -> None:
    cluster = cluster_with(1)
    readers = [cluster.reader() for _ in range(10)]
    waiting = [cluster.ask(reader, 1) for reader in readers]
    assert len(cluster.waiting) == 1
    assert not any(answer.done() for answer in waiting)
    cluster.logs[0].append()
    cluster.waiting[0].complete()
    assert all(bases(answer, 1) == [1] for answer in waiting)
    assert len({id(view_of(answer)) for answer in waiting}) == 1


def test_nothing_is_fetched_that_nobody_asks_for() -> None:
    cluster = cluster_with(1, 1)
    reader = cluster.reader()
    answer = cluster.ask(reader, 1)  # only the first partition
    cluster.logs[0].append()
    cluster.waiting[0].complete()
    assert answer.done()
    assert not cluster.waiting
    assert [p.partition for p in cluster.sent[0].topics[0].partitions] == [0]


def test_readers_of_committed_data_do_not_get_what_others_read() -> None:
    cluster = cluster_with(0)
    cluster.logs[0].append("data", producer=1)
    assert bases(cluster.ask(cluster.reader(), 0)) == [0]
    assert not cluster.ask(cluster.reader(), 0, isolation=COMMITTED).done()


def test_a_fetch_that_overlaps_with_what_is_kept_is_cut_there() -> None:
    cluster = cluster_with(6)
    kept = view_of(cluster.ask(cluster.reader(), 3))
    earlier = cluster.ask(cluster.reader(), 0)
    assert bases(earlier) == [0, 1, 2]
    following = cluster.ask(cluster.reader(), 3)
    assert view_of(following) is kept
    assert len(cluster.sent) == 2


def test_an_offset_that_compaction_left_out_is_read_once_too() -> None:
    cluster = cluster_with(4)
    for batch in cluster.logs[0].batches[:2]:
        batch.compacted = True
    kept = view_of(cluster.ask(cluster.reader(), 0))
    assert view_of(cluster.ask(cluster.reader(), 0)) is kept
    assert len(cluster.sent) == 1


def test_what_compaction_left_out_belongs_to_what_follows() -> None:
    cluster = cluster_with(4)
    for batch in cluster.logs[0].batches[:2]:
        batch.compacted = True
    kept = view_of(cluster.ask(cluster.reader(), 2))
    assert view_of(cluster.ask(cluster.reader(), 0)) is kept
    assert view_of(cluster.ask(cluster.reader(), 1)) is kept
    assert len(cluster.sent) == 2


# --- limits --------------------------------------------------------------------------------------


def test_bytes_are_bounded_at_batches_and_one_batch_comes_always() -> None:
    cluster = cluster_with(4, 4)
    size = len(cluster.logs[0].batches[0].data)
    cluster.ask(cluster.reader(), 0, 0)
    few = cluster.ask(cluster.reader(), 0, 0, partition_max_bytes=2 * size + 1)
    assert (bases(few), bases(few, 0, 1)) == ([0, 1], [0, 1])
    one = cluster.ask(cluster.reader(), 1, 0, partition_max_bytes=1)
    assert (bases(one, 1), bases(one, 0, 1)) == ([1], [])
    total = cluster.ask(cluster.reader(), 0, 0, max_bytes=5 * size)
    assert (bases(total), bases(total, 0, 1)) == ([0, 1, 2, 3], [0])
    assert len(cluster.sent) == 1


def test_the_oldest_goes_first_when_too_much_is_kept() -> None:
    cluster = cluster_with(10)
    size = len(cluster.logs[0].batches[0].data)
    cluster = cluster_with(10, cache_bytes=3 * size + 10)
    reader = cluster.reader()
    for offset in range(10):
        assert bases(cluster.ask(reader, offset, partition_max_bytes=1), offset) == [offset]
    assert len(cluster.sent) == 10
    for offset in (7, 8, 9):
        cluster.ask(cluster.reader(), offset, partition_max_bytes=1)
    assert len(cluster.sent) == 10
    assert bases(cluster.ask(cluster.reader(), 6, partition_max_bytes=1), 6) == [6]
    assert len(cluster.sent) == 11


def test_what_came_after_its_reader_had_its_answer_is_kept_until_it_asks_again() -> None:
    cluster = cluster_with(1, 1, cache_bytes=0)
    first, second = cluster.reader(), cluster.reader()
    head = cluster.ask(first, 1)
    both = cluster.ask(second, 1, 1)  # waits for the first's fetch, and for one of its own
    assert len(cluster.waiting) == 2
    cluster.logs[0].append()
    cluster.logs[1].append()
    cluster.waiting[0].complete()
    assert head.done()
    assert bases(both, 1) == [1]
    cluster.waiting[0].complete()  # nobody waits for it now
    again = cluster.ask(second, 2, 1)
    assert bases(again, 1, 1) == [1]
    asked = [partition.partition for partition in cluster.sent[2].topics[0].partitions]
    assert asked == [0], "the second is there"


def test_what_nobody_comes_back_for_is_let_go_with_its_reader() -> None:
    cluster = cluster_with(1, 1, cache_bytes=0)
    first, second = cluster.reader(), cluster.reader()
    cluster.ask(first, 1)
    cluster.ask(second, 1, 1)
    cluster.logs[0].append()
    cluster.logs[1].append()
    cluster.waiting[0].complete()
    cluster.waiting[0].complete()
    assert second.unclaimed
    cluster.reads.leave(second)
    assert not second.unclaimed
    third = cluster.reader()
    assert bases(cluster.ask(third, 2, 1), 1, 1) == [1]
    assert len(cluster.sent) == 3


# --- several partitions --------------------------------------------------------------------------


def test_a_request_is_answered_by_the_first_partition_that_has_something() -> None:
    cluster = cluster_with(1, 1)
    answer = cluster.ask(cluster.reader(), 1, 1)
    cluster.logs[1].append()
    cluster.waiting[0].complete()
    assert (bases(answer, 1), bases(answer, 1, 1)) == ([], [1])


def test_a_partition_with_much_to_read_does_not_keep_the_others_from_being_read() -> None:
    cluster = cluster_with(5, 1)
    ahead, behind = cluster.reader(), cluster.reader()
    for offset in range(5):
        cluster.ask(ahead, offset, partition_max_bytes=1)
    for offset in range(4):
        answer = cluster.ask(behind, offset, 1, partition_max_bytes=1)
        assert bases(answer, offset) == [offset]
    assert len(cluster.waiting) == 1, "the other partition is being read meanwhile"
    cluster.logs[1].append()
    cluster.waiting[0].complete()
    answer = cluster.ask(behind, 4, 1)
    assert (bases(answer, 4), bases(answer, 1, 1)) == ([4], [1])


def test_those_who_wait_for_another_partition_of_a_fetch_go_on_waiting() -> None:
    cluster = cluster_with(1, 1)
    leader, follower = cluster.reader(), cluster.reader()
    cluster.ask(leader, 1, 1)
    waiting = cluster.ask(follower, 1)
    assert len(cluster.sent) == 1
    cluster.logs[1].append()
    cluster.clock.advance(WAIT_MS - 100)
    cluster.waiting[0].complete()
    assert not waiting.done()
    assert [(r.max_wait_ms, len(r.topics[0].partitions)) for r in cluster.sent[1:]] == [(100, 1)]
    cluster.logs[0].append()
    cluster.waiting[0].complete()
    assert bases(waiting, 1) == [1]


def test_an_empty_answer_goes_to_all_who_wait() -> None:
    cluster = cluster_with(1)
    answers = [cluster.ask(cluster.reader(), 1) for _ in range(3)]
    cluster.clock.advance(WAIT_MS)
    cluster.waiting[0].complete()
    for answer in answers:
        (data,) = partitions_of(answer)
        assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (1, 1, 0)
        assert not data.records
    assert not cluster.waiting


def test_who_waits_less_long_does_not_wait_for_those_who_wait_longer() -> None:
    cluster = cluster_with(1)
    patient = cluster.ask(cluster.reader(), 1, wait_ms=5_000)
    hasty = cluster.ask(cluster.reader(), 1, wait_ms=10)
    assert [request.max_wait_ms for request in cluster.sent] == [5_000, 10]
    cluster.waiting[1].complete()
    assert hasty.done()
    assert not patient.done()


def test_answers_tell_the_newest_ends_of_the_log() -> None:
    cluster = cluster_with(2)
    reader = cluster.reader()
    cluster.ask(reader, 0)
    answer = cluster.ask(reader, 2)
    cluster.logs[0].append(count=3)
    cluster.waiting[0].complete()
    assert answer.done()
    (data,) = partitions_of(cluster.ask(cluster.reader(), 0))
    assert data.high_watermark == 5


# --- what must be forgotten ----------------------------------------------------------------------


def test_an_error_goes_to_all_who_wait_and_nothing_stays_kept() -> None:
    cluster = cluster_with(3)
    cluster.ask(cluster.reader(), 0)
    answers = [cluster.ask(cluster.reader(), 3) for _ in range(3)]
    cluster.logs[0].start = cluster.logs[0].end = 10
    cluster.logs[0].batches.clear()
    cluster.waiting[0].complete()
    assert {error_of(answer) for answer in answers} == {ErrorCode.OFFSET_OUT_OF_RANGE}
    assert error_of(cluster.ask(cluster.reader(), 0)) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_answer_that_fails_as_a_whole_goes_to_all_who_wait() -> None:
    cluster = cluster_with(1)
    answers = [cluster.ask(cluster.reader(), 1) for _ in range(3)]
    cluster.waiting[0].complete(FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    for answer in answers:
        response = answer.result(0)
        assert isinstance(response, FetchResponse)
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_lost_connection_fails_all_who_wait_and_nothing_stays_kept() -> None:
    cluster = cluster_with(3)
    cluster.ask(cluster.reader(), 0)
    answers = [cluster.ask(cluster.reader(), 3) for _ in range(3)]
    cluster.waiting[0].complete(ConnectionFailed("lost"))
    for answer in answers:
        with pytest.raises(ConnectionFailed, match="lost"):
            answer.result(0)
    cluster.ask(cluster.reader(), 0)
    assert len(cluster.sent) == 3


def truncated(cluster: ModelCluster) -> None:
    cluster.logs[0].truncate(2)


def lead_anew(cluster: ModelCluster) -> None:
    truncated(cluster)
    cluster.logs[0].epoch += 1
    cluster.logs[0].append()


def restart(cluster: ModelCluster) -> None:
    truncated(cluster)
    cluster.break_connections()
    cluster.logs[0].append()


@pytest.mark.parametrize("change", [lead_anew, restart])
def test_what_was_truncated_is_not_handed_out(change: Callable[[ModelCluster], None]) -> None:
    cluster = cluster_with(3)
    stale = bytes(view_of(cluster.ask(cluster.reader(), 0)))
    change(cluster)
    fresh = b"".join(batch.data for batch in cluster.logs[0].batches)
    assert fresh != stale
    assert bytes(view_of(cluster.ask(cluster.reader(), 0))) == fresh


def test_a_high_watermark_before_the_end_of_what_was_read_forgets_it() -> None:
    cluster = cluster_with(3)
    reader = cluster.reader()
    cluster.ask(reader, 1)
    cluster.logs[0].truncate(2)
    cluster.ask(reader, 0)  # says that the log ends at 1
    cluster.logs[0].append()
    cluster.logs[0].append()
    answer = cluster.ask(cluster.reader(), 1)
    assert bytes(view_of(answer)) == b"".join(b.data for b in cluster.logs[0].batches[1:])


def test_a_batch_across_the_beginning_of_what_is_kept_forgets_it() -> None:
    cluster = cluster_with(3)
    cluster.ask(cluster.reader(), 2)
    cluster.logs[0].truncate(3)
    cluster.logs[0].append(count=3)  # as long as before, so that its end tells nothing
    fresh = cluster.logs[0].batches[0].data
    assert bytes(view_of(cluster.ask(cluster.reader(), 0))) == fresh
    assert bytes(view_of(cluster.ask(cluster.reader(), 2))) == fresh
    assert len(cluster.sent) == 2


def test_readers_that_do_not_know_the_new_leader_yet_are_told_by_the_old_one() -> None:
    cluster = cluster_with(2)
    cluster.logs[0].epoch = 1
    assert bases(cluster.ask(cluster.reader(), 0)) == [0, 1]
    stale = cluster.ask_at(cluster.reader(), [(0, 0)])
    assert error_of(stale) is ErrorCode.FENCED_LEADER_EPOCH
    assert bases(cluster.ask(cluster.reader(), 0)) == [0, 1]
    assert len(cluster.sent) == 2, "what the new leader gave is kept"


def test_what_is_before_the_start_of_the_log_is_not_handed_out() -> None:
    cluster = cluster_with(3)
    reader = cluster.reader()
    cluster.ask(reader, 0)
    waiting = cluster.ask(reader, 3)
    cluster.logs[0].start = 2
    cluster.logs[0].append()
    cluster.waiting[0].complete()
    assert waiting.done()
    assert bases(cluster.ask(cluster.reader(), 2), 2) == [2]
    assert error_of(cluster.ask(cluster.reader(), 1)) is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("records", [b"\0" * 100, b"too little", b"\0" * 8 + b"\x7f" * 80])
def test_bytes_without_a_whole_batch_are_handed_through_and_not_kept(records: bytes) -> None:
    cluster = cluster_with(1)
    answer = cluster.ask(cluster.reader(), 1)
    response = cluster.respond(cluster.sent[0])
    response.responses[0].partitions[0].records = records
    cluster.waiting[0].complete(response)
    assert bytes(partitions_of(answer)[0].records or b"") == records  # type: ignore[arg-type]
    assert not cluster.ask(cluster.reader(), 1).done()


# --- readers that come and go --------------------------------------------------------------------


def test_closing_a_reader_fails_only_what_it_waits_for() -> None:
    cluster = cluster_with(1)
    leader, follower = cluster.reader(), cluster.reader()
    first, second = cluster.ask(leader, 1), cluster.ask(follower, 1)
    cluster.reads.leave(leader)
    with pytest.raises(ConnectionFailed, match="closed"):
        first.result(0)
    with pytest.raises(ClientError, match="closed"):
        cluster.ask(leader, 1)
    cluster.logs[0].append()
    cluster.waiting[0].complete()
    assert bases(second, 1) == [1]


@pytest.mark.slow
def test_callbacks_may_ask_again_at_once_however_many_readers_there_are() -> None:
    cluster = cluster_with(1)
    done: list[int] = []

    def go_on(reader: Reader, offset: int) -> None:
        def arrived(answer: Future[object]) -> None:
            done.append(offset)
            if offset < 3:
                go_on(reader, offset + 1)

        cluster.ask(reader, offset).add_done_callback(arrived)

    for _ in range(2_000):
        go_on(cluster.reader(), 1)
    for _ in range(3):
        cluster.at_once = not cluster.at_once
        cluster.logs[0].append()
        while cluster.waiting and cluster.has_news(cluster.waiting[0].request):
            cluster.waiting[0].complete()
    assert len(done) == 3 * 2_000
    assert cluster.reads.counts.partitions_read == 3


def test_transports_are_used_again() -> None:
    cluster = cluster_with(1)
    for _ in range(20):
        answer = cluster.ask(cluster.reader(), 1)
        cluster.waiting[0].complete()
        assert answer.done()
    assert len(cluster.transports_opened) == 1
    for offset in (0, 1):  # two reads at a time
        cluster.at_once = False
        cluster.ask(cluster.reader(), offset)
    assert len(cluster.transports_opened) == 2


PLAIN = fetch_request([(0, 0)])
OF_ANOTHER_KIND: list[FetchRequest] = [
    replace(PLAIN, min_bytes=2),
    replace(PLAIN, max_wait_ms=0),
    replace(PLAIN, rack_id="here"),
    replace(PLAIN, replica_id=3),
    replace(PLAIN, session_epoch=0),
    replace(PLAIN, isolation_level=2),
    replace(PLAIN, topics=[]),
    replace(PLAIN, topics=[FetchTopic("t", bytes(16), [FetchPartition(0)])]),
    replace(PLAIN, topics=[FetchTopic("t", TOPIC_ID, [FetchPartition(0, last_fetched_epoch=1)])]),
]


def test_only_plain_long_polls_by_topic_id_are_shared() -> None:
    assert can_share(PLAIN, None)
    assert not can_share(PLAIN, 12)
    assert [request for request in OF_ANOTHER_KIND if can_share(request, None)] == []


# --- aborted transactions ------------------------------------------------------------------------

events = st.lists(
    st.tuples(st.sampled_from(["plain", "data", "data", "commit", "abort"]), st.integers(1, 2)),
    min_size=1,
    max_size=15,
)


@pytest.mark.slow
@given(events, st.integers(1, 300))
def test_any_part_of_a_run_shows_what_a_fetch_of_its_own_would_show(
    log_events: list[tuple[str, int]], bytes_max: int
) -> None:
    log = ModelLog()
    for kind, producer in log_events:
        log.append(kind, count=2, producer=-1 if kind == "plain" else producer)
    asked = FetchPartition(0, 0, 0, partition_max_bytes=1_000_000)
    answer = log.read(asked, COMMITTED)
    if not answer.records:
        return
    assert isinstance(answer.records, memoryview)
    run = whole_run(answer.records, 0, answer.aborted_transactions)
    assert run is not None
    for offset in range(run.next_offset):
        part = run.part(offset, bytes_max, minimum_one=True)
        assert part is not None
        data = PartitionData(records=part[0], aborted_transactions=list(part[1] or ()))
        seen = run_of(data, offset, COMMITTED)
        assert bases_of(seen) == log.visible(offset, seen.next_offset, COMMITTED, compacted=True)
        assert len(part[0]) <= bytes_max or run.part(offset, bytes_max, minimum_one=False) is None
