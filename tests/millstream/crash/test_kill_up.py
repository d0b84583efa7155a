"""`millstream up` is killed at random, start-up included; offline everything is there once."""

import time
from collections import defaultdict
from pathlib import Path
from random import Random

import orjson
import pytest

from broker import Broker
from tests.millstream.crash.up_process import UpProcess
from tests.millstream.crash.workload import (
    GENERATED,
    SETTINGS,
    LinesFile,
    copied_balances,
    ledger_queries,
    offline,
    read_values,
    start_workload,
)
from tests.sql.crash.harness import Results, Writer, read_orders
from tests.sql.crash.ledger import Order, difference, make_orders
from tests.support.peer import wait_until
from tests.support.sql_server import PATIENCE_S

pytestmark = pytest.mark.slow

ORDER_PAUSE_S = 0.02
START_SECONDS = 4.0  # longer than a start takes on a quiet machine
ORDERS_PER_ROUND = 100
LINES_PER_ROUND = 50


def kill_and_compare(folder: Path, *, seed: int, kills: int) -> None:
    """Kill the platform at random, let it come to rest, stop it, and compare its files."""
    random = Random(seed)
    up = UpProcess(folder, SETTINGS)
    lines = LinesFile(folder / "lines.txt")
    try:
        up.start()
        up.wait_ready()
        connectors = start_workload(up)
        writer = Writer(up.bootstrap, make_orders(random, int(time.time() * 1000)), ORDER_PAUSE_S)
        writer.write_customers()
        writer.start()
        for number in range(kills):
            lines.append(LINES_PER_ROUND)
            if number % 2 == 0:
                up.wait_ready()
            writer.allow(ORDERS_PER_ROUND)
            if number % 2 == 0:
                writer.wait_more(random.randrange(1, ORDERS_PER_ROUND // 2))
            up.run_for(random.uniform(0.0, START_SECONDS))
            up.kill()
            up.start()
        up.wait_ready()
        writer.stop()
        orders = read_orders(up.bootstrap)
        wait_at_rest(up, orders, lines, connectors)
        up.stop()
        compare(up, orders, lines, written=writer.count)
    except BaseException as error:
        error.add_note(up.tail())
        raise
    finally:
        up.discard()
    print(f"seed {seed}, {kills} kills: {writer.count} orders, {lines.count} lines")  # noqa: T201


def balances_of(orders: list[Order]) -> dict[str, tuple[int, int]]:
    """Count and total by customer."""
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for each in orders:
        count, total = found[each.customer]
        found[each.customer] = (count + 1, total + each.amount)
    return dict(found)


def wait_at_rest(
    up: UpProcess, orders: list[Order], lines: LinesFile, connectors: list[str]
) -> None:
    """Until every output has what it must have; what is too much is seen offline."""
    every = ledger_queries()
    wanted = sum(len(rows) for each in every for rows in each.expected(orders).values())
    results = Results(up.bootstrap, every)

    def check() -> None:
        up.check_alive()
        assert up.connector_failures(connectors) == []

    results.read_until(wanted, check)
    results.close()

    def copied() -> bool:
        check()
        return (
            len({*(up.folder / "copy.txt").read_text().splitlines()}) >= lines.count
            and copied_balances(up.folder) == balances_of(orders)
            and counted(up.bootstrap) >= GENERATED
        )

    wait_until(copied, "copies of everything", timeout_s=PATIENCE_S)


def counted(target: Broker | str) -> int:
    """How many updates the count of generated records has emitted: one for each record."""
    return len(read_values(target, "COUNTED"))


def compare(up: UpProcess, orders: list[Order], lines: LinesFile, *, written: int) -> None:
    """Every record is there exactly once, in order, in every topic and copy."""
    every = ledger_queries()
    assert sorted(each.id for each in orders) == list(range(written))
    expected_lines = [f"line {number}" for number in range(lines.count)]
    with offline(up) as broker:
        assert [value.decode() for value in read_values(broker, "lines")] == expected_lines
        generated = [orjson.loads(value) for value in read_values(broker, "generated")]
        assert [each["id"] for each in generated] == list(range(GENERATED))
        assert counted(broker) == GENERATED
        results = Results(broker, every)
        results.read_to_the_end()
        results.close()
        wrong = [difference(each, each.expected(orders), results.rows[each.name]) for each in every]
        assert [each for each in wrong if each is not None] == []
    # A file sink is at-least-once: lines may repeat after a kill, none may be missing or torn.
    assert {*(up.folder / "copy.txt").read_text().splitlines()} >= {*expected_lines}
    assert copied_balances(up.folder) == balances_of(orders)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [2, pytest.param(4, marks=pytest.mark.long)])
def test_nothing_is_lost_or_doubled_after_some_kills(tmp_path: Path, kills: int) -> None:
    kill_and_compare(tmp_path, seed=1, kills=kills)


@pytest.mark.long
@pytest.mark.timeout(5400)
def test_nothing_is_lost_or_doubled_after_fifty_kills(tmp_path: Path) -> None:
    kill_and_compare(tmp_path, seed=2, kills=50)
