"""Retries of operations that fail while a broker is unavailable."""

import logging
from collections.abc import Callable
from typing import TypeVar

from broker.client.retry import is_retriable
from broker.errors import BufferFull, MillstreamError
from connect.errors import RetriableError
from connect.stop_signal import StopSignal

logger = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_MS = 100


def retry_until_stopped(what: str, attempt: Callable[[], T], stop: StopSignal) -> T:
    """Retry until it succeeds; raises permanent errors, and TaskStopped when the task stops."""
    while True:
        try:
            return attempt()
        except MillstreamError as error:
            if not is_transient(error):
                raise
            logger.warning("cannot %s, will retry: %s", what, error)
        stop.pause(RETRY_MS)


def is_transient(error: BaseException | None) -> bool:
    """Whether a retry may succeed, by the error or its cause."""
    if error is None:
        return False
    passes = is_retriable(error) or isinstance(error, RetriableError | BufferFull)
    return passes or is_transient(error.__cause__)
