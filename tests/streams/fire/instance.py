"""`python -m tests.streams.fire.instance CONFIG`: one instance of the application under fire.

Writes a line of JSON to its report when it runs for the first time, with what it had to restore.
"""

import logging
import signal
import sys
from pathlib import Path

import orjson

from streams import AppState, StreamsApp
from tests.streams.fire.shop import shop


def main(config_path: str) -> None:
    """Run until told to stop."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    config = orjson.loads(Path(config_path).read_bytes())
    report = Path(config.pop("report"))
    app = StreamsApp(shop(), **config)
    signal.signal(signal.SIGTERM, lambda *_: app.close())
    app.start()
    if app.wait_for(AppState.RUNNING, timeout_ms=120_000):
        restored = sum(runner.metrics.restored_records_total for runner in app.runners)
        with open(report, "ab") as file:
            file.write(orjson.dumps({"restored": restored}) + b"\n")
    app.wait()


if __name__ == "__main__":
    main(sys.argv[1])
