"""Retry: the same attempt again, later and later, until it works or the time is up."""

from collections.abc import Callable
from random import Random
from typing import TypeVar

from broker import concurrency
from broker.clock import Clock
from broker.errors import (
    BrokerError,
    ClientError,
    ConnectionFailed,
    MillstreamError,
    RequestTimeout,
)

T = TypeVar("T")

JITTER = 0.2


class Backoff:
    """Delays that double from the first to the longest, each moved a little at random."""

    def __init__(self, first_ms: int, longest_ms: int, random: Random) -> None:
        self._first_ms = first_ms
        self._longest_ms = max(first_ms, longest_ms)
        self._random = random

    def delay_ms(self, failures: int) -> int:
        """How long to wait after a number of failures in a row (1, 2, ...)."""
        base_ms = min(self._first_ms * 2 ** min(failures - 1, 20), self._longest_ms)
        return int(base_ms * self._random.uniform(1 - JITTER, 1 + JITTER))


def is_retriable(error: BaseException) -> bool:
    """Whether the same attempt may work later."""
    if isinstance(error, BrokerError):
        return error.retriable
    return isinstance(error, ConnectionFailed | RequestTimeout)


class Retrier:
    """Runs attempts; closing it stops those that wait."""

    def __init__(self, clock: Clock, backoff: Backoff) -> None:
        self._clock = clock
        self._backoff = backoff
        self._closed = False
        self._changed = concurrency.Condition()

    def run(self, what: str, attempt: Callable[[int], T], *, timeout_ms: int) -> T:
        """Call `attempt(time left)` until it returns; errors that cannot pass go through.

        When the time is up, RequestTimeout says what was tried and how the last attempt failed.
        """
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        failures = 0
        while True:
            left_ms = deadline_ms - self._clock.monotonic_ms()
            try:
                return attempt(max(1, left_ms))
            except MillstreamError as error:
                failures += 1
                if not is_retriable(error):
                    raise
                delay_ms = self._backoff.delay_ms(failures)
                if self._clock.monotonic_ms() + delay_ms >= deadline_ms:
                    raise _gave_up(what, timeout_ms, failures, error) from error
            self._wait(delay_ms)

    def _wait(self, delay_ms: int) -> None:
        deadline_ms = self._clock.monotonic_ms() + delay_ms
        with self._changed:
            while (left_ms := deadline_ms - self._clock.monotonic_ms()) > 0:
                if self._closed:
                    raise ClientError("the client is closed")
                self._clock.wait(self._changed, left_ms)

    def close(self) -> None:
        """Stop those that wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def _gave_up(what: str, timeout_ms: int, attempts: int, last: MillstreamError) -> RequestTimeout:
    tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    return RequestTimeout(
        f"{what} did not succeed within {timeout_ms} ms ({tries}); last error: {last.message}",
        hint=last.hint or "check that the brokers are up and reachable, or raise the timeout",
    )
