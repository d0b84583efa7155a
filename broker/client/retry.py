"""Retries with backoff, until an attempt succeeds or the time is up."""

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
    """Delays that double from the first to the longest, with random jitter."""

    def __init__(self, first_ms: int, longest_ms: int, random: Random) -> None:
        self._first_ms = first_ms
        self._longest_ms = max(first_ms, longest_ms)
        self._random = random

    def delay_ms(self, failures: int) -> int:
        """The delay after a number of consecutive failures (1, 2, ...)."""
        base_ms = min(self._first_ms * 2 ** min(failures - 1, 20), self._longest_ms)
        return int(base_ms * self._random.uniform(1 - JITTER, 1 + JITTER))


def is_retriable(error: BaseException) -> bool:
    """Whether a retry may succeed."""
    if isinstance(error, BrokerError):
        return error.retriable
    return isinstance(error, ConnectionFailed | RequestTimeout)


class Retrier:
    """Runs attempts; closing it ends all waits."""

    def __init__(self, clock: Clock, backoff: Backoff) -> None:
        self._clock = clock
        self._backoff = backoff
        self._closed = False
        self._changed = concurrency.Condition()

    def run(self, what: str, attempt: Callable[[int], T], *, timeout_ms: int) -> T:
        """Call `attempt(time left)` until it returns; raises permanent errors.

        When the time is up, RequestTimeout contains the operation and the last error.
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
                    raise _timed_out(what, timeout_ms, failures, error) from error
            self._wait(delay_ms)

    def _wait(self, delay_ms: int) -> None:
        deadline_ms = self._clock.monotonic_ms() + delay_ms
        with self._changed:
            while (left_ms := deadline_ms - self._clock.monotonic_ms()) > 0:
                if self._closed:
                    raise ClientError("the client is closed")
                self._clock.wait(self._changed, left_ms)

    def close(self) -> None:
        """End all waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def _timed_out(what: str, timeout_ms: int, attempts: int, last: MillstreamError) -> RequestTimeout:
    tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    return RequestTimeout(
        f"{what} did not succeed within {timeout_ms} ms ({tries}); last error: {last.message}",
        hint=last.hint or "check that the brokers are up and reachable, or raise the timeout",
    )
