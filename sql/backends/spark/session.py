"""The Spark session that queries run on: Java, Python of the workers, our data source."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sql.errors import SqlError

LOCAL = "local[*]"
JAVA_HINT = "install Java 17 (Debian: apt install openjdk-17-jre-headless), or set JAVA_HOME"
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
WORKER_DAEMON = "sql.backends.spark.worker_daemon"


def open_session(master: str = LOCAL, settings: Mapping[str, str] | None = None) -> Any:
    """A session with our source registered; the one that there is, if there is one.

    `master` is Spark's: local[2], spark://host:port, or sc://host:port for Spark Connect. Any: what
    PySpark gives has no types here.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SqlError("Spark is not installed", hint="pip install 'millstream[spark]'") from error
    from sql.backends.spark.source import RecordSource

    is_connect = master.startswith("sc://")
    if not is_connect:
        check_java()
    # Workers run the same Python, and find our packages where this process found them.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _add_to_python_path(Path(__file__).resolve().parents[3])
    builder = SparkSession.builder
    builder = builder.remote(master) if is_connect else builder.master(master)
    for name, value in {**_defaults(), **(settings or {})}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    if not is_connect:
        session.sparkContext.setLogLevel("ERROR")
    session.dataSource.register(RecordSource)
    return session


def activate(session: Any) -> None:
    """Make a session that of this thread: Spark looks for our sink in the thread's session only."""
    machine = getattr(session, "_jvm", None)  # there is none behind Spark Connect
    if machine is not None:
        inside = session._jsparkSession  # noqa: SLF001 - PySpark has no public way
        machine.org.apache.spark.sql.classic.SparkSession.setActiveSession(inside)


def check_java() -> None:
    """Refuse to start without Java, and say what to install."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java") if home is None else shutil.which("java", path=f"{home}/bin")
    if found is None:
        where = "" if home is None else f' in JAVA_HOME, "{home}"'
        raise SqlError(f"Spark needs Java, and there is none{where}", hint=JAVA_HINT)


def _defaults() -> dict[str, str]:
    return {
        "spark.app.name": "millstream",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
        "spark.python.daemon.module": WORKER_DAEMON,
        # Each look for new records is some requests to the cluster, for each query.
        "spark.sql.streaming.pollingDelay": "200ms",
    }


def _add_to_python_path(folder: Path) -> None:
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(folder) not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, known)])
