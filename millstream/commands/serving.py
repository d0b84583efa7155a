"""Services that run in this process until it is interrupted."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

import click

from broker import Broker
from broker.client.opening import Target
from broker.descriptors import raise_limit
from millstream.commands.options import platform_address
from millstream.commands.stopping import StopRequest, stop_signals
from millstream.output import Output, Row

WAIT_S = 0.5


@dataclass(frozen=True, slots=True)
class Started:
    """A running service, with its description."""

    facts: Row
    text: str
    # Why the service ended by itself, which ends the command too; None while it runs.
    failure: Callable[[], Exception | None] = lambda: None


# Starting gives what to say; leaving stops the service.
Service = Callable[[], AbstractContextManager[Started]]
# What is done when all are up; they run until it is over and a signal comes.
Ready = Callable[[Sequence[Started]], None]


def serve(
    services: Sequence[Service],
    output: Output,
    *,
    ready: Ready | None = None,
    seconds: float = float("inf"),
) -> None:
    """Start services in order, wait for a signal or the end of the time, stop in reverse order.

    Each service is announced when it has started, or all of them at once by `ready`.
    """
    raise_limit()
    stop = StopRequest()
    starting = True

    def on_signal(number: int, frame: FrameType | None) -> None:
        del number, frame
        stop.set()
        if starting:  # a service may wait long for what it needs: a signal must stop it
            raise KeyboardInterrupt

    before = {number: signal.signal(number, on_signal) for number in stop_signals()}
    try:
        with ExitStack() as running:
            up: list[Started] = []
            for service in services:
                up.append(running.enter_context(service()))
                # Before it is announced: the reader may stop the service immediately.
                starting = len(up) < len(services)
                if ready is None or output.as_json:
                    output.line(up[-1].facts, up[-1].text)
            if ready is not None:
                ready(up)
            _wait(stop, seconds, up)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    with suppress(OSError):  # a terminal that was closed hears nothing any more
        output.line({"event": "stopped"}, "stopped")


def _wait(stop: StopRequest, seconds: float, up: Sequence[Started]) -> None:
    end = time.monotonic() + seconds
    # Now and then: a signal that comes just before the wait begins does not end it.
    while (left := end - time.monotonic()) > 0 and not stop.wait(min(left, WAIT_S)):
        for service in up:
            if (failure := service.failure()) is not None:
                raise failure


@contextmanager
def opened_target(bootstrap: str | None, data_dir: str | None) -> Iterator[Target]:
    """The cluster of a service, or an embedded broker with a data directory."""
    if data_dir is not None and bootstrap is not None:
        raise click.UsageError("--bootstrap and --data-dir cannot be combined")
    if data_dir is None:
        yield bootstrap or platform_address("broker")
        return
    with Broker(data_directory=data_dir) as broker:
        yield broker


def shown_target(target: Target) -> str:
    """A cluster as it is shown to users."""
    return target if isinstance(target, str) else "an embedded broker"
