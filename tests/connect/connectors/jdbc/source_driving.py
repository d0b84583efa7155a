"""A JDBC source task that a test drives by hand: started, polled, and started again."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from connect.connectors.jdbc.source_task import TABLES, JdbcSourceTask
from connect.connectors.jdbc.tables import TableName, list_tables
from connect.data import Struct
from connect.records import SourceRecord
from tests.connect.connectors.contexts import HandSourceContext
from tests.connect.connectors.jdbc.databases import SomeDatabase

Offsets = dict[tuple[tuple[str, object], ...], Mapping[str, object]]
POLLS_MAX = 500


def table_name(database: SomeDatabase, table: str) -> TableName:
    """A table as the connector names it to its tasks."""
    parts = database.full_name(table).rpartition(table)[0].split(".")
    match database.kind:
        case "postgres":
            return TableName(parts[0], parts[1], table)
        case "mariadb":
            return TableName(parts[0], None, table)
        case _:
            return TableName(None, None, table)


class DrivenSource:
    """Keeps offsets as a worker does, and what was read since the last look."""

    def __init__(self, database: SomeDatabase, *tables: str, **settings: str) -> None:
        """Settings have underscores for their dots."""
        self.database = database
        self.offsets: Offsets = {}
        self.config = {
            **database.settings,
            "topic.prefix": "db-",
            "poll.interval.ms": "0",
            TABLES: list_tables([table_name(database, table) for table in tables]),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }

    @contextmanager
    def running(self) -> Iterator[JdbcSourceTask]:
        """A started task, stopped at the end."""
        task = JdbcSourceTask()
        task.context = HandSourceContext(*((dict(key), dict(o)) for key, o in self.offsets.items()))
        task.start(self.config)
        try:
            yield task
        finally:
            task.stop()

    def take(self, task: JdbcSourceTask, *, empty_polls: int = 1) -> list[SourceRecord]:
        """Polls until there is nothing new; offsets are stored."""
        found: list[SourceRecord] = []
        for _ in range(POLLS_MAX):
            records = task.poll()
            if not records:
                empty_polls -= 1
                if empty_polls <= 0:
                    return found
                continue
            for record in records:
                self.store(record)
            found += records
        raise AssertionError("the source never came to an end")

    def store(self, record: SourceRecord) -> None:
        """Keeps the offset of a record."""
        if record.source_offset:
            key = tuple(sorted(record.source_partition.items()))
            self.offsets[key] = record.source_offset

    def read(self) -> list[SourceRecord]:
        """Starts a task, takes everything and stops it."""
        with self.running() as task:
            return self.take(task)


def values(records: list[SourceRecord]) -> list[dict[str, object]]:
    """The records' values as dicts."""
    found = []
    for record in records:
        assert isinstance(record.value, Struct)
        record.value.validate()
        found.append(record.value.to_dict())
    return found


def column(records: list[SourceRecord], name: str) -> list[object]:
    """One field of every record."""
    return [value[name] for value in values(records)]
