"""Handles the signals that stop a command."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType

# Shells add this to the number of the signal that ended a command.
SIGNALLED = 128


def stop_signals() -> list[signal.Signals]:
    """Signals that stop a command; SIGHUP unless it is ignored, as with `nohup`."""
    signals = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return signals


class StopRequest:
    """Like threading.Event, but safe to set in a signal handler of the thread that waits.

    An Event is not: a signal that arrives while `wait` holds its lock would wait for it forever.
    """

    def __init__(self) -> None:
        self._requests: SimpleQueue[None] = SimpleQueue()
        self.is_set = False
        self.signal: int | None = None

    def set(self, number: int | None = None) -> None:
        """Request the stop; safe in a signal handler, with its signal."""
        self.is_set = True
        self.signal = number
        self._requests.put(None)

    def wait(self, timeout_s: float) -> bool:
        """Wait until the stop is requested, or for the timeout; returns whether it was."""
        if not self.is_set:
            try:
                self._requests.get(timeout=timeout_s)
            except Empty:
                return self.is_set
        return True

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0, or that of its signal in a shell."""
        return 0 if self.signal is None else SIGNALLED + self.signal


@contextmanager
def catch_stop_signals() -> Iterator[StopRequest]:
    """A request set by the first signal, so that work can be finished; the second interrupts it."""
    stop = StopRequest()

    def on_signal(number: int, frame: FrameType | None) -> None:
        del frame
        if stop.is_set:
            raise KeyboardInterrupt
        stop.set(number)

    with handle_stop_signals(on_signal):
        yield stop


@contextmanager
def handle_stop_signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call the handler for signals that stop a command."""
    before = {number: signal.signal(number, handler) for number in stop_signals()}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
