"""Logs: adds the log messages of a simulation to its history."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from millstream.simulation.history import History
from millstream.simulation.scheduler import Scheduler

PACKAGES = (
    "broker",
    "streams",
    "sql",
    "connect",
    "processing",
)  # the last is the logger of queries


class HistoryHandler(logging.Handler):
    """Writes log records of simulated processes into a history."""

    def __init__(self, history: History, scheduler: Scheduler) -> None:
        super().__init__(logging.INFO)
        self._history = history
        self._scheduler = scheduler

    def emit(self, record: logging.LogRecord) -> None:
        """Add a message; tracebacks are not part of the digest."""
        task = self._scheduler.current
        if task is None:
            return
        self._history.add(task.process, f"logs {record.levelname}:", record.getMessage())
        if record.exc_info is not None:
            self._history.detail(logging.Formatter().formatException(record.exc_info))


@contextmanager
def logged(history: History, scheduler: Scheduler) -> Iterator[None]:
    """Write logs only to the history, inside `with`."""
    handler = HistoryHandler(history, scheduler)
    loggers = [logging.getLogger(name) for name in PACKAGES]
    before = [(each.propagate, each.level) for each in loggers]
    for each in loggers:
        each.addHandler(handler)
        each.propagate = False
        each.setLevel(logging.INFO)
    try:
        yield
    finally:
        for each, (propagate, level) in zip(loggers, before, strict=True):
            each.removeHandler(handler)
            each.propagate = propagate
            each.setLevel(level)
