"""AppState: the state of an application, and its listeners.

         start                all tasks run
CREATED ------> REBALANCING <---------------> RUNNING
   |                 |                           |
   |                 +------- close -------------+----> PENDING_SHUTDOWN --> NOT_RUNNING
   |                 +------- failure -----------+----> PENDING_ERROR -----> ERROR
   +---- close ----> PENDING_SHUTDOWN
"""

import logging
from collections import deque
from collections.abc import Callable
from enum import Enum

from broker import concurrency
from broker.clock import Clock

logger = logging.getLogger(__name__)


class AppState(Enum):
    """The state of an application; see the diagram above."""

    CREATED = "created"
    REBALANCING = "rebalancing"
    RUNNING = "running"
    PENDING_SHUTDOWN = "pending shutdown"
    NOT_RUNNING = "not running"
    PENDING_ERROR = "pending error"
    ERROR = "error"


NEXT = {
    AppState.CREATED: {AppState.REBALANCING, AppState.PENDING_SHUTDOWN, AppState.PENDING_ERROR},
    AppState.REBALANCING: {
        AppState.RUNNING,
        AppState.PENDING_SHUTDOWN,
        AppState.PENDING_ERROR,
    },
    AppState.RUNNING: {
        AppState.REBALANCING,
        AppState.PENDING_SHUTDOWN,
        AppState.PENDING_ERROR,
    },
    AppState.PENDING_SHUTDOWN: {AppState.NOT_RUNNING},
    AppState.PENDING_ERROR: {AppState.ERROR},
    AppState.NOT_RUNNING: set[AppState](),
    AppState.ERROR: set[AppState](),
}
ALIVE = frozenset({AppState.REBALANCING, AppState.RUNNING})
ENDED = frozenset({AppState.NOT_RUNNING, AppState.ERROR})

StateListener = Callable[[AppState, AppState], None]  # new state, old state


class StateMachine:
    """The state of an application; any thread may use it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = concurrency.Condition()
        self._state = AppState.CREATED
        self._listeners: list[StateListener] = []
        self._pending: deque[tuple[AppState, AppState]] = deque()
        self._notifying = False

    @property
    def state(self) -> AppState:
        """The current state."""
        return self._state

    def listen(self, listener: StateListener) -> None:
        """Call a function at each change."""
        self._listeners.append(listener)

    def enter(self, state: AppState) -> bool:
        """Change to a state if that is allowed from the current one; returns whether it was."""
        return self.choose(lambda: state)

    def choose(self, choice: Callable[[], AppState | None]) -> bool:
        """Like `enter`, with a state that is computed under the lock."""
        with self._changed:
            old, state = self._state, choice()
            if state is None or state not in NEXT[old]:
                return False
            self._state = state
            self._pending.append((state, old))
            self._changed.notify_all()
        self._notify()
        return True

    def _notify(self) -> None:
        """Notify listeners of changes in order, by one thread at a time; others do not wait."""
        while True:
            with self._changed:
                if self._notifying or not self._pending:
                    return
                self._notifying = True
                new, old = self._pending.popleft()
            try:
                self._notify_listeners(new, old)
            finally:
                with self._changed:
                    self._notifying = False

    def _notify_listeners(self, new: AppState, old: AppState) -> None:
        for listener in list(self._listeners):
            try:
                listener(new, old)
            except Exception:
                # An error in the user's listener must not affect the application.
                logger.exception("a state listener failed")

    def wait_for(self, states: frozenset[AppState], timeout_ms: int | None) -> bool:
        """Wait for one of these states; False on timeout, or in another final state."""
        deadline_ms = None if timeout_ms is None else self._clock.monotonic_ms() + timeout_ms
        with self._changed:
            while self._state not in states:
                if self._state in ENDED:
                    return False
                left_ms = None if deadline_ms is None else deadline_ms - self._clock.monotonic_ms()
                if left_ms is not None and left_ms <= 0:
                    return False
                self._clock.wait(self._changed, left_ms)
        return True
