"""JvmLog: the output of Spark's JVM and its Python workers, in a file of limited size."""

import logging
import os
import threading
from logging.handlers import RotatingFileHandler
from pathlib import Path

FILE_BYTES = 4 << 20
FILES_KEPT = 2


class JvmLog:
    """A pipe for a new process, and a thread that copies its output to a file.

    Inside `with` the pipe can be passed on; the thread ends with the last process that has it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._end = -1

    def __enter__(self) -> int:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        reading, self._end = os.pipe()
        threading.Thread(target=self._copy, args=(reading,), name="spark-log", daemon=True).start()
        return self._end

    def __exit__(self, *_: object) -> None:
        os.close(self._end)

    def _copy(self, reading: int) -> None:
        """Copy lines; on errors they are dropped, since the process would block otherwise."""
        file: logging.Handler
        try:
            file = RotatingFileHandler(
                self._path, maxBytes=FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8"
            )
        except OSError as error:
            logging.getLogger(__name__).warning("cannot write Spark's log: %s", error)
            file = logging.NullHandler()
        with open(reading, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                file.emit(logging.makeLogRecord({"msg": line.rstrip("\n")}))
        file.close()
