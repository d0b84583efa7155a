"""TableMonitor: a thread that watches the list of tables and reports changes."""

import logging
from collections.abc import Callable

from broker import concurrency
from connect.connectors.jdbc.database import Database
from connect.connectors.jdbc.source_config import TableChoice
from connect.connectors.jdbc.tables import TableName
from connect.errors import ConnectError, RetriableError

_log = logging.getLogger(__name__)


class TableMonitor:
    """Watches the list of tables that a connector copies."""

    def __init__(
        self,
        database: Database,
        choice: TableChoice,
        *,
        interval_ms: int,
        changed: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """`changed` is called when the list has changed, `failed` when it cannot be read.

        When the database becomes unavailable later, the monitor waits; the tasks fail if it stays
        unavailable. Any other error fails the connector: a monitor that ended unnoticed would miss
        all new tables.
        """
        self._database = database
        self._choice = choice
        self._interval_ms = interval_ms
        self._changed = changed
        self._failed = failed
        self._stopping = concurrency.Event()
        self._known = concurrency.Event()
        self._lock = concurrency.Lock()
        self._tables: list[TableName] = []
        self._was_returned = False  # written under the lock, like the tables
        self._thread = concurrency.Thread(target=self._run, name="jdbc-tables", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, unless the database blocks it."""
        self._stopping.set()
        self._thread.join(timeout=1.0)

    def tables(self, wait_s: float) -> list[TableName]:
        """The tables; empty while they are unknown: `changed` is called later."""
        self._known.wait(wait_s)
        with self._lock:
            self._was_returned = True
            return list(self._tables)

    def _run(self) -> None:
        try:
            self._database.attempt_with_retries(self._check, self._stopping)
            while not self._stopping.wait(self._interval_ms / 1000):
                try:
                    self._check()
                except RetriableError as error:
                    _log.warning("%s", error)
        except Exception as error:
            if not self._stopping.is_set():
                self._failed(error)

    def _check(self) -> None:
        database = self._database
        home = database.session.address.database
        found = sorted(
            table
            for table, kind in database.list_tables()
            if self._choice.includes(table, kind, home_catalog=home)
        )
        self._check_names(found)
        with self._lock:
            is_new = self._was_returned and found != self._tables
            self._tables = found
        self._known.set()
        if is_new:
            _log.info("tables of %s: %s", database, ", ".join(map(str, found)))
            self._changed()

    def _check_names(self, tables: list[TableName]) -> None:
        """Refuse tables of the same name, which would share a topic."""
        names = [table.name for table in tables]
        twice = sorted({str(table) for table in tables if names.count(table.name) > 1})
        if twice:
            raise ConnectError(
                f"The connector uses the unqualified table name as the topic name and has "
                f"detected duplicate unqualified table names: {', '.join(twice)}",
                hint="restrict the tables with schema.pattern, catalog.pattern or table.whitelist",
            )
