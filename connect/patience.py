"""Patience: what a broker that is away makes fail is tried again until it is back."""

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


def patiently(what: str, attempt: Callable[[], T], stop: StopSignal) -> T:
    """Try until it works; raises what cannot pass, and TaskStopped when the task shall end."""
    while True:
        try:
            return attempt()
        except MillstreamError as error:
            if not may_pass(error):
                raise
            logger.warning("cannot %s now, will try again: %s", what, error)
        stop.pause(RETRY_MS)


def may_pass(error: BaseException | None) -> bool:
    """Whether the same attempt may work later, because of the error or of what caused it."""
    if error is None:
        return False
    passes = is_retriable(error) or isinstance(error, RetriableError | BufferFull)
    return passes or may_pass(error.__cause__)
