"""Follower: executes the commands of other servers of the service."""

import logging

from broker import concurrency
from broker.clock import Clock
from broker.errors import MillstreamError
from sql.engine.commands import Commands
from sql.queries import RetryPolicy

logger = logging.getLogger(__name__)

RETRY = RetryPolicy(initial_ms=1_000, max_ms=30_000)  # its interval, and backoff


class Follower:
    """The thread that executes the commands of other servers of the service."""

    def __init__(self, commands: Commands, clock: Clock) -> None:
        self._commands = commands
        self._clock = clock
        self._changed = concurrency.Condition()
        self._closed = False
        self._failure: str | None = None
        self._thread = concurrency.Thread(target=self._run, name="sql-follower", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def failure(self) -> str | None:
        """Why commands of other servers currently cannot be read; None if they can."""
        return self._failure

    def _run(self) -> None:
        failures = 0
        while True:
            with self._changed:
                if not self._closed:
                    self._clock.wait(self._changed, RETRY.wait_ms(failures))
                if self._closed:
                    return
            try:
                self._commands.follow()
            except Exception as error:  # whatever it is, later commands must be executed
                failures += 1
                self._report(error, RETRY.wait_ms(failures))
            else:
                failures, self._failure = 0, None

    def _report(self, error: Exception, wait_ms: int) -> None:
        self._failure = f"cannot read the commands of other servers: {error}"
        trace = None if isinstance(error, MillstreamError) else error
        logger.warning("%s; retrying in %d ms", self._failure, wait_ms, exc_info=trace)
