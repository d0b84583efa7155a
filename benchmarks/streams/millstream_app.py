"""The workloads in Millstream.

python -m benchmarks.streams.millstream_app WORKLOAD BOOTSTRAP APPLICATION_ID INPUT TABLE OUTPUT
    STATE_DIR [SETTING=VALUE]...
"""

import logging
import signal
import sys
import threading
import time
from typing import Any

from streams import StreamsBuilder, Topology, tumbling
from streams.app import StreamsApp

WINDOW_MS = 60_000
# Any: passed as keyword arguments.
SETTINGS: dict[str, Any] = {"commit_interval_ms": 1000, "statestore_cache_max_bytes": 0}
Row = dict[str, Any]


def add(_: str, order: Row, totals: Row) -> Row:
    """Add an order."""
    return {"count": totals["count"] + 1, "sum": totals["sum"] + order["price"]}


def enrich(order: Row, profile: Row) -> Row:
    """An order with the profile of its user."""
    return {
        "user": order["user"],
        "price": order["price"],
        "name": profile["name"],
        "level": profile["level"],
    }


def build(workload: str, topic: str, table: str, output: str) -> Topology:
    """Define the workload."""
    builder = StreamsBuilder()
    orders = builder.stream(topic, key=str, value=dict[str, Any])
    if workload == "filter":
        dear = orders.filter(lambda user, order: order["price"] > 50)
        dear.map_values(lambda order: {"user": order["user"], "price": order["price"]}).to(output)
    elif workload == "tumbling":
        windows = orders.group_by_key().windowed_by(tumbling(WINDOW_MS))
        totals = windows.aggregate(
            lambda: {"count": 0, "sum": 0.0}, add, store="totals", value=dict
        )
        totals.to_stream().to(output)
    elif workload == "count":
        orders.group_by_key().count(store="totals").to_stream().to(output)
    else:
        profiles = builder.table(table, key=str, value=dict[str, Any], store="profiles")
        orders.join(profiles, enrich).to(output)
    return builder.build()


def main(arguments: list[str]) -> None:
    """Run until SIGTERM."""
    workload, bootstrap, application_id, topic, table, output, state_dir, *pairs = arguments
    logging.basicConfig(level=logging.WARNING)
    settings = dict(pair.split("=", 1) for pair in pairs)
    app = StreamsApp(
        build(workload, topic, table, output),
        application_id=application_id,
        broker=bootstrap,
        state_dir=state_dir,
        **{**SETTINGS, **{name: int(value) for name, value in settings.items()}},
    )
    app.on_state_change(lambda new, old: print(f"{time.time():.3f} state {new.value}", flush=True))
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with app:
        while not ended.is_set() and not app.wait(timeout_ms=100):
            pass


if __name__ == "__main__":
    main(sys.argv[1:])
