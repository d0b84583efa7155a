"""Fifty queries under exactly-once go on where they were when their server is killed."""

import time
from pathlib import Path
from random import Random

import pytest

from tests.sql.crash.harness import BROKER_SETTINGS, Results, Server, Writer, read_orders
from tests.sql.crash.ledger import SOURCES, Key, Order, Query, Row, difference, make_orders, queries
from tests.support.millstream_broker import MillstreamBroker

pytestmark = pytest.mark.slow

ORDER_PAUSE_S = 0.02
RESULTS_BEFORE_KILL_MAX = 500  # each order makes about five
ORDERS_BEFORE_KILL_MAX = 150  # about as long as a server takes to start
BROKER_DIES_TOO = 0.3  # how often


def check_results(results: Results, orders: list[Order], every: list[Query]) -> None:
    """Each topic has exactly what its query must have written."""
    wrong = [difference(query, query.expected(orders), results.rows[query.name]) for query in every]
    assert [each for each in wrong if each is not None] == []


def check_tables(server: Server, orders: list[Order], every: list[Query]) -> None:
    """Pull queries answer the final state of each table."""
    for query in every:
        if query.is_table:
            expected = {key: rows[-1] for key, rows in query.expected(orders).items()}
            assert pulled(server, query) == expected, query.name


def pulled(server: Server, query: Query) -> dict[Key, Row]:
    """All rows of a table."""
    found: dict[Key, Row] = {}
    for key, *window, n, total in server.pull(query.name):
        found[(key, window[0]) if window else key] = {"N": n, "TOTAL": total}
    return found


def kill_and_check(folder: Path, *, seed: int, kills: int) -> None:
    """Kill the server, at times the broker with it, and compare everything at the end."""
    random = Random(seed)
    every = queries()
    with (
        MillstreamBroker(folder / "broker", settings=BROKER_SETTINGS) as broker,
        Server(folder / "server", broker.bootstrap) as server,
    ):
        server.ask(SOURCES)
        orders = make_orders(Random(seed), int(time.time() * 1000))
        writer = Writer(broker.bootstrap, orders, ORDER_PAUSE_S)
        writer.write_customers()
        server.ask("".join(each.statement for each in every))
        catalog = server.catalog()
        results = Results(broker.bootstrap, every)
        writer.start()
        for number in range(kills):
            # Either while results come, or anywhere in the start of the server.
            if number % 2 == 0:
                assert server.catalog() == catalog
                writer.allow(RESULTS_BEFORE_KILL_MAX // 4)
                some = random.randrange(1, RESULTS_BEFORE_KILL_MAX)
                results.read_until(results.count + some, server.check_alive)
            writer.allow(ORDERS_BEFORE_KILL_MAX)
            writer.wait_more(random.randrange(1, ORDERS_BEFORE_KILL_MAX))
            server.kill()
            if random.random() < BROKER_DIES_TOO:
                broker.kill()
                broker.start()
            server.start()
        writer.stop()
        assert server.catalog() == catalog
        server.wait_running(len(every))
        check_everything(broker, server, results, every)
    print(f"seed {seed}, {kills} kills: {writer.count} orders, {results.count} results")  # noqa: T201


def check_everything(
    broker: MillstreamBroker, server: Server, results: Results, every: list[Query]
) -> None:
    """Wait for all that must come, and compare; then look whether there is more."""
    orders = read_orders(broker.bootstrap)
    assert sorted(each.id for each in orders) == list(range(len(orders))), "the writer is to blame"
    expected = sum(len(rows) for each in every for rows in each.expected(orders).values())
    try:
        results.read_until(expected, server.check_alive)
    except TimeoutError:
        check_results(results, orders, every)
        raise
    check_tables(server, orders, every)
    server.stop()
    results.read_to_the_end()
    check_results(results, orders, every)
    results.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [2, pytest.param(3, marks=pytest.mark.long)])
def test_results_are_exact_after_some_kills(tmp_path: Path, kills: int) -> None:
    kill_and_check(tmp_path, seed=1, kills=kills)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [2, 3])
def test_results_are_exact_after_twenty_kills(tmp_path: Path, seed: int) -> None:
    kill_and_check(tmp_path, seed=seed, kills=20)
