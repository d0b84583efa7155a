"""A JDBC sink task that a test drives by hand."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from connect import data
from connect.connectors.jdbc.sink_task import JdbcSinkTask
from connect.data import ConnectSchema, Struct
from connect.records import SinkRecord
from tests.connect.connectors.contexts import HandSinkContext, ReportedRecords
from tests.connect.connectors.jdbc.databases import SomeDatabase

PERSON = data.struct(
    "person", {"id": data.INT32, "name": data.OPTIONAL_STRING, "age": data.OPTIONAL_INT32}
)


@contextmanager
def running_sink(
    database: SomeDatabase, reporter: ReportedRecords | None = None, /, **settings: str
) -> Iterator[JdbcSinkTask]:
    """A started task, stopped at the end; settings have underscores for their dots."""
    task = JdbcSinkTask()
    task.context = HandSinkContext(reporter)
    given = {name.replace("_", "."): value for name, value in settings.items()}
    task.start({**database.settings, "retry.backoff.ms": "1", **given})
    try:
        yield task
    finally:
        task.stop()


def put(database: SomeDatabase, *records: SinkRecord, **settings: str) -> None:
    """Puts records at once."""
    with running_sink(database, **settings) as task:
        task.put(records)


def refused(database: SomeDatabase, *records: SinkRecord, **settings: str) -> list[int]:
    """Puts records at once; the offsets of those that were reported."""
    reporter = ReportedRecords()
    with running_sink(database, reporter, **settings) as task:
        task.put(records)
    return [record.offset for record, _ in reporter.reported]


def row(
    values: Mapping[str, object] | None,
    *,
    schema: ConnectSchema = PERSON,
    key: object = None,
    offset: int = 0,
    topic: str = "people",
) -> SinkRecord:
    """A record; a key is a number or a struct, and without values it is a tombstone."""
    key_schema = key.schema if isinstance(key, Struct) else None if key is None else data.INT32
    value = None if values is None else Struct.from_dict(schema, values)
    return SinkRecord(topic, 0, key_schema, key, None if value is None else schema, value, offset)


def person(number: int, name: str | None, age: int | None = None, *, offset: int = 0) -> SinkRecord:
    """A record of a person, without a key."""
    return row({"id": number, "name": name, "age": age}, offset=offset)
