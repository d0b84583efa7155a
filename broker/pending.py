"""Pending: a response that is completed later; handlers return one if a request must wait."""

from collections.abc import Callable
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class Pending(Generic[T]):
    """A response that is completed when data arrives, a group is complete or after a timeout.

    It is completed once, under the broker's lock; the callback is called immediately, in the
    completing thread. A caller that no longer needs the response abandons it, which releases its
    resources.
    """

    __slots__ = ("_callback", "_done", "_on_abandon", "_value")

    def __init__(self, on_abandon: Callable[[], None] | None = None) -> None:
        """`on_abandon` is called when the response is abandoned."""
        self._done = False
        self._on_abandon = on_abandon
        self._value: T | None = None
        self._callback: Callable[[T], None] | None = None

    @property
    def done(self) -> bool:
        """Whether the response is available."""
        return self._done

    @property
    def value(self) -> T:
        """The response, which must be available."""
        assert self._done, "the answer is still to come"
        return cast(T, self._value)

    def complete(self, value: T) -> bool:
        """Set the response; returns False if it was already set, and does not change it."""
        if self._done:
            return False
        self._done = True
        self._value = value
        # Callbacks often reference this object: drop them, to leave no cycle to the collector.
        callback, self._callback, self._on_abandon = self._callback, None, None
        if callback is not None:
            callback(value)
        return True

    def abandon(self) -> None:
        """Release the resources of an unneeded response. Called under the broker's lock."""
        if self._done:
            return
        on_abandon, self._callback, self._on_abandon = self._on_abandon, None, None
        if on_abandon is not None:
            self._done = True
            on_abandon()

    def then(self, callback: Callable[[T], None]) -> None:
        """Call back with the response, now or when it is completed; only one callback."""
        assert self._callback is None, "a pending answer has one reader"
        if not self._done:
            self._callback = callback
        elif self._value is not None:  # else it was abandoned meanwhile
            callback(self._value)
