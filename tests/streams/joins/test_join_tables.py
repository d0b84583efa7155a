"""The tables of join results, row by row: one key, one input for each row.

A cell of a join's column is what the row gives: "A-a" is the joiner of A and a, "null" a deletion;
"@40" is the time of a result that has not the time of its row.
"""

from collections.abc import Callable
from typing import Any

import pytest

from streams.dsl.builder import StreamsBuilder
from streams.windows import join_within
from tests.streams.joins.driving import Output, pair, running, stream, table

CACHE = pytest.mark.parametrize("cache_bytes", [0, 10_000_000], ids=["plain", "cached"])

STREAM_STREAM = """
ts  | left | right | join              | left_join         | outer_join
1   | null |       |                   |                   |
2   |      | null  |                   |                   |
3   | A    |       |                   |                   |
4   |      | a     | A-a               | A-a               | A-a
5   | B    |       | B-a               | B-a               | B-a
6   |      | b     | A-b B-b           | A-b B-b           | A-b B-b
7   | null |       |                   |                   |
8   |      | null  |                   |                   |
9   | C    |       | C-a C-b           | C-a C-b           | C-a C-b
10  |      | c     | A-c B-c C-c       | A-c B-c C-c       | A-c B-c C-c
11  |      | null  |                   |                   |
14  |      | d     | A-d B-d C-d       | A-d B-d C-d       | A-d B-d C-d
15  | D    |       | D-a D-b D-c D-d   | D-a D-b D-c D-d   | D-a D-b D-c D-d
40  | E    |       |                   |                   |
60  | null |       |                   |                   |
61  | F    |       |                   | E-null@40         | E-null@40
82  |      | f     |                   | F-null@61         | F-null@61
103 | G    |       |                   |                   | null-f@82
"""

STREAM_TABLE = """
ts | left | right | join | left_join
1  | null |       |      |
2  |      | null  |      |
3  | A    |       |      | A-null
4  |      | a     |      |
5  | B    |       | B-a  | B-a
6  |      | b     |      |
7  | null |       |      |
8  |      | null  |      |
9  | C    |       |      | C-null
10 |      | c     |      |
11 |      | null  |      |
12 | null |       |      |
14 |      | d     |      |
15 | D    |       | D-d  | D-d
"""

TABLE_TABLE = """
ts | left | right | join | left_join | outer_join
1  | null |       |      |           |
2  |      | null  |      |           |
3  | A    |       |      | A-null    | A-null
4  |      | a     | A-a  | A-a       | A-a
5  | B    |       | B-a  | B-a       | B-a
6  |      | b     | B-b  | B-b       | B-b
7  | null |       | null | null      | null-b
8  |      | null  |      |           | null
9  | C    |       |      | C-null    | C-null
10 |      | c     | C-c  | C-c       | C-c
11 |      | null  | null | C-null    | C-null
12 | null |       |      | null      | null
13 |      | null  |      |           |
14 |      | d     |      |           | null-d
15 | D    |       | D-d  | D-d       | D-d
"""

# One key again, but times go back and forth.
OUT_OF_ORDER = (
    "L:null@1 R:null@2 L:A@3 R:a@4 L:B@5 R:b@6 L:null@7 R:null@8 L:C@9 R:c@10 R:null@11 L:null@12 "
    "R:null@13 R:d@7 L:D@6 L:null@2 R:null@3 R:e@14 L:E@15 L:null@10 R:null@9 L:F@4 R:f@3"
)

STREAM_TABLE_OUT_OF_ORDER = {
    "join": "B-a@5 D-d@6 E-e@15",
    "left_join": "A-null@3 B-a@5 C-null@9 D-d@6 E-e@15 F-null@4",
}
STREAM_VERSIONED_TABLE_OUT_OF_ORDER = {
    "join": "B-a@5 D-b@6 E-e@15 F-a@4",
    "left_join": "A-null@3 B-a@5 C-null@9 D-b@6 E-e@15 F-a@4",
}
STREAM_TABLE_WITH_GRACE_OUT_OF_ORDER = {
    "join": "B-a@5 D-b@6 F-a@4",
    "left_join": "A-null@3 B-a@5 D-b@6 C-null@9 F-a@4",
}
TABLE_TABLE_OUT_OF_ORDER = {
    "join": "A-a@4 B-a@5 B-b@6 null@7 C-c@10 null@11 D-d@7 null@7 E-e@15 null@14 F-f@4",
    "left_join": "A-null@3 A-a@4 B-a@5 B-b@6 null@7 C-null@9 C-c@10 C-null@11 null@12 D-d@7 null@7 "
    "E-e@15 null@14 F-null@4 F-f@4",
    "outer_join": "A-null@3 A-a@4 B-a@5 B-b@6 null-b@7 null@8 C-null@9 C-c@10 C-null@11 null@12 "
    "null-d@7 D-d@7 null-d@7 null@3 null-e@14 E-e@15 null-e@14 null@9 F-null@4 F-f@4",
}
VERSIONED_TABLES_OUT_OF_ORDER = {
    "join": "A-a@4 B-a@5 B-b@6 null@7 C-c@10 null@11 E-e@15",
    "left_join": "A-null@3 A-a@4 B-a@5 B-b@6 null@7 C-null@9 C-c@10 C-null@11 null@12 E-e@15",
    "outer_join": "A-null@3 A-a@4 B-a@5 B-b@6 null-b@7 null@8 C-null@9 C-c@10 C-null@11 null@12 "
    "null-e@14 E-e@15",
}

