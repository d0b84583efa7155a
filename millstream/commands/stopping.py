"""Stopping: which signals ask for it, and what a handler of them sets."""

import signal
from queue import Empty, SimpleQueue


def stop_signals() -> list[signal.Signals]:
    """Signals that stop a command; a closed terminal does, unless `nohup` has it ignored."""
    found = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        found.append(signal.SIGHUP)
    return found


class StopAsked:
    """As threading.Event, but safe to set in a signal handler of the thread that waits.

    An Event is not: a signal that comes while `wait` holds its lock would wait for it for ever.
    """

    def __init__(self) -> None:
        """Not asked yet."""
        self._asked: SimpleQueue[None] = SimpleQueue()
        self._is_set = False

    def set(self) -> None:
        """Ask; a handler may."""
        self._is_set = True
        self._asked.put(None)

    def wait(self, timeout_s: float) -> bool:
        """Whether it was asked, at the latest when the time is up."""
        if not self._is_set:
            try:
                self._asked.get(timeout=timeout_s)
            except Empty:
                return self._is_set
        return True
