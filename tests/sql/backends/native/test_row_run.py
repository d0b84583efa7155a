"""A run of steps gives what its steps give one after the other."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.serde import BytesSerde
from sql.backends.native.expressions import compile_predicate, compile_row_function
from sql.backends.native.row_run import RowRun, ValueIsRow
from sql.backends.native.steps import StepContext
from sql.backends.native.tap import Tap
from sql.backends.native.topology import add_query, find_used_columns
from sql.errors import StatementFailed
from sql.expressions import Opposite
from streams.config import StreamsConfig
from streams.dsl.builder import StreamsBuilder
from streams.processor import NodeContext
from streams.testing import TopologyTestDriver
from tests.sql.analyse.typing_scope import typed
from tests.sql.backends.native.random_expressions import ROWS, condition, expressions
from tests.sql.backends.native.test_expressions import same, silent, typed_or_not
from tests.sql.backends.native.test_topology import S, planned

Row = tuple[Any, ...]
KEY = ("key",)


def new_run() -> RowRun:
    """A run without steps, over records whose values are rows."""
    return RowRun(StreamsBuilder().stream("rows"), ValueIsRow())


def results(run: RowRun, rows: list[Row | None]) -> list[tuple[object, object]]:
    """The keys and rows that come out of a run."""
    found: list[tuple[object, object]] = []
    forward = lambda key, row, timestamp_ms, headers: found.append((key, row))  # noqa: E731
    step = cast("Any", run.added().node.step)
    process = step.make().open(cast("NodeContext", SimpleNamespace(forward=forward)))
    for row in rows:
        process(KEY, row, 7, ())
    return found


@pytest.mark.slow
@settings(deadline=None)
@given(condition(2), st.lists(expressions(2), min_size=1, max_size=3), st.lists(ROWS, max_size=4))
def test_a_run_computes_what_its_steps_do(
    condition_text: str, texts: list[str], rows: list[Row]
) -> None:
    kept, selected = typed_or_not(condition_text), [typed_or_not(each) for each in texts]
    reported: list[Row] = []
    log = lambda error, row: reported.append(row)  # noqa: E731
    found = results(new_run().kept(kept, log).selected(selected, log), [*rows, None])
    logged_by_run, reported[:] = reported[:], []
    keeps, select = compile_predicate(kept, log), compile_row_function(selected, log)
    wanted = [select(row) for row in rows if keeps(row)]
    assert same([list(cast("Row", row)) for _, row in found], [list(row) for row in wanted])
    assert len(logged_by_run) == len(reported)


def test_rows_without_values_go_on_unless_they_are_filtered() -> None:
    run = new_run().selected([typed("I")], silent)
    assert results(run, [None]) == [(KEY, None)]
    assert results(run.kept(typed("TRUE"), silent), [None]) == []
    assert results(run.present(), [None]) == []


def test_a_run_without_steps_is_the_stream_itself() -> None:
    run = new_run()
    assert run.added() is run.stream


def test_all_results_are_watched() -> None:
    seen: list[object] = []
    tap = Tap()
    watch = lambda key, row, timestamp_ms: seen.append((key, row, timestamp_ms))  # noqa: E731
    run = new_run().selected([typed("1"), typed("2")], silent).tapped(tap)
    results(run, [()])
    tap.add(watch)
    results(run, [(), None])
    tap.remove(watch)
    results(run, [()])
    assert seen == [(KEY, (1, 2), 7), (KEY, None, 7)]


def test_expressions_that_are_too_deep_for_a_run_are_refused() -> None:
    node = typed("B")
    for _ in range(5000):
        node = Opposite(node)
    with pytest.raises(StatementFailed, match="too deep"):
        new_run().kept(node, silent).added()


RECORDS = [
    (b"\0\0\0\1", b'{"A": 2, "B": "x"}'),
    (None, b'{"A": 3, "B": null}'),
    (b"\0\0\0\1", None),
    (b"\0\0\0\2", b'{"A": 4}'),
]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (
            "SELECT k, ROWPARTITION AS p, ROWOFFSET AS o FROM s",
            [b'{"P":0,"O":0}', b'{"P":0,"O":1}', None, b'{"P":0,"O":3}'],
        ),
        ("SELECT k, a FROM s WHERE ROWOFFSET > 0", [b'{"A":3}', b'{"A":4}']),
        ("SELECT k, a, ROWTIME AS t FROM s WHERE k IS NULL", [b'{"A":3,"T":6}']),
        ("SELECT k, AS_VALUE(k) AS v FROM s WHERE a <> 4", [b'{"V":1}', b'{"V":null}']),
        ("SELECT k, a + k AS c FROM s", [b'{"C":3}', b'{"C":null}', None, b'{"C":6}']),
        (
            "SELECT a, ROWOFFSET AS o FROM s PARTITION BY a",
            [b'{"O":0}', b'{"O":1}', None, b'{"O":3}'],
        ),
    ],
)
def test_columns_are_found_where_records_have_them(query: str, wanted: list[bytes | None]) -> None:
    assert written(f"CREATE STREAM o AS {query};") == wanted


@pytest.mark.parametrize(
    ("select", "wanted"),
    [
        ("k, COUNT(*) AS n, SUM(a) AS s FROM s GROUP BY k", [(1, 2), (1, 4)]),
        ("b, COUNT(*) AS n, SUM(ROWOFFSET) AS s FROM s GROUP BY b", [(1, 0)]),
        ("a, COUNT(*) AS n, MAX(k) AS s FROM s GROUP BY a", [(1, 1), (1, None), (1, 2)]),
        ("k, COUNT(*) AS n, SUM(a) + COUNT(*) AS s FROM s GROUP BY k", [(1, 3), (1, 5)]),
        ("k, COUNT(*) AS n, SUM(a) AS s FROM s GROUP BY k HAVING SUM(a) > 3", [(1, 4)]),
    ],
)
def test_groups_have_the_aggregates_of_their_rows(
    select: str, wanted: list[tuple[int, int | None]]
) -> None:
    texts = [f'{{"N":{n},"S":{s}}}'.replace("None", "null").encode() for n, s in wanted]
    assert written(f"CREATE TABLE o AS SELECT {select};") == texts


def written(statement: str) -> list[bytes | None]:
    """The values that a query writes of the records."""
    engine, query = planned(S, statement)
    builder = StreamsBuilder()
    add_query(query.plan, StepContext(builder, engine.registry))
    config = StreamsConfig(application_id="app", statestore_cache_max_bytes=0)
    with TopologyTestDriver(builder.build(), config=config) as driver:
        for offset, (key, value) in enumerate(RECORDS):
            driver.pipe_batch([("s", (key, value, 5 + offset, (), None))])
        output = driver.create_output_topic("O", key=BytesSerde(), value=BytesSerde())
        return [each.value for each in output.read_records_to_list()]


@pytest.mark.parametrize(
    ("query", "needs_place"),
    [
        ("SELECT k, a FROM s", False),
        ("SELECT k, a FROM s WHERE ROWOFFSET > 5", True),
        ("SELECT k, ABS(ROWPARTITION) FROM s", True),
        ("SELECT k, TRANSFORM(ARRAY[a], x => x + ROWOFFSET) FROM s", True),
    ],
)
def test_places_are_needed_if_a_query_asks_for_them(query: str, needs_place: bool) -> None:
    engine, planned_query = planned(S, f"CREATE STREAM o AS {query};")
    context = StepContext(StreamsBuilder(), engine.registry)
    assert context.needs_place
    find_used_columns(planned_query.plan, context)
    assert context.needs_place is needs_place