FIVE_MINUTES_MS = 300_000

Cases = list[tuple[int, str, str | None, list[Output]]]


def value_of(text: str) -> str | None:
    return None if text == "null" else text


def results_of(cell: str, row_ms: int) -> list[Output]:
    results: list[Output] = []
    for word in cell.split():
        value, _, at = word.partition("@")
        results.append(("k", value_of(value), int(at or row_ms)))
    return results


def rows(text: str, column: str) -> Cases:
    head, *lines = (
        [cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()
    )
    cases: Cases = []
    for line in lines:
        cell = dict(zip(head, line, strict=True))
        topic = "left" if cell["left"] else "right"
        row_ms = int(cell["ts"])
        cases.append((row_ms, topic, value_of(cell[topic]), results_of(cell[column], row_ms)))
    return cases


def check_rows(wire: Callable[[StreamsBuilder], Any], cases: Cases, cache_bytes: int) -> None:
    with running(wire, cache_bytes=cache_bytes) as run:
        for row_ms, topic, value, expected in cases:
            run.pipe(topic, "k", value, row_ms)
            assert run.take() == expected, f"row {row_ms}"


def check_out_of_order(
    wire: Callable[[StreamsBuilder], Any], expected: str, cache_bytes: int
) -> None:
    with running(wire, cache_bytes=cache_bytes) as run:
        for word in OUT_OF_ORDER.split():
            side, _, rest = word.partition(":")
            value, _, at = rest.partition("@")
            run.pipe("left" if side == "L" else "right", "k", value_of(value), int(at))
        assert run.take() == results_of(expected, 0)


def call(left: Any, right: Any, method: str, *args: object, **options: object) -> Any:
    return getattr(left, method)(right, pair, *args, **options)


@CACHE
@pytest.mark.parametrize("method", ["join", "left_join", "outer_join"])
def test_streams_are_joined_within_15_s_and_5_s_of_grace(method: str, cache_bytes: int) -> None:
    # The rows count seconds; the window counts them as milliseconds.
    within = join_within(15, grace=5)
    check_rows(
        lambda builder: call(stream(builder, "left"), stream(builder, "right"), method, within),
        rows(STREAM_STREAM, method),
        cache_bytes,
    )


@CACHE
@pytest.mark.parametrize("method", ["join", "left_join"])
def test_a_stream_is_joined_with_a_table(method: str, cache_bytes: int) -> None:
    check_rows(
        lambda builder: call(stream(builder, "left"), table(builder, "right"), method),
        rows(STREAM_TABLE, method),
        cache_bytes,
    )


@CACHE
@pytest.mark.parametrize("store", [None, "joined"])
@pytest.mark.parametrize("method", ["join", "left_join", "outer_join"])
def test_tables_are_joined(method: str, store: str | None, cache_bytes: int) -> None:
    options: dict[str, object] = {} if store is None else {"store": store, "value": str}
    check_rows(
        lambda builder: call(table(builder, "left"), table(builder, "right"), method, **options),
        rows(TABLE_TABLE, method),
        cache_bytes,
    )


@CACHE
@pytest.mark.parametrize("method", ["join", "left_join"])
def test_out_of_order_stream_and_table(method: str, cache_bytes: int) -> None:
    check_out_of_order(
        lambda builder: call(stream(builder, "left"), table(builder, "right"), method),
        STREAM_TABLE_OUT_OF_ORDER[method],
        cache_bytes,
    )


@CACHE
@pytest.mark.parametrize("method", ["join", "left_join"])
def test_out_of_order_stream_and_versioned_table(method: str, cache_bytes: int) -> None:
    check_out_of_order(
        lambda builder: call(
            stream(builder, "left"),
            table(builder, "right", versioned_history=FIVE_MINUTES_MS, store="versions"),
            method,
        ),
        STREAM_VERSIONED_TABLE_OUT_OF_ORDER[method],
        cache_bytes,
    )


@CACHE
@pytest.mark.parametrize("method", ["join", "left_join"])
def test_out_of_order_stream_that_waits_for_a_versioned_table(
    method: str, cache_bytes: int
) -> None:
    check_out_of_order(
        lambda builder: call(
            stream(builder, "left"),
            table(builder, "right", versioned_history=FIVE_MINUTES_MS, store="versions"),
            method,
            grace=2,
        ),
        STREAM_TABLE_WITH_GRACE_OUT_OF_ORDER[method],
        cache_bytes,
    )


@CACHE
@pytest.mark.parametrize("method", ["join", "left_join", "outer_join"])
def test_out_of_order_tables(method: str, cache_bytes: int) -> None:
    check_out_of_order(
        lambda builder: call(table(builder, "left"), table(builder, "right"), method),
        TABLE_TABLE_OUT_OF_ORDER[method],
        cache_bytes,
    )


@CACHE
@pytest.mark.parametrize("method", ["join", "left_join", "outer_join"])
def test_out_of_order_versioned_tables(method: str, cache_bytes: int) -> None:
    check_out_of_order(
        lambda builder: call(
            table(builder, "left", versioned_history=FIVE_MINUTES_MS, store="lefts"),
            table(builder, "right", versioned_history=FIVE_MINUTES_MS, store="rights"),
            method,
        ),
        VERSIONED_TABLES_OUT_OF_ORDER[method],
        cache_bytes,
    )
