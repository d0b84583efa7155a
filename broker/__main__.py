"""Run a broker: `python -m broker --data-dir D --port P [--config key=value]... [file]`."""

import argparse
import gc
import logging
import signal
import sys
from asyncio import get_running_loop
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from broker import descriptors
from broker.broker import Broker
from broker.config import BrokerConfig
from broker.errors import MillstreamError, failure_text
from broker.properties_file import read_properties
from broker.server import Server, run

logger = logging.getLogger(__name__)

FAILED = 1
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
# Requests leave almost no garbage. Objects created at startup are excluded from collections, and
# a collection of the young objects takes a millisecond at most: all requests wait for it.
GC_THRESHOLDS = (2000, 50, 100)
# Threads that compute in the background must not delay the network thread for long.
SWITCH_SECONDS = 0.001


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; the exit code."""
    options = parse(arguments)
    logging.basicConfig(
        stream=sys.stderr,
        level=options.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    try:
        serve(load_config(options))
    except (MillstreamError, OSError) as error:
        sys.stderr.write(f"millstream broker: {failure_text(error)}\n")
        return FAILED
    return 0


def serve(config: BrokerConfig) -> None:
    """Run a broker in this process until it is stopped."""
    descriptors.raise_limit()
    with Broker(config).start(progress=_report_progress) as broker:
        server = Server(broker)
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        sys.setswitchinterval(SWITCH_SECONDS)
        run(_serve(server))


async def _serve(server: Server) -> None:
    loop = get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop_soon)

    def ready() -> None:
        for endpoint in server.endpoints:
            sys.stdout.write(f"listening on {endpoint}\n")
        if server.metrics_port is not None:
            sys.stdout.write(f"metrics on port {server.metrics_port}\n")
        sys.stdout.flush()

    await server.serve(ready)


def load_config(options: argparse.Namespace) -> BrokerConfig:
    """Settings of the file, then those of the command line, which win."""
    properties: dict[str, str] = {}
    if options.file is not None:
        properties.update(read_properties(options.file.read_text(), name=str(options.file)))
    for text in options.config:
        properties.update(read_properties(text, name="--config"))
    config = BrokerConfig.from_properties(properties)
    if options.data_dir is not None:
        config = replace(config, log_dirs=(options.data_dir,))
    if options.port is not None or options.host is not None:
        port = DEFAULT_PORT if options.port is None else options.port
        host = DEFAULT_HOST if options.host is None else options.host
        config = replace(config, listeners=(f"PLAINTEXT://{host}:{port}",))
    return config


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m broker", description="A broker that speaks the Kafka protocol."
    )
    parser.add_argument("file", nargs="?", type=Path, help="settings, as in server.properties")
    parser.add_argument("--data-dir", help="directory of the logs")
    parser.add_argument("--port", type=int, help="port to listen on; 0 chooses a free one")
    parser.add_argument("--host", help=f"address to listen on (default {DEFAULT_HOST})")
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting under Kafka's name; can be repeated",
    )
    parser.add_argument(
        "--log-level", default="info", choices=("debug", "info", "warning", "error")
    )
    return parser.parse_args(arguments)


def _report_progress(done: int, total: int) -> None:
    if done == total or done % 1000 == 0:
        logger.info("opened %d of %d partitions", done, total)


if __name__ == "__main__":
    sys.exit(main())
