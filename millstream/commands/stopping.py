"""Stopping: which signals ask for it, and what a handler of them sets."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType

# Shells add this to the number of the signal that ended a command.
SIGNALLED = 128


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
        self.is_set = False
        self.signal: int | None = None

    def set(self, number: int | None = None) -> None:
        """Ask; a handler may, with its signal."""
        self.is_set = True
        self.signal = number
        self._asked.put(None)

    def wait(self, timeout_s: float) -> bool:
        """Whether it was asked, at the latest when the time is up."""
        if not self.is_set:
            try:
                self._asked.get(timeout=timeout_s)
            except Empty:
                return self.is_set
        return True

    @property
    def exit_code(self) -> int:
        """What a command ends with: 0, or what shells show of its signal."""
        return 0 if self.signal is None else SIGNALLED + self.signal


@contextmanager
def signals_caught() -> Iterator[StopAsked]:
    """What the first signal sets, so that work in progress can be finished; the second ends it."""
    stop = StopAsked()

    def asked(number: int, frame: FrameType | None) -> None:
        del frame
        if stop.is_set:
            raise KeyboardInterrupt
        stop.set(number)

    with handled_by(asked):
        yield stop


@contextmanager
def handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call this for signals that stop a command."""
    before = {number: signal.signal(number, handler) for number in stop_signals()}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
