"""A server with its broker in the same process: a kill takes both, and both come back."""

from collections import Counter
from pathlib import Path
from random import Random

import httpx
import orjson
import pytest

from tests.sql.crash.harness import SETTINGS
from tests.support.peer import wait_until
from tests.support.sql_server import PATIENCE_S, SqlServerProcess

pytestmark = pytest.mark.slow

STATEMENTS = """
CREATE STREAM source (k STRING KEY, n INT)
    WITH (kafka_topic='source', value_format='JSON', partitions=2);
CREATE STREAM copies AS SELECT * FROM source;
CREATE TABLE sums AS SELECT k, COUNT(*) AS c, SUM(n) AS total FROM source GROUP BY k;
CREATE TABLE parities AS SELECT n % 2 AS parity, COUNT(*) AS c FROM source GROUP BY n % 2;
"""
ROWS_PER_KILL = 40
# The least that a broker at its defaults takes.
SESSION = {"ksql.streams.session.timeout.ms": "6000"}


def insert_until_killed(server: SqlServerProcess, numbers: range, fatal: int) -> list[int]:
    """Write rows in one request, kill the server after some are acknowledged: which ones were."""
    acknowledged: list[int] = []

    def lines() -> list[bytes]:
        rows = ({"K": f"k{number % 7}", "N": number} for number in numbers)
        return [orjson.dumps(each) + b"\n" for each in ({"target": "source"}, *rows)]

    try:
        with httpx.stream(
            "POST",
            f"{server.wait_serving()}/inserts-stream",
            content=b"".join(lines()),
            timeout=PATIENCE_S,
        ) as response:
            for line in response.iter_lines():
                answer = orjson.loads(line)
                assert answer["status"] == "ok", answer
                acknowledged.append(numbers[answer["seq"]])
                if len(acknowledged) == fatal:
                    server.kill()
    except httpx.TransportError:
        assert len(acknowledged) >= fatal, "broken off too early"
    return acknowledged


def rows_of(server: SqlServerProcess, name: str) -> list[tuple[object, ...]]:
    parts = server.ask(f"SELECT * FROM {name};", "/query")
    return [tuple(part["row"]["columns"]) for part in parts if "row" in part]


def kill_and_check(folder: Path, *, seed: int, kills: int) -> None:
    """Whatever the source has in the end, the queries have made exactly what follows from it."""
    random = Random(seed)
    acknowledged: list[int] = []
    with SqlServerProcess(folder, settings=SETTINGS | SESSION) as server:
        server.ask(STATEMENTS)
        for kill in range(kills):
            numbers = range(kill * ROWS_PER_KILL, (kill + 1) * ROWS_PER_KILL)
            fatal = random.randrange(1, ROWS_PER_KILL)
            acknowledged += insert_until_killed(server, numbers, fatal)
            server.start()
        source = rows_of(server, "source")
        numbers_found = Counter(number for _, number in source)
        assert set(acknowledged) <= set(numbers_found), "an acknowledged row is lost"
        assert set(numbers_found.values()) == {1}, "a row is there twice"
        wait_until(
            lambda: sorted(rows_of(server, "copies")) == sorted(source),
            "exactly the copies",
            timeout_s=PATIENCE_S,
        )
        sums: dict[object, tuple[int, int]] = {}
        for key, number in source:
            count, total = sums.get(key, (0, 0))
            sums[key] = (count + 1, total + int(str(number)))
        wait_until(
            lambda: {key: (c, total) for key, c, total in rows_of(server, "sums")} == sums,
            "exactly the sums",
            timeout_s=PATIENCE_S,
        )
        parities = Counter(int(str(number)) % 2 for _, number in source)
        wait_until(
            lambda: sorted(rows_of(server, "parities")) == sorted(parities.items()),
            "exactly the parities",
            timeout_s=PATIENCE_S,
        )


@pytest.mark.timeout(600)
def test_rows_are_exact_after_three_kills(tmp_path: Path) -> None:
    kill_and_check(tmp_path, seed=1, kills=3)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_rows_are_exact_after_twenty_kills(tmp_path: Path) -> None:
    kill_and_check(tmp_path, seed=2, kills=20)
