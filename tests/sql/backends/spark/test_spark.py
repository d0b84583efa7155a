"""The "millstream" source and sink in Spark itself, one session for all tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Spark's rows, frames and sessions are Any: PySpark need not be there.
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark's own tests: install pyspark, pandas<3 and pyarrow")

from pyspark.errors import StreamingQueryException
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import to_arrow_schema

from broker.client import admin
from broker.model import TopicPartition
from sql.backends.spark.records import ARROW_SCHEMA, PLAIN_ARROW_SCHEMA
from tests.sql.backends.spark.cluster import create, drop_before, fill, fill_and_abort, numbers_in
from tests.sql.backends.spark.query import sink, source
from tests.support.peer import REPOSITORY, wait_until
from tests.support.spark import MARKS, shared_session

pytestmark = MARKS

RECORDS = 20_000


@pytest.fixture(scope="module")
def spark() -> Any:
    """A session whose workers find our modules."""
    return shared_session()


def bounded(spark: Any, servers: str, **options: str) -> Any:
    """All records that are there."""
    reader = spark.read.format("millstream").option("bootstrap_servers", servers)
    return reader.options(**options).load()


def numbers(frame: Any) -> list[int]:
    """The values of a frame as numbers, in order."""
    return sorted(int(row.value) for row in frame.select("value").collect())


def test_the_columns_are_those_that_spark_expects(spark: Any, servers: str) -> None:
    create(servers, "shape")
    whole = bounded(spark, servers, topics="shape")
    assert to_arrow_schema(whole.schema, timezone="UTC").equals(ARROW_SCHEMA)
    plain = bounded(spark, servers, topics="shape", include_headers="false")
    assert to_arrow_schema(plain.schema, timezone="UTC").equals(PLAIN_ARROW_SCHEMA)


def test_a_stream_goes_on_from_its_checkpoint_in_limited_batches(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    create(servers, "numbers", 4)
    create(servers, "copied", 3)
    fill(servers, "numbers", range(RECORDS))

    def run() -> list[int]:
        stream = source(
            spark, servers, "numbers", max_offsets_per_trigger="8000", group_id="copiers"
        )
        columns = stream.select("key", "value", "timestamp", "headers")
        query = sink(columns, servers, "copied", str(tmp_path / "checkpoint"))
        query.awaitTermination()
        return [each.numInputRows for each in query.recentProgress if each.numInputRows]

    assert run() == [8_000, 8_000, 4_000]
    assert numbers_in(servers, "copied") == list(range(RECORDS))
    with admin(servers) as administration:
        administration.create_partitions({"numbers": 5}).all()
    fill(servers, "numbers", range(RECORDS, RECORDS + 100), partition=4)
    assert run() == [100]
    assert numbers_in(servers, "copied") == list(range(RECORDS + 100))
    with admin(servers) as administration:
        seen = administration.list_group_offsets("copiers").all()
    assert sum(at.offset for at in seen.values()) == RECORDS + 100


def test_a_bounded_read_by_time_and_by_offset_leaves_out_what_was_aborted(
    spark: Any, servers: str
) -> None:
    create(servers, "timed", 1)
    fill(servers, "timed", range(20))
    fill_and_abort(servers, "timed", range(5), partition=0)
    assert numbers(bounded(spark, servers, topics="timed")) == list(range(20))
    late = bounded(spark, servers, topics="timed", starting_timestamp="1015")
    assert numbers(late) == list(range(15, 20))
    middle = bounded(
        spark,
        servers,
        topic_pattern="time.",
        starting_offsets='{"timed": {"0": 3}}',
        ending_offsets='{"timed": {"0": 6}}',
        min_partitions="3",
    )
    assert numbers(middle) == [3, 4, 5]


def test_a_bounded_result_is_written_with_its_headers(spark: Any, servers: str) -> None:
    create(servers, "result", 2)
    frame = spark.sql(
        "select 'k' as key, '7' as value, timestamp_millis(5) as timestamp, "
        "array(named_struct('name', 'h', 'value', cast('1' as binary))) as headers"
    )
    frame.write.format("millstream").mode("append").options(
        bootstrap_servers=servers, topic="result"
    ).save()
    (row,) = bounded(spark, servers, topics="result").collect()
    assert (bytes(row.key), bytes(row.value), row.timestamp) == (b"k", b"7", 5)
    assert [(each.name, bytes(each.value)) for each in row.headers] == [("h", b"1")]


@pytest.mark.long  # test_reading.py reads what is gone without Spark
def test_records_that_are_gone_stop_a_query_or_are_left_out(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    create(servers, "short", 1)
    create(servers, "short-copy", 1)
    fill(servers, "short", range(5))
    where = str(tmp_path / "checkpoint")

    def run(**options: str) -> None:
        stream = source(spark, servers, "short", **options)
        sink(stream.select("value"), servers, "short-copy", where).awaitTermination()

    run()
    fill(servers, "short", range(5, 10))
    drop_before(servers, {TopicPartition("short", 0): 7})
    with pytest.raises(StreamingQueryException, match="short-0: offsets 5 to 6"):
        run()
    run(fail_on_data_loss="false")
    assert numbers_in(servers, "short-copy") == [0, 1, 2, 3, 4, 7, 8, 9]


def test_a_task_that_fails_in_the_middle_writes_once(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    create(servers, "failing", 2)
    create(servers, "failing-copy", 2)
    fill(servers, "failing", range(3_000))
    failed = tmp_path / "failed"

    def fail_once(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches
        if not failed.exists():
            failed.touch()
            raise ValueError("as if the worker had met its end")

    stream = source(spark, servers, "failing").select(col("key"), col("value"))
    broken = stream.mapInArrow(fail_once, "key binary, value binary")
    query = sink(broken, servers, "failing-copy", str(tmp_path / "checkpoint"))
    query.awaitTermination()
    assert failed.exists()
    assert numbers_in(servers, "failing-copy") == list(range(3_000))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["offset", "value"], 'a record has no column "offset"'),
        pytest.param(["key"], 'no column "value"', marks=pytest.mark.long),
    ],
)
def test_columns_that_are_no_record_are_refused(
    spark: Any, servers: str, tmp_path: Path, columns: list[str], message: str
) -> None:
    create(servers, f"wrong-{columns[0]}", 1)
    fill(servers, f"wrong-{columns[0]}", range(1))
    stream = source(spark, servers, f"wrong-{columns[0]}").select(*columns)
    with pytest.raises(Exception, match=message):
        sink(stream, servers, "wrong", str(tmp_path / "checkpoint")).awaitTermination()


@pytest.mark.long
def test_a_query_killed_three_times_writes_everything_once(servers: str, tmp_path: Path) -> None:
    create(servers, "in", 4)
    create(servers, "out", 2)
    fill(servers, "in", range(RECORDS))
    command = [sys.executable, "-m", "tests.sql.backends.spark.query", servers]
    command += [str(tmp_path / "checkpoint"), "1000"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(REPOSITORY)}

    def start() -> "subprocess.Popen[bytes]":
        return subprocess.Popen(command, cwd=REPOSITORY, env=environment, start_new_session=True)

    for kill in range(3):
        process = start()
        reached = len(numbers_in(servers, "out"))
        wait_until(
            lambda before=reached: len(numbers_in(servers, "out")) > before,  # type: ignore[misc]
            f"output before kill {kill}",
            timeout_s=600,
        )
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert start().wait(timeout=900) == 0
    assert numbers_in(servers, "out") == list(range(RECORDS))


def forget_last_commit(checkpoint: Path) -> None:
    """As if the driver had died after the tasks of the only batch, before it said so."""
    for name in ("0", ".0.crc"):
        (checkpoint / "commits" / name).unlink()


def test_a_micro_batch_that_comes_again_in_other_tasks_is_written_once(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    create(servers, "repacked", 4)
    create(servers, "repacked-out", 1)
    for partition in range(4):
        fill(servers, "repacked", range(partition * 100, (partition + 1) * 100), partition)

    def run(tasks: str) -> None:
        stream = source(spark, servers, "repacked", tasks=tasks).select("key", "value")
        checkpoint = str(tmp_path / "checkpoint")
        sink(stream, servers, "repacked-out", checkpoint, sink_id="repacked").awaitTermination()

    run("1")
    forget_last_commit(tmp_path / "checkpoint")
    run("4")
    assert numbers_in(servers, "repacked-out") == list(range(400))


def test_rows_of_a_task_that_were_not_written_are_never_skipped(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    create(servers, "shifted", 2)
    create(servers, "shifted-out", 1)
    for partition in range(2):
        fill(servers, "shifted", range(partition * 100, (partition + 1) * 100), partition)

    def run(condition: str) -> None:
        stream = source(spark, servers, "shifted", tasks="1").select("key", "value")
        checkpoint = str(tmp_path / "checkpoint")
        chosen = stream.where(condition)
        sink(chosen, servers, "shifted-out", checkpoint, sink_id="shifted").awaitTermination()

    run("cast(cast(value as string) as int) < 100")
    forget_last_commit(tmp_path / "checkpoint")
    with pytest.raises(StreamingQueryException, match="wrote 100 rows before; now it has"):
        run("cast(cast(value as string) as int) >= 100")
    assert numbers_in(servers, "shifted-out") == list(range(100))
