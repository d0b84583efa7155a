"""Follower: carries out what other servers of the same service write to the log."""

import logging
import threading

from broker.clock import Clock
from broker.errors import MillstreamError
from sql.engine.commands import Commands

logger = logging.getLogger(__name__)

FOLLOW_MS = 1_000


class Follower:
    """The thread that carries out what other servers of the service have logged."""

    def __init__(self, commands: Commands, clock: Clock) -> None:
        """`start` runs it."""
        self._commands = commands
        self._clock = clock
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="sql-follower", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._closed:
                    self._clock.wait(self._changed, FOLLOW_MS)
                if self._closed:
                    return
            try:
                self._commands.follow()
            except MillstreamError as error:
                logger.warning("commands of other servers were not read: %s", error)
