"""The Spark session that queries run on: Java, Python of the workers, Millstream's data source."""

import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sql.backends.spark.jvm_log import JvmLog
from sql.errors import SqlError

LOG = logging.getLogger(__name__)
AUTO = "auto"  # the master of spark-submit, otherwise this machine
LOCAL = "local[*]"
SUBMITTED = "PYSPARK_GATEWAY_PORT"  # set by spark-submit
CONNECT = "sc://"  # the prefix of Spark Connect's addresses
JAVA_LEAST = 17
JAVA_HINT = (
    f"install Java {JAVA_LEAST} or later (Debian: apt install openjdk-17-jre-headless; macOS: brew "
    "install openjdk@17), or set JAVA_HOME"
)
JAVA_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
JAVA_LIMIT_S = 60
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
WORKER_DAEMON = "sql.backends.spark.worker_daemon"
_opening = threading.Lock()  # a process has one session


def open_session(
    master: str = AUTO, settings: Mapping[str, str] | None = None, *, log: Path | None = None
) -> Any:
    """A session with Millstream's source registered; the existing one, if there is one.

    `master` is Spark's: local[2], spark://host:port, or sc://host:port for Spark Connect; the
    default is the master of spark-submit, or this machine without spark-submit. The output of Spark
    and its workers is written to the file `log`, or to standard error without one. Any: PySpark's
    sessions have no type hints.
    """
    check_spark(master)
    with _opening:
        return _opened(master, settings or {}, log)


def _opened(master: str, settings: Mapping[str, str], log: Path | None) -> Any:
    from pyspark.sql import SparkSession

    from sql.backends.spark.source import RecordSource

    is_connect = master.startswith(CONNECT)
    # Workers run the same Python, and find the packages where this process found them.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _add_to_python_path(Path(__file__).resolve().parents[3])
    wanted = {**_defaults(is_connect=is_connect), **settings}
    builder = SparkSession.builder
    if is_connect:
        builder = builder.remote(master)
    elif master != AUTO or SUBMITTED not in os.environ:
        wanted["spark.master"] = LOCAL if master == AUTO else master
    for name, value in wanted.items():
        builder = builder.config(name, value)
    try:
        if not is_connect:
            _forget_dead_session()
            _start_java(wanted, log)
        session = builder.getOrCreate()
    except Exception as error:  # PySpark has no common error for all causes
        raise SqlError(
            f'cannot start Spark on "{master}": {_first_line(error)}',
            hint="check spark.master and the other spark.* settings"
            + ("" if log is None or is_connect else f"; Spark's log is {log}"),
        ) from error
    if not is_connect:
        session.sparkContext.setLogLevel("ERROR")
        if log is not None:
            _keep_quiet(session)
    session.dataSource.register(RecordSource)
    return session


def activate(session: Any) -> None:
    """Make a session that of this thread: Spark looks up the sink in the thread's session only."""
    machine = getattr(session, "_jvm", None)  # there is none with Spark Connect
    if machine is not None:
        inside = session._jsparkSession  # noqa: SLF001 - PySpark has no public way
        machine.org.apache.spark.sql.classic.SparkSession.setActiveSession(inside)


def check_spark(master: str = AUTO) -> None:
    """Refuse to start without PySpark, and without Java if it is needed here."""
    if importlib.util.find_spec("pyspark") is None:
        raise SqlError("Spark is not installed", hint="pip install 'millstream[spark]'")
    if not master.startswith(CONNECT):
        check_java()


def check_java() -> None:
    """Refuse to start without Java, or with an old version, with installation hints."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java") if home is None else shutil.which("java", path=f"{home}/bin")
    if found is None:
        where = "" if home is None else f' in JAVA_HOME, "{home}"'
        raise SqlError(f"Spark needs Java, but there is none{where}", hint=JAVA_HINT)
    version = _version_of(found)
    if version < JAVA_LEAST:
        raise SqlError(
            f"Spark needs Java {JAVA_LEAST} or later, but {found} is Java {version}",
            hint=JAVA_HINT,
        )


@cache
def _version_of(java: str) -> int:
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_LIMIT_S, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise SqlError(f"cannot run Java: {error}", hint=JAVA_HINT) from error
    return java_version(said)


def java_version(said: str) -> int:
    """The version in the output of `java -version`; before Java 9 it began with "1.".

    >>> java_version('openjdk version "17.0.15" 2025-04-15')
    17
    """
    match = JAVA_VERSION.search(said)
    if match is None:
        raise SqlError(
            f"cannot find the version of Java in its output: {said.strip()}", hint=JAVA_HINT
        )
    first, second = match.groups()
    return int(second) if first == "1" and second is not None else int(first)


def _defaults(*, is_connect: bool) -> dict[str, str]:
    of_sessions = {
        "spark.app.name": "millstream",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
        # Each check for new records sends some requests to the cluster, for each query.
        "spark.sql.streaming.pollingDelay": "200ms",
    }
    if is_connect:  # a running server accepts no others
        return of_sessions
    return {
        **of_sessions,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.daemon.module": WORKER_DAEMON,
    }


def _start_java(settings: Mapping[str, str], log: Path | None) -> None:
    """Start Spark's JVM with its output in a file: Spark and its workers write a lot."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if log is None or SparkContext._gateway is not None:  # noqa: SLF001 - there is no other way
        return
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with JvmLog(log) as written:
        gateway = launch_gateway(conf, {"stdout": written, "stderr": written})
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - nor to say it


def _keep_quiet(session: Any) -> None:
    """Log no traces when the JVM dies: the runtime of a query detects it and logs one line."""
    logging.getLogger().addFilter(_is_not_of_py4j)
    server = session.sparkContext._accumulatorServer  # noqa: SLF001 - PySpark has no public way
    server.handle_error = lambda request, address: LOG.debug("Spark's JVM has exited")


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Py4J logs with the root logger, before it raises the same error."""
    return Path(record.pathname).parent.name != "py4j"


def _forget_dead_session() -> None:
    """Release a session whose JVM has died, so that a new one can be created."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context  # noqa: SLF001 - PySpark has no other way to ask
    if context is None:
        return
    try:
        if not context._jsc.sc().isStopped():  # noqa: SLF001
            return
        context.stop()
    except Exception:  # Py4J has no common error for a JVM that does not respond
        SparkContext._active_spark_context = None  # noqa: SLF001
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _add_to_python_path(folder: Path) -> None:
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(folder) not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, known)])
