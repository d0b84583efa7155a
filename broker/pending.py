"""Pending: an answer that comes later. Handlers return one when a request has to wait."""

from collections.abc import Callable
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class Pending(Generic[T]):
    """A response that will be there once data arrives, a group is complete or time is up.

    Completed under the broker's lock, once; waiters are called at once, in the completing thread.
    A caller that no longer wants the answer abandons it, so that its resources are released.
    """

    __slots__ = ("_callback", "_done", "_on_abandon", "_value")

    def __init__(self, on_abandon: Callable[[], None] | None = None) -> None:
        """`on_abandon` is called when the answer is no longer wanted."""
        self._done = False
        self._on_abandon = on_abandon
        self._value: T | None = None
        self._callback: Callable[[T], None] | None = None

    @property
    def done(self) -> bool:
        """Whether the answer is there."""
        return self._done

    @property
    def value(self) -> T:
        """The answer, which must be there."""
        assert self._done, "the answer is still to come"
        return cast(T, self._value)

    def complete(self, value: T) -> bool:
        """Give the answer; False if it was given before, which then stands."""
        if self._done:
            return False
        self._done = True
        self._value = value
        # Waiting callers often hold this too: drop it, so that no cycle is left to the collector.
        callback, self._callback, self._on_abandon = self._callback, None, None
        if callback is not None:
            callback(value)
        return True

    def abandon(self) -> None:
        """The answer is no longer wanted: release its resources. Called under the broker's lock."""
        if self._done:
            return
        on_abandon, self._callback, self._on_abandon = self._on_abandon, None, None
        if on_abandon is not None:
            self._done = True
            on_abandon()

    def then(self, callback: Callable[[T], None]) -> None:
        """Call back with the answer: now if it is there, else when it comes. One callback only."""
        assert self._callback is None, "a pending answer has one reader"
        if not self._done:
            self._callback = callback
        elif self._value is not None:  # else it was abandoned meanwhile
            callback(self._value)
