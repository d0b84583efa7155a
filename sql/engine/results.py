"""Results of queries: columns first, then rows as they arrive."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from broker import concurrency
from broker.clock import Clock
from sql.datatypes import DataType
from sql.errors import StatementFailed
from sql.rows.row_format import Row

LIMIT_REACHED = "Limit Reached"
QUERY_COMPLETED = "Query Completed"


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result; `is_key` only if clients see it."""

    name: str
    type: DataType
    is_key: bool = False

    def __str__(self) -> str:
        """As in headers."""
        return f"`{self.name}` {self.type}{' KEY' if self.is_key else ''}"


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One row; a tombstone is a deleted row of a table, and has only its key."""

    values: Row
    tombstone: bool = False


class QueryResult(Protocol):
    """The result of a query; the caller closes it."""

    @property
    def query_id(self) -> str:
        """The id of the query."""
        ...

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """The columns of its rows."""
        ...

    @property
    def final_message(self) -> str | None:
        """The final message; None if there is none, as after a table's rows."""
        ...

    @property
    def is_push(self) -> bool:
        """Whether rows arrive until it is stopped."""
        ...

    def rows(self) -> Iterator[ResultRow]:
        """The rows, once; raises the error that ended the query."""
        ...

    def poll(self, timeout_ms: int) -> ResultRow | None:
        """The next row, if it arrives in time; also None at the end."""
        ...

    @property
    def done(self) -> bool:
        """Whether no more rows will arrive."""
        ...

    def close(self) -> None:
        """Stop."""
        ...


def schema_text(columns: tuple[ResultColumn, ...]) -> str:
    """The columns as in the header of /query."""
    return ", ".join(map(str, columns))


class RowQueue:
    """A bounded queue of rows between a query and its reader; the query waits while it is full."""

    def __init__(self, clock: Clock, capacity: int) -> None:
        """At most `capacity` rows are queued."""
        self._clock = clock
        self._capacity = capacity
        self._rows: deque[ResultRow] = deque()
        self._changed = concurrency.Condition()
        self._ended = False
        self._error: BaseException | None = None

    def put(self, row: ResultRow) -> bool:
        """Add a row as soon as there is room; False if the result is closed."""
        with self._changed:
            while len(self._rows) >= self._capacity and not self._ended:
                self._clock.wait(self._changed, None)
            if self._ended:
                return False
            self._rows.append(row)
            self._changed.notify_all()
            return True

    def offer(self, row: ResultRow) -> None:
        """Add a row without waiting; if the reader is too slow, its query is terminated."""
        with self._changed:
            if self._ended:
                return
            if len(self._rows) < self._capacity:
                self._rows.append(row)
                self._changed.notify_all()
                return
        self.end(
            StatementFailed(
                f"the query was terminated: its reader is more than {self._capacity} rows behind",
                hint="read faster, or raise ksql.query.push.buffer.rows",
            )
        )

    def end(self, error: BaseException | None = None) -> None:
        """Mark the end of the rows; queued rows can still be read."""
        with self._changed:
            if not self._ended:
                self._ended = True
                self._error = error
            self._changed.notify_all()

    def drop(self) -> None:
        """End, and discard queued rows."""
        with self._changed:
            self._rows.clear()
        self.end()

    def take(self, timeout_ms: int | None = None) -> ResultRow | None:
        """The next row; None on a timeout or at the end. An error is raised after all rows."""
        with self._changed:
            deadline_ms = None if timeout_ms is None else self._clock.monotonic_ms() + timeout_ms
            while not self._rows and not self._ended:
                left_ms = None if deadline_ms is None else deadline_ms - self._clock.monotonic_ms()
                if left_ms is not None and left_ms <= 0:
                    return None
                self._clock.wait(self._changed, left_ms)
            if self._rows:
                row = self._rows.popleft()
                self._changed.notify_all()
                return row
            if self._error is not None:
                raise self._error
            return None

    @property
    def done(self) -> bool:
        """Whether there are no rows, and none will arrive."""
        with self._changed:
            return self._ended and not self._rows


@dataclass(slots=True)
class PullRows:
    """Rows of a pull query: an iterator that ends by itself; see QueryResult."""

    query_id: str
    columns: tuple[ResultColumn, ...]
    found: Iterator[Row]
    limit: int | None = None
    # The results of streams end with the reason; those of tables do not.
    has_final_message: bool = False
    taken: int = 0
    ended: bool = False

    @property
    def is_push(self) -> bool:
        """False: it ends by itself."""
        return False

    @property
    def final_message(self) -> str | None:
        """The final message."""
        if not self.has_final_message:
            return None
        reached = self.limit is not None and self.taken >= self.limit
        return LIMIT_REACHED if reached else QUERY_COMPLETED

    def rows(self) -> Iterator[ResultRow]:
        """The rows."""
        while (row := self.poll(0)) is not None:
            yield row

    def poll(self, timeout_ms: int) -> ResultRow | None:
        """The next row."""
        if self.ended or (self.limit is not None and self.taken >= self.limit):
            self.ended = True
            return None
        row = next(self.found, None)
        if row is None:
            self.ended = True
            return None
        self.taken += 1
        return ResultRow(row)

    @property
    def done(self) -> bool:
        """Whether the end was reached."""
        return self.ended

    def close(self) -> None:
        """Do nothing."""
        self.ended = True
