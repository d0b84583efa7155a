"""A running PRINT: lines of a topic's records, as they arrive."""

from collections.abc import Iterator

from broker.client.opening import Target, consumer
from broker.model import TopicPartition
from broker.serde.registry.api import SchemaRegistry
from sql.engine.printing import TopicPrinter
from sql.engine.topics import Topics
from sql.errors import StatementFailed
from sql.syntax.statements import Print

POLL_MS = 100


class PrintedTopic:
    """The records of a topic as text; not thread-safe."""

    def __init__(
        self, statement: Print, *, target: Target, topics: Topics, registry: SchemaRegistry | None
    ) -> None:
        shape = topics.shape(statement.topic)
        if shape is None:
            raise StatementFailed(
                f"Could not find topic '{statement.topic}', or the KSQL user does not have "
                "permissions to list the topic. Topic names are case-sensitive.",
                hint="SHOW ALL TOPICS lists them",
            )
        self._printer = TopicPrinter(statement.topic, registry)
        self._limit = statement.limit
        self._interval = statement.interval or 1
        self._read = 0
        self._printed = 0
        self._reader = consumer(target, client_id="millstream-sql-print")
        places = [TopicPartition(statement.topic, number) for number in range(shape.partitions)]
        self._reader.assign(places)
        if statement.from_beginning:
            self._reader.seek_to_beginning(places)
        else:
            self._reader.seek_to_end(places)
            for place in places:
                self._reader.position(place)  # determines the end now

    @property
    def done(self) -> bool:
        """Whether the limit has been reached."""
        return self._limit is not None and self._printed >= self._limit

    def poll(self, timeout_ms: int = POLL_MS) -> list[str]:
        """The lines of records that are available, or arrive in time."""
        if self.done:
            return []
        lines: list[str] = []
        for record in self._reader.poll(timeout_ms):
            wanted = self._read % self._interval == 0
            self._read += 1
            if not wanted:
                continue
            lines += self._printer.lines(record)
            self._printed += 1
            if self.done:
                break
        return lines

    def lines(self) -> Iterator[str]:
        """Lines until the limit."""
        while not self.done:
            yield from self.poll()

    def close(self) -> None:
        """Stop."""
        self._reader.close()
