"""A server that is killed in the middle of statements: each of them was carried out, or was not."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from tests.sql.crash.harness import BROKER_SETTINGS, Server
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import wait_until
from tests.support.sql_server import PATIENCE_S

pytestmark = pytest.mark.slow

MOMENT_S_MAX = 0.4  # about as long as a statement takes
ROUNDS = 8
ROWS = [(f"k{number % 5}", number) for number in range(20)]
SOURCE = (
    "CREATE STREAM IF NOT EXISTS source (k STRING KEY, n INT) "
    "WITH (kafka_topic='source', value_format='JSON', partitions=2);"
)


@dataclass(slots=True)
class Known:
    """What must be in the catalog, as far as responses reported it."""

    names: set[str] = field(default_factory=lambda: {"SOURCE"})
    ids: dict[str, str] = field(default_factory=dict)

    def check(self, server: Server) -> None:
        """Nothing that was answered is gone, or has come back, or has another id."""
        catalog = server.catalog()
        names = {each[1] for each in catalog if each[0] in ("STREAM", "TABLE")}
        ids = {each[3]: each[1] for each in catalog if each[0] == "PERSISTENT"}
        assert (names, ids) == (self.names, self.ids)


def statements() -> Iterator[str]:
    """Streams, tables and queries come, some go again; each may be sent twice."""
    for number in range(ROUNDS):
        yield (
            f"CREATE STREAM IF NOT EXISTS other_{number} (k STRING KEY) "
            f"WITH (kafka_topic='other-{number}', value_format='JSON', partitions=1);"
        )
        yield f"CREATE STREAM IF NOT EXISTS copy_{number} AS SELECT * FROM source;"
        yield (
            f"CREATE TABLE IF NOT EXISTS sums_{number} AS "
            "SELECT k, SUM(n) AS total FROM source GROUP BY k;"
        )
        yield f"DROP STREAM IF EXISTS other_{number} DELETE TOPIC;"
        if number % 2:
            yield f"DROP TABLE IF EXISTS sums_{number} DELETE TOPIC;"


def note(statement: str, known: Known, server: Server) -> None:
    """What a statement that was answered has done."""
    words = statement.upper().split()
    name = words[5 if words[0] == "CREATE" else 4].rstrip(";")
    if words[0] == "DROP":
        known.names.discard(name)
        known.ids.pop(name, None)
        return
    known.names.add(name)
    for each in server.catalog():
        if each[0] == "PERSISTENT" and each[3] == name:
            # An id that was reported is never another one later.
            assert known.ids.setdefault(name, each[1]) == each[1]


def kill_among_statements(folder: Path, *, seed: int, kills: int) -> None:
    """Send statements one by one, and kill the server in the middle of some."""
    random = Random(seed)
    every = [SOURCE, *statements()]
    fatal = set(random.sample(range(len(every)), kills))
    known = Known()
    with (
        MillstreamBroker(folder / "broker", settings=BROKER_SETTINGS) as broker,
        Server(folder / "server", broker.bootstrap) as server,
        ThreadPoolExecutor(1) as sending,
    ):
        for number, statement in enumerate(every):
            server.wait_serving()
            sent = sending.submit(server.ask, statement)
            if number in fatal:
                wait([sent], timeout=random.uniform(0, MOMENT_S_MAX))
                server.kill()
                sent.exception()  # refused, broken off, or answered in time
                server.start()
                # As a client does that was not answered: it sends the statement again.
                server.ask(statement)
            else:
                sent.result()
            note(statement, known, server)
            if number in fatal:
                known.check(server)
        known.check(server)
        check_queries(server)


def check_queries(server: Server) -> None:
    """All that is left works."""
    for key, number in ROWS:
        server.ask(f"INSERT INTO source VALUES ('{key}', {number});")
    copies: list[list[object]] = [[key, number] for key, number in ROWS]
    sums = {key: sum(n for each, n in ROWS if each == key) for key, _ in ROWS}
    expected = {f"copy_{number}": copies for number in range(ROUNDS)}
    for number in range(0, ROUNDS, 2):
        expected[f"sums_{number}"] = [[key, total] for key, total in sums.items()]

    def wrong() -> dict[str, list[list[object]]]:
        found = {name: server.pull(name) for name in expected}
        return {n: rows for n, rows in found.items() if sorted(rows) != sorted(expected[n])}

    wait_until(lambda: not wrong(), "what the queries make", timeout_s=PATIENCE_S)


@pytest.mark.timeout(600)
def test_statements_are_whole_after_three_kills(tmp_path: Path) -> None:
    kill_among_statements(tmp_path, seed=1, kills=3)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [2, 3])
def test_statements_are_whole_after_twenty_kills(tmp_path: Path, seed: int) -> None:
    kill_among_statements(tmp_path, seed=seed, kills=20)
