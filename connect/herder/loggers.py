"""Log levels, by Java's names, for the REST API."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from broker import concurrency
from broker.clock import Clock
from connect.errors import BadRequest, NotFound

ROOT = "root"
# Java's additional levels are between and beyond Python's.
LEVELS = {
    "OFF": 100,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
    "ALL": 1,
}


@dataclass(frozen=True, slots=True)
class LoggerLevel:
    """The level of a logger, and when it was last set."""

    level: str
    last_modified_ms: int | None


class Loggers:
    """The loggers of this process. Any thread may call any method."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = concurrency.Lock()
        self._modified_ms: dict[str, int] = {}

    def levels(self) -> dict[str, LoggerLevel]:
        """All loggers with a level of their own, sorted by name."""
        with self._lock:
            return {name: self._level(each) for name, each in sorted(_with_level())}

    def level(self, name: str) -> LoggerLevel:
        """The level of one logger; NotFound if it has none of its own."""
        with self._lock:
            for known, each in _with_level():
                if known == name:
                    return self._level(each)
        raise NotFound(f"Logger {name} not found.")

    def set_level(self, name: str, level: str | None) -> list[str]:
        """Set the level of a logger and of all below it; returns the changed loggers."""
        number = LEVELS[checked_level(level)]
        with self._lock:
            below = "" if name == ROOT else f"{name}."
            found = {known: each for known, each in _with_level() if known.startswith(below)}
            found[name] = logging.getLogger(None if name == ROOT else name)
            changed = sorted(known for known, each in found.items() if each.level != number)
            for known in changed:
                found[known].setLevel(number)
                self._modified_ms[known] = self._clock.now_ms()
        return changed

    def _level(self, each: logging.Logger) -> LoggerLevel:
        names = {number: name for name, number in LEVELS.items()}
        number = max((known for known in names if known <= each.level), default=LEVELS["ALL"])
        return LoggerLevel(names[number], self._modified_ms.get(each.name))


def checked_level(level: str | None) -> str:
    """A level by Java's name; an invalid one is refused as in Kafka Connect."""
    if level is None:
        raise BadRequest("Desired 'level' parameter was not specified in request.")
    name = level.strip().upper()
    if name not in LEVELS:
        raise NotFound(f"invalid log level '{level}'.")
    return name


def _with_level() -> Iterator[tuple[str, logging.Logger]]:
    yield ROOT, logging.getLogger()
    for name, each in list(logging.root.manager.loggerDict.items()):
        if isinstance(each, logging.Logger) and each.level != logging.NOTSET:
            yield name, each
