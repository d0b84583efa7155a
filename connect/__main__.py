"""Run a worker: `python -m connect worker.properties [connector.properties|connector.json ...]`.

Only standalone workers accept connector files; a distributed worker reads its connectors from the
config topic, and accepts others over REST.
"""

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from broker.errors import MillstreamError, failure_text
from connect.config.connector_file import ConnectorFile, read_connector
from connect.config.worker_config import WorkerConfig, read_settings
from connect.errors import ConfigError
from connect.server import ConnectServer

FAILED = 1
LOOK_S = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code."""
    options = parse(arguments)
    logging.basicConfig(
        stream=sys.stderr,
        level=options.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    try:
        settings = read_settings(options.worker)
        for text in options.config:
            name, _, value = text.partition("=")
            settings[name.strip()] = value.strip()
        connectors = [read_connector(file) for file in options.connectors]
        serve(WorkerConfig.parse(settings), connectors)
    except (MillstreamError, OSError) as error:
        sys.stderr.write(f"millstream connect: {failure_text(error)}\n")
        return FAILED
    return 0


def serve(config: WorkerConfig, connectors: Sequence[ConnectorFile]) -> None:
    """Run a worker in this process until it is stopped."""
    if connectors and config.distributed:
        raise ConfigError(
            "a distributed worker does not accept connector files",
            hint="create them over REST, or run a standalone worker: set "
            '"offset.storage.file.filename" in place of "group.id" and the three topics',
        )
    with ConnectServer(config.bootstrap_servers, config) as server:
        signals = _stop_signals()
        server.create(connectors)
        sys.stdout.write(f"listening on {server.url}\n")
        sys.stdout.flush()
        _wait(signals, server)


def _stop_signals() -> "SimpleQueue[int]":
    """The queue for stop signals; until now, a signal ended the process."""
    signals: SimpleQueue[int] = SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: signals.put(number))
    return signals


def _wait(signals: "SimpleQueue[int]", server: ConnectServer) -> None:
    """Wait for a signal. Another thread may receive it, so the main thread polls."""
    while True:
        if server.failure is not None:
            raise server.failure
        try:
            signals.get(timeout=LOOK_S)
            return
        except Empty:
            continue


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m connect", description="Run a Connect worker.")
    parser.add_argument(
        "worker", type=Path, help="settings of the worker: a .properties or .json file"
    )
    parser.add_argument(
        "connectors", type=Path, nargs="*", help="connectors of a standalone worker, one file each"
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting that overrides the file; repeatable",
    )
    parser.add_argument(
        "--log-level", default="info", help="log level: debug, info, warning or error"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
