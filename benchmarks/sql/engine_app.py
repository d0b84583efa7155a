"""The workloads as SQL statements, in an engine in this process.

python -m benchmarks.sql.engine_app WORKLOAD BOOTSTRAP SERVICE_ID INPUT OUTPUT STATE_DIR [QUERIES]
"""

import logging
import signal
import sys
import threading

from sql.engine.engine import Engine
from sql.engine.settings import SqlConfig

SETTINGS: dict[str, object] = {
    "auto.offset.reset": "earliest",
    "cache.max.bytes.buffering": 0,
    "commit.interval.ms": 1000,
    "num.stream.threads": 1,
}
RUNNING_LIMIT_MS = 60_000
QUERY = "query "  # prefix of the line with the group of a query
READY = "ready"  # printed when all queries are running
ORDERS = (
    "CREATE STREAM orders (buyer STRING KEY, `user` STRING, `item` STRING, `price` DOUBLE, "
    "`quantity` INT, `region` STRING, `order` STRING) "
    "WITH (kafka_topic='{topic}', value_format='JSON');"
)
FILTER = (
    "CREATE STREAM dear{number} WITH (kafka_topic='{output}') AS "
    "SELECT buyer, `user`, `price` FROM orders WHERE `price` > 50;"
)
TUMBLING = (
    "CREATE TABLE totals{number} WITH (kafka_topic='{output}') AS "
    "SELECT buyer, COUNT(*) AS `count`, SUM(`price`) AS `sum` FROM orders "
    "WINDOW TUMBLING (SIZE 1 MINUTE) GROUP BY buyer;"
)
STATEMENTS = {"filter": FILTER, "tumbling": TUMBLING}


def statements(workload: str, output: str, queries: int = 1) -> list[str]:
    """The statements of `queries` queries; each has its own output topic."""
    text = STATEMENTS[workload]
    if queries == 1:
        return [text.format(number="", output=output)]
    return [text.format(number=each, output=f"{output}-{each}") for each in range(queries)]


def open_engine(bootstrap: str, service_id: str, state_dir: str) -> Engine:
    """An engine with the same settings as the peers, not started."""
    config = SqlConfig({**SETTINGS, "ksql.service.id": service_id})
    return Engine(bootstrap, data_directory=state_dir, config=config)


def main(arguments: list[str]) -> None:
    """Run until SIGTERM."""
    workload, bootstrap, service_id, topic, output, state_dir, *queries = arguments
    logging.basicConfig(level=logging.WARNING)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with open_engine(bootstrap, service_id, state_dir) as engine:
        engine.execute(ORDERS.format(topic=topic))
        for statement in statements(workload, output, *map(int, queries)):
            engine.execute(statement)
        runtimes = [each.runtime for each in engine.commands.running.values()]
        for runtime in runtimes:
            print(f"{QUERY}{runtime.application_id}", flush=True)
        for runtime in runtimes:
            if not runtime.wait_running(RUNNING_LIMIT_MS):
                raise TimeoutError(f"{runtime.application_id} is not running: {runtime.failures}")
        print(READY, flush=True)
        ended.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
