"""ADD COLUMN, then CREATE OR REPLACE: rows that the query stored before are read by the new one."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.broker import Broker
from broker.client import producer
from sql.backends.native import sources
from sql.backends.native.rows import stored_rows
from sql.engine.engine import Engine
from sql.plan import Aggregate, PlanNode, Scan
from sql.queries import QueryState
from tests.sql.engine.engines import DEADLINE_MS, engine_of, until_rows, wait_for

pytestmark = pytest.mark.slow

ITEMS = (
    "CREATE TABLE items (id STRING PRIMARY KEY, kind STRING, price INT) "
    "WITH (kafka_topic='items', value_format='JSON', partitions=2);"
)
SALES = (
    "CREATE STREAM sales (id STRING KEY, kind STRING, price INT) "
    "WITH (kafka_topic='sales', value_format='JSON', partitions=2);"
)
ADD_TO_ITEMS = "ALTER TABLE items ADD COLUMN colour STRING;"
ADD_TO_SALES = "ALTER STREAM sales ADD COLUMN colour STRING;"


def step_of(plan: PlanNode, kind: type[PlanNode]) -> PlanNode:
    """The step of a kind in a plan without joins."""
    while not isinstance(plan, kind):
        assert not isinstance(plan, Scan)
        plan = plan.input  # type: ignore[union-attr]
    return plan


def forget_state(folder: Path) -> None:
    """Delete the local state, so that it is restored from changelogs."""
    shutil.rmtree(folder / "sql" / "state")


def check_restarts(broker: Broker, folder: Path, check: Callable[[Engine], None]) -> None:
    """A result stays after a restart, and after a restore from the changelogs."""
    with engine_of(broker, folder) as engine:
        check(engine)
    forget_state(folder)
    with engine_of(broker, folder) as engine:
        check(engine)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SELECT * FROM items", "SELECT * FROM items"),
        (
            "SELECT id, kind, price FROM items WHERE price > 0",
            "SELECT id, kind, price, colour FROM items WHERE price > 0",
        ),
        (
            "SELECT id, UCASE(kind) AS kind, price FROM items",
            "SELECT id, LCASE(kind) AS kind, price, colour FROM items",
        ),
    ],
)
def test_a_copy_of_a_table_has_its_old_rows_and_the_new_column(
    broker: Broker, tmp_path: Path, before: str, after: str
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(f"{ITEMS} CREATE TABLE copy AS {before};")
        engine.execute(
            "INSERT INTO items VALUES ('a', 'x', 1); INSERT INTO items VALUES ('b', 'x', 2);"
        )
        shown = "X" if "UCASE" in before else "x"
        until_rows(engine, "SELECT * FROM copy;", [("a", shown, 1), ("b", shown, 2)])
        engine.execute(f"{ADD_TO_ITEMS} CREATE OR REPLACE TABLE copy AS {after};")
        until_rows(engine, "SELECT * FROM copy;", [("a", "x", 1, None), ("b", "x", 2, None)])
        engine.execute("INSERT INTO items VALUES ('b', 'x', 3, 'red');")
        engine.execute("INSERT INTO items VALUES ('c', 'x', 4, 'blue');")

    def check(engine: Engine) -> None:
        wanted: list[tuple[object, ...]] = [
            ("a", "x", 1, None),
            ("b", "x", 3, "red"),
            ("c", "x", 4, "blue"),
        ]
        until_rows(engine, "SELECT * FROM copy;", wanted)
        until_rows(engine, "SELECT * FROM copy WHERE id = 'a';", wanted[:1])
        until_rows(engine, "SELECT colour FROM copy WHERE id = 'b';", [("red",)])

    check_restarts(broker, tmp_path, check)


def test_a_table_can_be_replaced_again_and_again(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(f"{ITEMS} CREATE TABLE copy AS SELECT * FROM items;")
        engine.execute("INSERT INTO items VALUES ('r0', 'x', 0);")
        until_rows(engine, "SELECT * FROM copy;", [("r0", "x", 0)])
        for n in (1, 2, 3):
            engine.execute(
                f"ALTER TABLE items ADD COLUMN c{n} INT;"
                "CREATE OR REPLACE TABLE copy AS SELECT * FROM items;"
                # The same once more: nothing about its rows has changed.
                "CREATE OR REPLACE TABLE copy AS SELECT * FROM items WHERE price >= 0;"
            )
            numbers = ", ".join(map(str, range(1, n + 1)))
            engine.execute(f"INSERT INTO items VALUES ('r{n}', 'x', {n}, {numbers});")
            wanted = wanted_rows(n)
            until_rows(engine, "SELECT * FROM copy;", wanted)
        [query] = engine.state.queries.values()
        scan = step_of(query.planned.plan, Scan)
        assert isinstance(scan, Scan)
        assert [len(each) for each in scan.earlier_rows] == [6, 7, 8]
        assert len(scan.shape.row) == 9
    check_restarts(
        broker, tmp_path, lambda engine: until_rows(engine, "SELECT * FROM copy;", wanted)
    )


def wanted_rows(count: int) -> list[tuple[object, ...]]:
    return [
        (f"r{n}", "x", n, *(m if m <= n else None for m in range(1, count + 1)))
        for n in range(count + 1)
    ]


def test_groups_of_a_table_take_back_rows_that_were_stored_before(
    broker: Broker, tmp_path: Path
) -> None:
    totals = "TABLE totals AS SELECT kind, SUM(price) AS total FROM items GROUP BY kind"
    with engine_of(broker, tmp_path) as engine:
        engine.execute(f"{ITEMS} CREATE {totals};")
        engine.execute(
            "INSERT INTO items VALUES ('a', 'x', 1); INSERT INTO items VALUES ('b', 'y', 2);"
        )
        until_rows(engine, "SELECT * FROM totals;", [("x", 1), ("y", 2)])
        engine.execute(f"{ADD_TO_ITEMS} CREATE OR REPLACE {totals};")
        until_rows(engine, "SELECT * FROM totals;", [("x", 1), ("y", 2)])
        # The old row is taken out of its group, and the new one into another.
        engine.execute("INSERT INTO items VALUES ('a', 'y', 10, 'red');")
        until_rows(engine, "SELECT * FROM totals;", [("x", 0), ("y", 12)])
    forget_state(tmp_path)
    with engine_of(broker, tmp_path) as engine:
        engine.execute("INSERT INTO items VALUES ('b', 'x', 2, 'red');")
        until_rows(engine, "SELECT * FROM totals;", [("x", 2), ("y", 10)])


def test_records_between_the_steps_of_a_query_are_not_lost(broker: Broker, tmp_path: Path) -> None:
    """The old query had written to its repartition topic what it had not read again."""
    counts = "TABLE counts AS SELECT kind, COUNT(*) AS n FROM sales GROUP BY kind"
    with engine_of(broker, tmp_path) as engine:
        engine.execute(f"{SALES} CREATE {counts};")
        engine.execute("INSERT INTO sales VALUES ('a', 'x', 1);")
        until_rows(engine, "SELECT * FROM counts;", [("x", 1)])
        [query] = engine.state.queries.values()
        runtime = engine.commands.running[query.id].runtime
        runtime.stop()
        step = step_of(query.planned.plan, Aggregate)
        assert isinstance(step, Aggregate)
        columns = step.input.shape.row
        values = {"ID": "a", "KIND": "x", "PRICE": 1, "ROWTIME": 1}
        row = tuple(values.get(each.name) for each in columns)
        topic = f"{runtime.application_id}-Aggregate-GroupBy-repartition"
        with producer(broker) as out:
            data = stored_rows(columns).serialize(topic, row)
            for partition in (0, 1):
                out.send(topic, data, b"x", partition=partition).result()
        engine.execute(f"{ADD_TO_SALES} CREATE OR REPLACE {counts};")
        engine.execute("INSERT INTO sales VALUES ('b', 'x', 1, 'red');")
        # One partition has the group already, the other one counts on its own.
        until_rows(engine, "SELECT * FROM counts;", [("x", 3), ("x", 1)])


def test_state_of_the_version_before_opens_and_goes_on(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows had no version: those of the old query and of the new one lie side by side."""

    def unversioned(columns: object, earlier: object = ()) -> object:
        return stored_rows(columns)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(sources, "stored_rows", unversioned)
        with engine_of(broker, tmp_path) as engine:
            engine.execute(f"{ITEMS} CREATE TABLE copy AS SELECT * FROM items;")
            engine.execute("INSERT INTO items VALUES ('a', 'x', 1);")
            until_rows(engine, "SELECT * FROM copy;", [("a", "x", 1)])
            engine.execute(f"{ADD_TO_ITEMS} CREATE OR REPLACE TABLE copy AS SELECT * FROM items;")
            engine.execute("INSERT INTO items VALUES ('b', 'x', 2, 'red');")
            until_rows(engine, "SELECT * FROM copy WHERE id = 'b';", [("b", "x", 2, "red")])
    wanted: list[tuple[object, ...]] = [("a", "x", 1, None), ("b", "x", 2, "red")]
    check_restarts(
        broker, tmp_path, lambda engine: until_rows(engine, "SELECT * FROM copy;", wanted)
    )


def test_a_record_of_its_own_that_a_query_cannot_read_stops_it(
    broker: Broker, tmp_path: Path
) -> None:
    """Records of sources are skipped and logged, but nothing is lost between its steps."""
    counts = "TABLE counts AS SELECT kind, COUNT(*) AS n FROM sales GROUP BY kind"
    with engine_of(broker, tmp_path) as engine:
        engine.execute(f"{SALES} CREATE {counts};")
        [query_id] = engine.state.queries
        runtime = engine.commands.running[query_id].runtime
        assert runtime.wait_running(DEADLINE_MS)
        topic = f"{runtime.application_id}-Aggregate-GroupBy-repartition"
        with producer(broker) as out:
            out.send("sales", b"not json", b"a").result()
        engine.execute("INSERT INTO sales VALUES ('a', 'x', 1);")
        until_rows(engine, "SELECT * FROM counts;", [("x", 1)])
        assert runtime.state is QueryState.RUNNING
        with producer(broker) as out:
            out.send(topic, b"\xc1\x00\x63\x90", b"x").result()
        wait_for(lambda: bool(runtime.failures), lambda: "it went on")
        assert topic in runtime.failures[-1].message
