"""Hand-written loops with a driver and a Kafka client, to compare connectors with.

Each loop copies the same records or rows as its connector.
"""

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import orjson

from benchmarks.connect.orders import COLUMNS, Database
from broker.client import consumer, producer
from broker.model import TopicPartition

FETCHED_ROWS = 2000
WRITTEN_ROWS = 3000
# The number of files, all of the same size: 10,000 rows, the connectors' default.
FILES = 10


def table_to_topic(bootstrap: str, database: Database, topic: str) -> float:
    """Copy rows of a table as JSON; return the seconds until all are acknowledged."""
    started = time.perf_counter()
    cursor = database.execute("SELECT * FROM orders WHERE id > -1 ORDER BY id")
    names = [column[0] for column in cursor.description]
    created, paid = names.index("created"), names.index("paid")
    with producer(bootstrap, acks="all") as out:
        while rows := cursor.fetchmany(FETCHED_ROWS):
            for row in rows:
                values = dict(zip(names, row, strict=True))
                moment = row[created]
                if isinstance(moment, str):
                    moment = datetime.fromisoformat(moment)
                values["created"] = int(moment.replace(tzinfo=UTC).timestamp() * 1000)
                values["paid"] = bool(row[paid])
                out.send(topic, orjson.dumps(values))
        out.flush()
    database.connection.rollback()
    return time.perf_counter() - started


def topic_to_table(bootstrap: str, topic: str, database: Database, count: int) -> float:
    """Upsert JSON with schemas into a table; return the seconds."""
    placeholders = ", ".join(database.placeholder for _ in COLUMNS)
    statement = f"INSERT INTO copied VALUES ({placeholders}) " + _on_conflict_update(database.name)
    cursor = database.connection.cursor()
    has_text_dates = database.name == "SQLite"
    started = time.perf_counter()
    with consumer(bootstrap, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(topic, 0)])
        written = 0
        while written < count:
            rows = []
            for record in reader.poll(timeout_ms=1000, max_records=WRITTEN_ROWS):
                assert record.value is not None
                payload = orjson.loads(record.value)["payload"]
                moment = datetime.fromtimestamp(payload["created"] / 1000, UTC).replace(tzinfo=None)
                payload["created"] = str(moment) if has_text_dates else moment
                rows.append([payload[name] for name in COLUMNS])
            if rows:
                cursor.executemany(statement, rows)
                database.connection.commit()
            written += len(rows)
    return time.perf_counter() - started


def _on_conflict_update(name: str) -> str:
    others = COLUMNS[1:]
    if name == "MariaDB":
        return "ON DUPLICATE KEY UPDATE " + ", ".join(f"{each} = VALUES({each})" for each in others)
    changes = ", ".join(f"{each} = excluded.{each}" for each in others)
    return f"ON CONFLICT (id) DO UPDATE SET {changes}"


def file_to_topic(bootstrap: str, file: Path, topic: str) -> float:
    """Copy lines of a file; return the seconds until all are acknowledged."""
    started = time.perf_counter()
    with producer(bootstrap, acks="all") as out, open(file, "rb") as lines:
        for line in lines:
            out.send(topic, line.rstrip(b"\n"))
        out.flush()
    return time.perf_counter() - started


def topic_to_file(bootstrap: str, topic: str, file: Path, count: int) -> float:
    """Write values as lines of a file; return the seconds."""
    started = time.perf_counter()
    with open(file, "wb") as lines:
        for values in _polled_values(bootstrap, topic, count):
            for value in values:
                lines.write(value + b"\n")
            lines.flush()
    return time.perf_counter() - started


WriteRows = Callable[[Path, list[dict[str, object]]], None]


def topic_to_files(
    bootstrap: str, topic: str, write: WriteRows, directory: Path, rows: int
) -> float:
    """Write JSON with schemas to files of `rows` rows, with fsync; return the seconds."""
    waiting: list[dict[str, object]] = []
    written = 0
    started = time.perf_counter()
    for values in _polled_values(bootstrap, topic, rows * FILES):
        waiting += [orjson.loads(value)["payload"] for value in values]
        while len(waiting) >= rows:
            file = directory / f"{written}.part"
            write(file, waiting[:rows])
            with open(file, "rb") as whole:
                os.fsync(whole.fileno())
            file.rename(directory / str(written))
            waiting = waiting[rows:]
            written += rows
    return time.perf_counter() - started


def write_json(file: Path, rows: list[dict[str, object]]) -> None:
    """Write one JSON object per line."""
    with open(file, "wb") as lines:
        lines.writelines([orjson.dumps(row) + b"\n" for row in rows])


def write_parquet(file: Path, rows: list[dict[str, object]]) -> None:
    """Write columns with the compression that the connector uses."""
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema(
        [
            pyarrow.field("id", pyarrow.int64(), nullable=False),
            pyarrow.field("customer", pyarrow.int32(), nullable=False),
            pyarrow.field("name", pyarrow.string()),
            pyarrow.field("price", pyarrow.float64(), nullable=False),
            pyarrow.field("quantity", pyarrow.int32(), nullable=False),
            pyarrow.field("paid", pyarrow.bool_(), nullable=False),
            pyarrow.field("created", pyarrow.timestamp("ms", tz="UTC"), nullable=False),
            pyarrow.field("note", pyarrow.string()),
        ]
    )
    parquet.write_table(pyarrow.Table.from_pylist(rows, schema), file, compression="snappy")


def _polled_values(bootstrap: str, topic: str, count: int) -> Iterator[list[bytes]]:
    """Poll `count` records; yield the values of each poll."""
    with consumer(bootstrap, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(topic, 0)])
        read = 0
        while read < count:
            records = reader.poll(timeout_ms=1000, max_records=WRITTEN_ROWS)
            yield [record.value for record in records if record.value is not None]
            read += len(records)
