"""Settling: steps of a script that wait for results, and the server that runs the script."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from millstream.simulation.workloads.statements import Script, ScriptServer, Step
from millstream.simulation.workloads.topic_reading import TopicReading
from sql.engine.engine import Engine
from sql.engine.settings import SqlConfig
from tests.millstream.simulation.restarting import Server

Rows = list[tuple[object, ...]]
SETTINGS: Mapping[str, object] = {
    "ksql.streams.auto.offset.reset": "earliest",
    "ksql.streams.processing.guarantee": "exactly_once_v2",
    "ksql.query.retry.backoff.initial.ms": 1_000,
}
SETTLED_MS = 15_000
SETTLING_MS_MAX = 300_000


def serve(script: Script, server: Server, settings: Mapping[str, object]) -> None:
    """Start an engine with some settings, and do what is left of a script."""
    config = SqlConfig({**SETTINGS, **settings})
    engine = Engine(
        server.broker, data_directory="/data/sql", config=config, machine=server.machine
    )
    with engine, TopicReading(server.broker) as reading:
        server.note("runs")
        script.run(ScriptServer(engine, reading, server.note, server.wait))


class Settling:
    """Steps that wait until topics have what they should have, and keep it as results.

    Without known results the first run waits for a while, and what is there then is the result.
    """

    def __init__(self, known: Sequence[Mapping[str, Rows]] | None = None) -> None:
        """Results of an undisturbed run, in the order of its steps."""
        self._known = known
        self.found: dict[int, dict[str, Rows]] = {}

    def step(self, number: int, topics: Mapping[str, Callable[[ScriptServer, str], Rows]]) -> Step:
        """Wait, and read these topics."""

        def read(server: ScriptServer) -> dict[str, Rows]:
            return {topic: rows(server, topic) for topic, rows in topics.items()}

        def run(server: ScriptServer) -> None:
            if self._known is None:
                server.wait(SETTLED_MS)
                self.found[number] = read(server)
                return
            wanted, waited_ms = self._known[number], 0
            while (found := read(server)) != wanted:
                assert waited_ms < SETTLING_MS_MAX, difference(found, wanted)
                server.wait(1_000)
                waited_ms += 1_000
            self.found[number] = found

        return Step(f"settle {number}", run)


def difference(found: Mapping[str, Rows], wanted: Mapping[str, Rows]) -> str:
    """What is missing in topics, and what is too much."""
    lines = []
    for topic, rows in wanted.items():
        lines += [f"{topic} lacks {row}" for row in rows if row not in found[topic]]
        lines += [f"{topic} should not have {row}" for row in found[topic] if row not in rows]
        if len(found[topic]) != len(rows):
            lines.append(f"{topic} has {len(found[topic])} rows instead of {len(rows)}")
    return "\n".join(lines)


def all_rows(server: ScriptServer, topic: str) -> Rows:
    """The records of a stream, without their order among partitions."""
    return sorted((*each,) for each in _texts(server, topic))


def last_rows(server: ScriptServer, topic: str) -> Rows:
    """The last record of each key of a table; those that were deleted are not there."""
    last = {
        (partition, key): (value, time) for partition, key, value, time in _texts(server, topic)
    }
    return sorted((*key, *found) for key, found in last.items() if found[0] != "None")


def _texts(server: ScriptServer, topic: str) -> Iterator[tuple[int, str, str, int]]:
    for partition, key, value, time in server.reading.records(topic):
        yield partition, str(key), str(value), time
