"""Rows of a query that are pulled become what they become one by one."""

import logging
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sql.backends.native.sinks import written
from sql.backends.native.steps import StepContext
from sql.backends.native.tap import Tap
from sql.backends.native.topology import find_used_columns, lower_result
from streams.dsl.builder import StreamsBuilder
from streams.handlers import Answer, DeadLetter
from streams.topology import Topology
from tests.sql.backends.native.test_topology import planned
from tests.streams.engine.both_ways import ANSWERS, Raw, raw_records, same_in_both_ways

STREAM = (
    "CREATE STREAM S (K STRING KEY, A INT, B INT, T STRING) "
    "WITH (kafka_topic='in', value_format='{}');"
)
RESULT = "CREATE STREAM R WITH (kafka_topic='out', value_format='{}') AS {} EMIT CHANGES;"
QUERIES = (
    "SELECT K, A / B AS Q, CAST(T AS INT) AS N FROM S WHERE A > 1",
    "SELECT * FROM S",
    "SELECT K, A, ROWOFFSET AS O, ROWTIME AS TIME FROM S WHERE A / B > 0 OR ROWPARTITION = 0",
    "SELECT K, SUBSTRING(T, A, B) AS T FROM S WHERE LEN(T) > 0",
    "SELECT T, A FROM S PARTITION BY T",
)
VALUES = st.sampled_from(
    [
        *(b'{"A":%d,"B":%d,"T":"%d"}' % (a, b, a - b) for a in range(4) for b in range(2)),
        b'{"A":3,"B":1,"T":"no number"}',
        b'{"a":3,"b":1,"other":[1]}',
        b'{"A":"3","T":true}',
        b'{"A":null}',
        b'{"A":[1]}',
        b"{}",
        b"null",
        b"not JSON",
        b"",
        None,
    ]
)
TEXTS = st.sampled_from([b"3,1,text", b"3,0,7", b",,", b"1,2", b"x,1,2", b"", None])


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    log = logging.getLogger("streams")
    level = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(level)


def watched(query: str, value_format: str) -> Callable[[list[object]], Topology]:
    """The topology of a query that somebody watches."""

    def build(reported: list[object]) -> Topology:
        engine, found = planned(STREAM.format(value_format), RESULT.format(value_format, query))
        context = StepContext(
            StreamsBuilder(),
            engine.registry,
            lambda step, error, row: reported.append(("failed", step, repr(error), row)),
        )
        tap = Tap()
        tap.add(lambda key, row, timestamp_ms: reported.append(("seen", key, row, timestamp_ms)))
        find_used_columns(found.plan, context)
        written(found.plan, lower_result(found.plan.input, context, tap), context)
        return context.builder.build()

    return build


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.sampled_from(QUERIES),
    raw_records(VALUES),
    st.tuples(ANSWERS, ANSWERS) | st.tuples(ANSWERS, ANSWERS, ANSWERS),
    st.integers(1, 12),
)
def test_pulled_rows_become_what_they_become_one_by_one(
    query: str,
    chunks: list[list[Raw]],
    answers: tuple[Answer | DeadLetter, ...],
    limit: int,
) -> None:
    same_in_both_ways(watched(query, "JSON"), chunks, answers, limit=limit)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(st.sampled_from(QUERIES), raw_records(TEXTS), st.tuples(ANSWERS, ANSWERS))
def test_so_do_rows_of_another_format(
    query: str, chunks: list[list[Raw]], answers: tuple[Answer | DeadLetter, ...]
) -> None:
    same_in_both_ways(watched(query, "DELIMITED"), chunks, answers)


def test_a_failing_expression_is_logged_at_the_place_of_its_row() -> None:
    rows: list[Raw] = [(b"k", b'{"A":4,"B":%d}' % each, 7, ()) for each in (1, 0, 2, 0)]
    query = "SELECT K, A / B AS Q, ROWOFFSET AS O FROM S"
    outcome = same_in_both_ways(watched(query, "JSON"), [rows], ())
    failed = [each for each in outcome.told if isinstance(each, tuple) and each[0] == "failed"]
    assert len(failed) == 2
    assert [each.value for each in outcome.sent] == [
        b'{"Q":4,"O":0}',
        b'{"Q":null,"O":1}',
        b'{"Q":2,"O":2}',
        b'{"Q":null,"O":3}',
    ]
