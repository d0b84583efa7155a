"""SQL in a simulation: statements and queries survive kills, and one seed is one history."""

from collections.abc import Mapping, Sequence
from functools import cache

import pytest

from millstream.simulation import Simulation
from millstream.simulation.clock import START_MS
from millstream.simulation.workloads.statements import (
    Script,
    ScriptServer,
    Step,
    add_column_step,
    control_step,
    create_step,
    drop_step,
    insert_step,
)
from sql.errors import StatementFailed
from tests.millstream.simulation.restarting import Restarted, Server
from tests.millstream.simulation.settling import Rows, Settling, all_rows, last_rows, serve

CUSTOMERS = ("ann", "bob", "cid")
# What the process is started with, one after the other: nothing of it may change a running query.
OTHER_SETTINGS: Sequence[Mapping[str, object]] = (
    {},
    {
        "ksql.output.topic.name.prefix": "other_",
        "ksql.persistence.default.format.value": "DELIMITED",
    },
    {"ksql.persistence.default.format.value": "KAFKA", "ksql.streams.commit.interval.ms": 500},
)
TABLES = {
    "TOTALS": last_rows,
    "PER_MINUTE": last_rows,
    "OVERLAPPING": last_rows,
    "SESSIONS": last_rows,
}
STREAMS = {"LARGE": all_rows, "BY_CUSTOMER": all_rows, "WITH_CITY": all_rows}

SELECTS = {
    "large": "id, customer, amount FROM orders WHERE amount > 50",
    "by_customer": "customer, id, amount FROM orders PARTITION BY customer",
    "with_city": "o.customer AS customer, o.id AS id, c.city AS city FROM by_customer o "
    "JOIN customers c ON o.customer = c.customer",
    "totals": "customer, COUNT(*) AS orders, SUM(amount) AS amount FROM orders GROUP BY customer",
    "per_minute": "customer, COUNT(*) AS orders FROM orders WINDOW TUMBLING (SIZE 1 MINUTE) "
    "GROUP BY customer",
    "overlapping": "customer, SUM(amount) AS amount FROM orders "
    "WINDOW HOPPING (SIZE 1 MINUTE, ADVANCE BY 30 SECONDS) GROUP BY customer",
    "sessions": "customer, COUNT(*) AS orders FROM orders WINDOW SESSION (15 SECONDS) "
    "GROUP BY customer",
}


def made_as(name: str) -> str:
    """The statement that makes a stream or table from others."""
    kind, select = "TABLE" if name.upper() in TABLES else "STREAM", SELECTS[name]
    properties = f"kafka_topic='{name.upper()}', value_format='JSON'"
    return f"CREATE {kind} {name} WITH ({properties}) AS SELECT {select};"


def orders(first: int, count: int, **more: object) -> list[dict[str, object]]:
    """Orders of some customers, one each seven seconds."""
    return [
        {
            "rowtime": START_MS + 60_000 + n * 7_000,
            "id": f"o{n}",
            "customer": CUSTOMERS[n * n % len(CUSTOMERS)],
            "amount": n * 37 % 100,
            "n": n,
            **more,
        }
        for n in range(first, first + count)
    ]


def steps(settling: Settling) -> list[Step]:
    """The whole script: what there is, what is made of it, and what is done to that."""
    cities = [
        {"rowtime": START_MS, "customer": name, "city": f"city of {name}", "n": n}
        for n, name in enumerate(CUSTOMERS)
    ]
    return [
        create_step(
            "CREATE STREAM orders (id STRING KEY, customer STRING, amount INT, n INT) "
            "WITH (kafka_topic='orders', value_format='JSON', partitions=2);"
        ),
        create_step(
            "CREATE TABLE customers (customer STRING PRIMARY KEY, city STRING, n INT) "
            "WITH (kafka_topic='customers', value_format='JSON', partitions=2);"
        ),
        insert_step("customers", cities),
        *(create_step(made_as(name)) for name in SELECTS),
        insert_step("orders", orders(0, 8)),
        settling.step(0, STREAMS | TABLES),
        control_step("PAUSE", "large"),
        insert_step("orders", orders(8, 6)),
        settling.step(1, STREAMS | TABLES),
        control_step("RESUME", "large"),
        settling.step(2, STREAMS),
        create_step(made_as("large").replace("CREATE", "CREATE OR REPLACE").replace("50", "20")),
        add_column_step("orders", "note", "STRING"),
        insert_step("orders", orders(14, 6, note="new")),
        settling.step(3, STREAMS | TABLES),
        control_step("TERMINATE", "overlapping"),
        drop_step("TABLE", "sessions"),
        insert_step("orders", orders(20, 4, note="late")),
        settling.step(4, STREAMS | {name: TABLES[name] for name in ("TOTALS", "PER_MINUTE")}),
        Step("pull", pull),
    ]


def pull(server: ScriptServer) -> None:
    """Ask for the totals, again while the query waits for the session of its last member to end."""
    for _ in range(5):
        try:
            found = server.engine.query("SELECT * FROM totals;")
        except StatementFailed:
            continue
        rows = sorted(tuple(row.values) for row in found.rows())
        server.note("pulls", rows)
        return
    raise AssertionError("the table is not ready after 100 seconds")


@cache
def undisturbed() -> list[dict[str, Rows]]:
    """The results of a run without kills."""
    settling = Settling()
    script = Script(steps(settling))
    with Simulation(seed=0) as simulation:
        Restarted(simulation, lambda server: serve(script, server, {})).run()
    return [settling.found[number] for number in sorted(settling.found)]


def disturbed(seed: int) -> str:
    """A run with kills, whose results are as those without; the digest of its history."""
    script = Script(steps(Settling(undisturbed())))

    def run(server: Server) -> None:
        serve(script, server, OTHER_SETTINGS[server.start % len(OTHER_SETTINGS)])

    with Simulation(seed) as simulation:
        return Restarted(simulation, run).run(kills=3)


@pytest.mark.slow
def test_an_undisturbed_run_computes_what_the_statements_say() -> None:
    first, _, resumed, replaced, last = undisturbed()
    amounts = [row["amount"] for row in orders(0, 8)]
    assert len(first["LARGE"]) == sum(int(str(each)) > 50 for each in amounts)
    assert len(first["BY_CUSTOMER"]) == len(first["WITH_CITY"]) == 8
    assert len(first["TOTALS"]) == 2  # no square has a remainder of two
    assert len(resumed["BY_CUSTOMER"]) == 14
    assert len(replaced["BY_CUSTOMER"]) == 20
    assert len(last["BY_CUSTOMER"]) == 24


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.long) for n in range(6, 20))]
)
def test_results_are_the_same_with_kills_and_other_settings(seed: int) -> None:
    disturbed(seed)


@pytest.mark.slow
def test_one_seed_is_one_history() -> None:
    assert disturbed(1) == disturbed(1)
    assert disturbed(1) != disturbed(2)
