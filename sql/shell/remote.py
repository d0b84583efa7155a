"""A session with a server."""

from collections.abc import Iterator, Sequence

from broker.clock import Clock, SystemClock
from sql.client import SqlClient, StreamedLines, StreamedRows
from sql.shell.deadline import Deadline
from sql.shell.session import EntityJson, SessionScope, ShownColumn


class RemoteRows:
    """Rows of a server; see QueryRows."""

    def __init__(self, streamed: StreamedRows, deadline: Deadline) -> None:
        self._streamed = streamed
        self._deadline = deadline
        self.columns: Sequence[ShownColumn] = [ShownColumn(*each) for each in streamed.columns]

    @property
    def final_message(self) -> str | None:
        return self._streamed.final_message

    def rows(self) -> Iterator[Sequence[object]]:
        for row in self._streamed.rows():
            yield row
            if self._deadline.is_over:
                break

    def close(self) -> None:
        self._streamed.close()


class RemoteLines:
    """Printed records from a server; see PrintedLines."""

    def __init__(self, streamed: StreamedLines, deadline: Deadline) -> None:
        self._streamed = streamed
        self._deadline = deadline

    def lines(self) -> Iterator[str]:
        for line in self._streamed.lines():
            yield line
            if self._deadline.is_over:
                break

    def close(self) -> None:
        self._streamed.close()


class RemoteSession:
    """Sends statements to a server; see ShellSession."""

    def __init__(self, client: SqlClient, clock: Clock | None = None) -> None:
        """Raises an error if the server does not respond."""
        self._client = client
        self._clock = clock or SystemClock()
        try:
            self._info = client.info()
        except BaseException:
            client.close()
            raise

    @property
    def where(self) -> str:
        """The URL of the server."""
        return self._client.url

    def version(self) -> str:
        return str(self._info.get("version", "unknown"))

    def execute(self, text: str, scope: SessionScope) -> list[EntityJson]:
        """Execute a statement that is not a query."""
        return self._client.execute(text, scope.properties, scope.variables)

    def query(self, text: str, scope: SessionScope, timeout_ms: int | None) -> RemoteRows:
        """Start a query."""
        deadline = Deadline(self._clock, timeout_ms)
        found = self._client.query(text, scope.properties, scope.variables, timeout_ms=timeout_ms)
        return RemoteRows(found, deadline)

    def print_topic(self, text: str, scope: SessionScope, timeout_ms: int | None) -> RemoteLines:
        """Start a PRINT."""
        deadline = Deadline(self._clock, timeout_ms)
        found = self._client.print_topic(
            text, scope.properties, scope.variables, timeout_ms=timeout_ms
        )
        return RemoteLines(found, deadline)

    def check_property(self, name: str, value: str) -> None:
        """Check the name with the server; values are checked with the next statement."""
        self._client.check_property(name)

    def close(self) -> None:
        self._client.close()
