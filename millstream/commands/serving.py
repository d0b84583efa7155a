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
class RunningService:
    """A running service, with its description."""

    fields: Row
    text: str
    # The error if the service has failed, which also ends the command.
    failure: Callable[[], Exception | None] = lambda: None


# A context manager that starts the service and stops it at the end.
Service = Callable[[], AbstractContextManager[RunningService]]
# Called when all services have started.
Ready = Callable[[Sequence[RunningService]], None]


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
        if starting:  # a service may take long to start: a signal must interrupt it
            raise KeyboardInterrupt

    before = {number: signal.signal(number, on_signal) for number in stop_signals()}
    try:
        with ExitStack() as running:
            started: list[RunningService] = []
            for service in services:
                started.append(running.enter_context(service()))
                # Before it is announced: a reader of the output may stop it immediately.
                starting = len(started) < len(services)
                if ready is None or output.as_json:
                    output.line(started[-1].fields, started[-1].text)
            if ready is not None:
                ready(started)
            _wait(stop, seconds, started)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    with suppress(OSError):  # the terminal may be closed
        output.line({"event": "stopped"}, "stopped")


def _wait(stop: StopRequest, seconds: float, started: Sequence[RunningService]) -> None:
    end = time.monotonic() + seconds
    # Waits are short, so that the failure of a service is noticed.
    while (left := end - time.monotonic()) > 0 and not stop.wait(min(left, WAIT_S)):
        for service in started:
            if (failure := service.failure()) is not None:
                raise failure


@contextmanager
def open_target(bootstrap: str | None, data_dir: str | None) -> Iterator[Target]:
    """The cluster of a service, or an embedded broker with a data directory."""
    if data_dir is not None and bootstrap is not None:
        raise click.UsageError("--bootstrap and --data-dir cannot be combined")
    if data_dir is None:
        yield bootstrap or platform_address("broker")
        return
    with Broker(data_directory=data_dir) as broker:
        yield broker


def target_name(target: Target) -> str:
    """The name of the cluster in messages."""
    return target if isinstance(target, str) else "an embedded broker"
