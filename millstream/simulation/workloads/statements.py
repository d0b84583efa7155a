"""Statements as steps of a script, on a simulated SQL server that may be killed at any time.

A step that was interrupted by a kill is checked after the restart, and run again if it was not
done.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from broker.errors import MillstreamError
from millstream.simulation.workloads.topic_reading import TopicReading
from sql.engine.engine import Engine
from sql.engine.entities import CurrentStatus, Entity


@dataclass(slots=True)
class ScriptServer:
    """The server of a script, for one process."""

    engine: Engine
    reading: TopicReading
    note: Callable[..., None]  # into the history
    wait: Callable[[int], object]  # for this many virtual milliseconds
    on_acknowledged: Callable[[], object] = lambda: (
        None
    )  # called after an acknowledgement to a user
    other: Callable[[], Engine | None] = lambda: None  # another server of the service

    def execute(self, text: str) -> list[Entity]:
        """Execute statements; raises for a logged command that fails."""
        entities = self.engine.execute(text)
        for each in entities:
            if isinstance(each, CurrentStatus) and each.command_status.status == "ERROR":
                raise CommandFailed(f"{text}: {each.command_status.message}")
        return entities


class CommandFailed(MillstreamError):
    """A logged command failed."""


@dataclass(frozen=True, slots=True)
class Step:
    """One action; `is_done` is called first, because it may have been done before a kill.

    `after` is called when it is done, by any process.
    """

    name: str
    run: Callable[[ScriptServer], object]
    is_done: Callable[[ScriptServer], bool] = lambda server: False
    after: Callable[[ScriptServer], object] = lambda server: None


def create_step(text: str) -> Step:
    """A statement that creates a stream or table."""
    words = text.replace("OR REPLACE ", "").split()
    name = words[2].upper()

    def is_done(server: ScriptServer) -> bool:
        source = server.engine.state.catalog.sources.get(name)
        return source is not None and source.statement.split() == text.split()

    return Step(f"make {name}", lambda server: server.execute(text), is_done)


def drop_step(kind: str, name: str) -> Step:
    """Drop a stream or table, with its topic."""

    def run(server: ScriptServer) -> None:
        topic = server.engine.state.catalog.sources[name.upper()].topic
        server.execute(f"DROP {kind} {name} DELETE TOPIC;")
        server.reading.discard(topic)

    return Step(
        f"drop {name}", run, lambda server: name.upper() not in server.engine.state.catalog.sources
    )


def writer(server: ScriptServer, name: str) -> str | None:
    """The id of the query that writes a stream or table."""
    return next(iter(server.engine.state.writers(name.upper())), None)


def control_step(action: str, name: str) -> Step:
    """PAUSE, RESUME or TERMINATE the query that writes a stream or table."""

    def is_done(server: ScriptServer) -> bool:
        query, paused = writer(server, name), server.engine.state.paused
        if action == "TERMINATE":
            return query is None
        return (query in paused) is (action == "PAUSE")

    return Step(
        f"{action} {name}",
        lambda server: server.execute(f"{action} {writer(server, name)};"),
        is_done,
    )


def add_column_step(name: str, column: str, type_name: str, *, kind: str = "STREAM") -> Step:
    """ALTER a stream or table."""

    def is_done(server: ScriptServer) -> bool:
        schema = server.engine.state.catalog.sources[name.upper()].schema
        return any(each.name == column.upper() for each in schema.value)

    text = f"ALTER {kind} {name} ADD COLUMN {column} {type_name};"
    return Step(f"alter {name}", lambda server: server.execute(text), is_done)


def insert(stream: str, row: Mapping[str, object]) -> str:
    """The statement that inserts a row."""
    values = ", ".join(map(literal, row.values()))
    return f"INSERT INTO {stream} ({', '.join(row)}) VALUES ({values});"


def numbers_in_json(server: ScriptServer, stream: str) -> Collection[object]:
    """The values of column N, in a stream whose format is JSON."""
    topic = server.engine.state.catalog.sources[stream.upper()].topic
    records = server.reading.records(topic)
    return {json.loads(value or b"{}").get("N") for _, _, value, _ in records}


def insert_step(
    stream: str,
    rows: Sequence[Mapping[str, object]],
    *,
    numbers: Callable[[ScriptServer, str], Collection[object]] = numbers_in_json,
    send: Callable[[ScriptServer, str, Mapping[str, object]], object] | None = None,
) -> Step:
    """INSERT rows, identified by column N; existing ones are skipped."""

    def run(server: ScriptServer) -> None:
        existing = numbers(server, stream)
        for row in rows:
            if row["n"] in existing:
                continue
            if send is None:
                server.execute(insert(stream, row))
            else:
                send(server, stream, row)

    return Step(f"insert {len(rows)} rows into {stream}", run)


def literal(value: object) -> str:
    """A value as a SQL literal."""
    return f"'{value}'" if isinstance(value, str) else str(value)


@dataclass(slots=True)
class Script:
    """The steps, and the index of the next one; survives the killed process."""

    steps: Sequence[Step]
    next: int = 0

    @property
    def is_over(self) -> bool:
        """Whether all steps were done."""
        return self.next == len(self.steps)

    def run(self, server: ScriptServer) -> None:
        """Do the remaining steps."""
        while not self.is_over:
            self.run_next(server)

    def run_next(self, server: ScriptServer) -> None:
        """Do the next step, unless it was done before a kill."""
        step = self.steps[self.next]
        if step.is_done(server):
            server.note("was done before", step.name)
        else:
            server.note("begins", step.name)
            step.run(server)
            server.note("has done", step.name)
        step.after(server)
        self.next += 1
        server.on_acknowledged()
