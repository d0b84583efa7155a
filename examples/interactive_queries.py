"""Interactive queries: two instances share the state; each answers for any key over HTTP."""

import socket
import tempfile
from contextlib import ExitStack
from typing import Any
from urllib.request import urlopen

import orjson

from broker import Broker, BrokerConfig
from broker.client import producer
from streams import StreamsApp, StreamsBuilder, Topology
from streams.serving import QueryServer

CONFIG = BrokerConfig(group_initial_rebalance_delay_ms=0, num_partitions=4)
SALES = (("bran", 2), ("flour", 5), ("oats", 1), ("flour", 7), ("rye", 4))


def build() -> Topology:
    """Sales in; no output, because the totals are queried."""
    builder = StreamsBuilder()
    sales = builder.stream("sales", key=str, value=int).group_by_key()
    sales.reduce(lambda total, sacks: total + sacks, store="totals")
    return builder.build()


def ask(app: StreamsApp) -> dict[str, int]:
    """Query all totals from one instance; none during a rebalance."""
    try:
        with urlopen(f"http://{app.config.application_server}/stores/totals/all") as answer:
            return {row["key"]: row["value"] for row in orjson.loads(answer.read())["entries"]}
    except OSError:
        return {}


def main() -> list[dict[str, int]]:
    """The results of each instance when both have partitions."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        broker = stack.enter_context(Broker(CONFIG, data_directory=folder))
        with producer(broker) as out:
            for product, sacks in SALES:
                out.send("sales", sacks.to_bytes(8, "big"), key=product.encode())
        apps = []
        for number in (1, 2):
            place: dict[str, Any] = {"state_dir": f"{folder}/{number}"}
            with socket.create_server(("127.0.0.1", 0)) as found:
                place["application_server"] = f"127.0.0.1:{found.getsockname()[1]}"
            apps.append(StreamsApp(build(), application_id="sales", broker=broker, **place))
            stack.enter_context(apps[-1])
            stack.enter_context(QueryServer(apps[-1]))
        while len(apps[0].metadata("totals")) < 2 or any(len(ask(app)) < 4 for app in apps):
            apps[0].wait(timeout_ms=100)
        return [ask(app) for app in apps]


if __name__ == "__main__":
    print(*main(), sep="\n")
