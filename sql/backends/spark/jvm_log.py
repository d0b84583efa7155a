"""JvmLog: what Spark's JVM and its Python workers say, in a file that does not grow for ever."""

import logging
import os
import threading
from logging.handlers import RotatingFileHandler
from pathlib import Path

FILE_BYTES = 4 << 20
FILES_KEPT = 2


class JvmLog:
    """A pipe for a new process, and a thread that writes what comes through it to a file.

    Inside `with` the pipe can be given away; the thread ends with the last process that has it.
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
        """Copy lines; what cannot be written is dropped, or the process would wait for us."""
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
