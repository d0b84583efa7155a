"""Services that run in this process until it is interrupted."""

import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from types import FrameType

from millstream.commands.stopping import StopAsked
from millstream.output import Output, Row

WAIT_S = 0.5


@dataclass(frozen=True, slots=True)
class Started:
    """A service that is up: what to say about it."""

    facts: Row
    text: str


# Starting gives what to say; leaving stops the service.
Service = Callable[[], AbstractContextManager[Started]]


def serve(services: Sequence[Service], output: Output) -> None:
    """Start services in order, wait for SIGINT or SIGTERM, stop them in the opposite order."""
    stop = StopAsked()
    starting = True

    def asked(number: int, frame: FrameType | None) -> None:
        del number, frame
        stop.set()
        if starting:  # a service may wait long for what it needs: nobody has to wait with it
            raise KeyboardInterrupt

    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with ExitStack() as running:
            for number, service in enumerate(services, start=1):
                started = running.enter_context(service())
                # Before it is told: who reads it may stop us at once.
                starting = number < len(services)
                output.line(started.facts, started.text)
            # Now and then: a signal that comes just before the wait begins does not end it.
            while not stop.wait(WAIT_S):
                pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    output.line({"event": "stopped"}, "stopped")
