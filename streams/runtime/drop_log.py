"""DropLog: logs dropped records, at a limited rate."""

import logging

from broker.clock import Clock
from streams.runtime.current import Current

logger = logging.getLogger(__name__)

QUIET_MS = 10_000


class DropLog:
    """Logs the first dropped record of a node, then regularly their number; all others at DEBUG.

    The level is WARNING, or INFO for drops that are expected in normal operation.
    """

    __slots__ = ("_clock", "_current", "_log_at_ms", "_node", "_task_id", "_unlogged")

    def __init__(self, node: str, task_id: str, current: Current, clock: Clock) -> None:
        self._node = node
        self._task_id = task_id
        self._current = current
        self._clock = clock
        self._unlogged = {logging.WARNING: 0, logging.INFO: 0}
        self._log_at_ms: dict[int, int] = {}

    def add(self, reason: str, *, expected: bool = False) -> None:
        """Log that the current record is dropped."""
        level = logging.INFO if expected else logging.WARNING
        self._unlogged[level] = count = self._unlogged[level] + 1
        now_ms = self._clock.monotonic_ms()
        number = "a record"
        if now_ms >= self._log_at_ms.get(level, now_ms):
            if count > 1:
                number = f"{count} records since the last message"
            self._unlogged[level] = 0
            self._log_at_ms[level] = now_ms + QUIET_MS
        else:
            level = logging.DEBUG
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
