"""DropLog: says that a node drops records, without a line for each of a thousand late ones."""

import logging

from broker.clock import Clock
from streams.runtime.current import Current

logger = logging.getLogger(__name__)

QUIET_MS = 10_000


class DropLog:
    """Warns of the first record a node drops, then now and then of how many; the rest: debug."""

    __slots__ = ("_clock", "_current", "_node", "_task_id", "_untold", "_warn_at_ms")

    def __init__(self, node: str, task_id: str, current: Current, clock: Clock) -> None:
        """Nothing was dropped yet."""
        self._node = node
        self._task_id = task_id
        self._current = current
        self._clock = clock
        self._untold = 0
        self._warn_at_ms: int | None = None

    def add(self, reason: str) -> None:
        """The current record is dropped."""
        self._untold += 1
        now_ms = self._clock.monotonic_ms()
        level = logging.DEBUG
        number = "a record"
        if self._warn_at_ms is None or now_ms >= self._warn_at_ms:
            level = logging.WARNING
            if self._untold > 1:
                number = f"{self._untold} records since it was last said"
            self._untold = 0
            self._warn_at_ms = now_ms + QUIET_MS
        if logger.isEnabledFor(level):
            logger.log(
                level,
                'node "%s" of task %s drops %s: %s; it came from %s',
                self._node,
                self._task_id,
                number,
                reason,
                self._current.position,
            )
