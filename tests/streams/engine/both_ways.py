"""Runs of records through a task in both ways: pulled, and one by one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st

from streams.errors import StreamsError
from streams.handlers import Answer, DeadLetter, Failure
from streams.record import Chunk, Headers
from streams.runtime import pulling
from streams.topology import Topology
from tests.streams.engine.harness import LoneTask, Sent

# Key, value, timestamp_ms, headers.
Raw = tuple[bytes | None, bytes | None, int, Headers]

ALL_PULLED, ONE_BY_ONE = 1, 1_000_000
STACK_TRACE = "__streams.errors.stacktrace"  # which tells one way from the other
HANDLERS = ("deserialization", "production", "processing")
ANSWERS = st.sampled_from([Answer.FAIL, Answer.CONTINUE, Answer.DEAD_LETTER, DeadLetter("dead")])


@dataclass
class Outcome:
    """All that can be seen of what a task did."""

    sent: list[Sent] = field(default_factory=list)
    failures: list[tuple[object, ...]] = field(default_factory=list)
    told: list[object] = field(default_factory=list)  # by what the topology calls
    errors: list[str] = field(default_factory=list)
    metrics: list[tuple[str, str, int]] = field(default_factory=list)
    after_runs: list[object] = field(default_factory=list)


def same_in_both_ways(
    topology_of: Callable[[list[object]], Topology],
    chunks: Sequence[Sequence[Raw]],
    answers: Sequence[Answer | DeadLetter],
    *,
    limit: int = 1000,
) -> Outcome:
    """Let both ways give the same; `topology_of` is given a list to put into what it sees."""
    outcomes = [
        _outcome(topology_of, chunks, answers, limit=limit, rows_min=rows_min)
        for rows_min in (ONE_BY_ONE, ALL_PULLED)
    ]
    assert outcomes[0] == outcomes[1]
    return outcomes[0]


def _outcome(
    topology_of: Callable[[list[object]], Topology],
    chunks: Sequence[Sequence[Raw]],
    answers: Sequence[Answer | DeadLetter],
    *,
    limit: int,
    rows_min: int,
) -> Outcome:
    outcome = Outcome()
    settings: dict[str, Any] = {  # Any: they become keyword arguments
        f"{kind}_exception_handler": _handler(answer, outcome)
        for kind, answer in zip(HANDLERS, answers, strict=False)
    }
    lone = LoneTask(
        topology_of(outcome.told), errors_dead_letter_queue_topic_name="letters", **settings
    )
    for chunk in _chunks(chunks):
        lone.task.add(chunk)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pulling, "ROWS_MIN", rows_min)
        while lone.task.buffered_total:
            try:
                lone.task.process(limit)
            except StreamsError as error:
                outcome.errors.append(f"{type(error).__name__}: {error}")
            offsets = sorted((str(tp), str(found)) for tp, found in lone.task.offsets().items())
            outcome.after_runs.append(
                (lone.task.stream_time_ms, lone.state.record_time.ms, offsets)
            )
    outcome.sent = [_without_stack(each) for each in lone.outbox.sent]
    outcome.metrics = sorted(lone.task.metrics.items())
    return outcome


def _handler(
    answer: Answer | DeadLetter, outcome: Outcome
) -> Callable[[Failure], Answer | DeadLetter]:
    def handle(failure: Failure) -> Answer | DeadLetter:
        seen = (failure.kind, failure.node, failure.position, failure.timestamp_ms)
        given = (repr(failure.key), repr(failure.value), failure.headers)
        raw = (failure.raw_key, failure.raw_value, failure.raw_headers)
        outcome.failures.append((*seen, *given, *raw, repr(failure.error)))
        return answer

    return handle


def _chunks(chunks: Sequence[Sequence[Raw]]) -> list[Chunk]:
    made, offset = [], 0
    for rows in chunks:
        keys, values, timestamps, headers = (list(each) for each in zip(*rows, strict=True))
        end = offset + len(rows)
        kept = headers if any(headers) else None
        made.append(Chunk("in", 0, range(offset, end), timestamps, keys, values, kept, end))
        offset = end
    return made


def _without_stack(sent: Sent) -> Sent:
    return sent._replace(headers=tuple(each for each in sent.headers if each[0] != STACK_TRACE))


def raw_records(values: st.SearchStrategy[bytes | None]) -> st.SearchStrategy[list[list[Raw]]]:
    """Chunks of records: some without a key, or with one that is no text, or out of time."""
    keys = st.sampled_from([b"a", b"b", "\u00fc".encode(), b"", None, b"\xff"])
    usual_keys = st.sampled_from([b"a", b"b", b"c", None])
    times = st.integers(0, 1000)
    headers: st.SearchStrategy[Headers] = st.sampled_from([(), (), (("h", b"1"),), (("h", None),)])
    usual = st.tuples(usual_keys, values, times, headers)
    odd = st.tuples(keys, values, st.sampled_from([-1, 0, 500, 1001]), headers)
    chunk = st.lists(usual, min_size=1, max_size=8) | st.lists(usual | odd, min_size=1, max_size=8)
    return st.lists(chunk, min_size=1, max_size=3)
