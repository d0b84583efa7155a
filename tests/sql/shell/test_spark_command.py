"""`millstream sql --engine spark -f FILE` as a user has it: killed, started again, interrupted."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from broker.broker import Broker
from broker.client import producer
from sql.engine.engine import Engine
from sql.engine.topic_rows import records_to_end
from tests.support.peer import REPOSITORY, skip_without_peer, wait_until
from tests.support.spark import MARKS, missing

pytestmark = [*MARKS, pytest.mark.long]

ORDERS = 6_000
LIMIT_S = 900.0
SOURCE = (
    "CREATE STREAM IF NOT EXISTS orders (id INT KEY, amount INT, shop STRING) "
    "WITH (kafka_topic='orders', value_format='JSON', partitions=2);\n"
)
JOB = SOURCE + (
    "CREATE STREAM IF NOT EXISTS copied AS SELECT id, amount + 1 AS more FROM orders;\n"
    "CREATE TABLE IF NOT EXISTS totals AS "
    "SELECT shop, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY shop;\n"
)


class Job:
    """The command, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "job.sql"
        self.file.write_text(JOB)

    def start(self, *options: str) -> "subprocess.Popen[bytes]":
        """Run it; what it says on standard error is in a file."""
        command = [sys.executable, "-m", "millstream", "sql", "--engine", "spark"]
        command += ["--spark-master", "local[2]", "-s", "auto.offset.reset=earliest"]
        command += ["-s", "spark.max.offsets.per.trigger=1000", "-f", str(self.file), *options]
        with (self.folder / "said").open("wb") as said:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                stdout=subprocess.DEVNULL,
                stderr=said,
            )

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text()

    def run(self, *options: str) -> int:
        return self.start(*options).wait(LIMIT_S)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    why = missing()
    if why is not None:
        skip_without_peer(why)
    data = tmp_path / "millstream-data"
    with Broker(data_directory=str(data)) as broker:
        with Engine(broker, data_directory=data / "sql") as engine:
            engine.execute(SOURCE)
        with producer(broker) as out:
            for number in range(ORDERS):
                value = json.dumps({"amount": number, "shop": f"s{number % 7}"})
                out.send("orders", value.encode(), key=number.to_bytes(4, "big"))
            out.flush()
    return Job(tmp_path)


def records(folder: Path, topic: str) -> list[tuple[bytes | None, dict[str, int]]]:
    """The committed records of a topic."""
    with Broker(data_directory=str(folder / "millstream-data")) as broker:
        found = records_to_end(broker, topic)
        return [(each.key, json.loads(each.value or b"{}")) for each in found]


def test_a_job_that_is_killed_and_interrupted_ends_with_everything_once(job: Job) -> None:
    killed = job.start()
    wait_until(lambda: ": batch " in job.said, "the first batches", timeout_s=LIMIT_S)
    killed.kill()
    killed.wait()

    interrupted = job.start()
    wait_until(
        lambda: ": batch " in job.said or interrupted.poll() is not None,
        "batches after the kill",
        timeout_s=LIMIT_S,
    )
    interrupted.send_signal(signal.SIGINT)
    assert interrupted.wait(LIMIT_S) == 0, job.said
    assert job.said.endswith("stopping\n"), job.said

    assert job.run("--bounded") == 0, job.said
    copied = records(job.folder, "COPIED")
    assert Counter(key for key, _ in copied) == Counter(
        number.to_bytes(4, "big") for number in range(ORDERS)
    )
    totals = dict(records(job.folder, "TOTALS"))
    for shop in range(7):
        amounts = range(shop, ORDERS, 7)
        assert totals[f"s{shop}".encode()] == {"N": len(amounts), "S": sum(amounts)}
    assert len(records(job.folder, "TOTALS")) == ORDERS  # each change once

    assert job.run("--bounded") == 0, job.said
    assert job.said == "there were no new records\n"
    assert len(records(job.folder, "COPIED")) == ORDERS


def test_a_wrong_master_is_reported_in_a_few_lines(job: Job) -> None:
    assert job.run("--bounded", "--spark-master", "nonsense") == 1
    assert 'cannot start Spark on "nonsense"' in job.said
    assert len(job.said.splitlines()) < 10, job.said
