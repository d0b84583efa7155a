"""A clock whose waits return immediately."""

import threading

from broker.clock import ManualClock


class HastyClock(ManualClock):
    """Who waits moves the time; every wait is written down."""

    def __init__(self) -> None:
        super().__init__()
        self.waits_ms: list[int] = []

    def wait(self, condition: threading.Condition, timeout_ms: int | None) -> bool:
        assert timeout_ms is not None
        self.waits_ms.append(timeout_ms)
        self._now_ms += timeout_ms
        return False
