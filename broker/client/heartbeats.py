"""Heartbeats: keep the session of a group member alive, and notice when it is lost.

They are sent by a thread of their own, or by one that all clients of a process share.
"""

import logging
from concurrent.futures import Future
from enum import Enum
from typing import Protocol

from broker import concurrency
from broker.client.shared_threads import REST_MS_MAX, SharedThreads, Work
from broker.clock import Clock
from broker.errors import MillstreamError

logger = logging.getLogger(__name__)

DOUBLINGS_MAX = 10


class Due(Enum):
    """The next action that is due."""

    NOTHING = "wait"
    HEARTBEAT = "send a heartbeat"
    SESSION_EXPIRED = "the coordinator has not answered for a session"
    POLL_TOO_LATE = "the caller has not polled for too long"


class HeartbeatSchedule:
    """Decides when to do what; pure arithmetic on given times."""

    def __init__(self, interval_ms: int, session_ms: int, poll_max_ms: int) -> None:
        self._interval_ms = interval_ms
        self._session_ms = session_ms
        self._poll_max_ms = poll_max_ms
        self._polled_ms = 0
        self._answered_ms = 0
        self._next_ms = 0
        self._in_flight = False
        self._failures = 0  # in a row

    def joined(self, now_ms: int) -> None:
        """The member has a new generation: all times restart."""
        self._answered_ms = now_ms
        self._next_ms = now_ms + self._interval_ms
        self._in_flight = False
        self._failures = 0

    def polled(self, now_ms: int) -> None:
        """The caller has polled."""
        self._polled_ms = now_ms

    def sent(self, now_ms: int) -> None:
        """A heartbeat was sent."""
        self._in_flight = True
        self._next_ms = now_ms + self._interval_ms

    def answered(self, now_ms: int) -> None:
        """A heartbeat was answered."""
        self._in_flight = False
        self._answered_ms = now_ms
        self._failures = 0

    def failed(self, now_ms: int, retry_ms: int) -> None:
        """A heartbeat was not sent or not answered: retry with backoff, at most interval / 3."""
        self._in_flight = False
        backoff_ms = retry_ms << min(self._failures, DOUBLINGS_MAX)
        self._next_ms = now_ms + max(retry_ms, min(backoff_ms, self._interval_ms // 3))
        self._failures += 1

    def send_soon(self, now_ms: int) -> None:
        """Send the next heartbeat now, or after the one that is under way."""
        self._next_ms = min(self._next_ms, now_ms)

    def set_interval(self, interval_ms: int) -> None:
        """Use another interval from the next heartbeat on."""
        self._interval_ms = interval_ms

    def restart_session(self, now_ms: int) -> None:
        """Wait for the coordinator again."""
        self.failed(now_ms, 0)
        self._answered_ms = now_ms

    def next(self, now_ms: int) -> tuple[Due, int]:
        """The action that is due, or the time until the next one."""
        if now_ms - self._polled_ms >= self._poll_max_ms:
            return Due.POLL_TOO_LATE, 0
        if now_ms - self._answered_ms >= self._session_ms:
            return Due.SESSION_EXPIRED, 0
        deadlines = [self._polled_ms + self._poll_max_ms, self._answered_ms + self._session_ms]
        if not self._in_flight:
            if now_ms >= self._next_ms:
                return Due.HEARTBEAT, 0
            deadlines.append(self._next_ms)
        return Due.NOTHING, min(deadlines) - now_ms


class HeartbeatMember(Protocol):
    """The interface of a member that the heartbeat thread needs."""

    @property
    def needs_heartbeats(self) -> bool:
        """Whether the coordinator expects heartbeats now."""
        ...

    def send_heartbeat(self) -> Future[object] | None:
        """Send one heartbeat; None when the coordinator is unknown."""
        ...

    def on_poll_timeout(self) -> None:
        """Leave the group: max.poll.interval.ms has passed without a poll."""
        ...

    def on_session_timeout(self) -> None:
        """Look up the coordinator again: it has not answered for a session timeout."""
        ...


class Heartbeats:
    """Sends heartbeats from `start` to `stop`, while the member has joined."""

    def __init__(
        self,
        member: HeartbeatMember,
        schedule: HeartbeatSchedule,
        clock: Clock,
        *,
        retry_backoff_ms: int = 100,
        shared: SharedThreads | None = None,
    ) -> None:
        """Without shared threads, `start` creates one."""
        self._member = member
        self._schedule = schedule
        self._clock = clock
        self._retry_backoff_ms = retry_backoff_ms
        self._shared = shared
        self._changed = concurrency.Condition()
        self._stopping = False
        self._thread: concurrency.Thread | None = None
        self._work: Work | None = None

    def start(self) -> None:
        """Start, unless it was started before."""
        if self._thread is not None or self._work is not None:
            return
        self._stopping = False
        if self._shared is not None:
            with self._changed:  # an answer to the first heartbeat must find the work to wake
                self._work = self._shared.run(self._turn)
            return
        self._thread = concurrency.Thread(target=self._run, name="group-heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        thread, self._thread = self._thread, None
        work = self._work
        with self._changed:
            self._stopping = True
            self._notify_change()
        if thread is not None:
            thread.join()
        if work is not None:
            work.join()
            self._work = None

    def polled(self) -> None:
        """The caller has polled."""
        with self._changed:
            self._schedule.polled(self._clock.monotonic_ms())

    def joined(self) -> None:
        """The member has a new generation."""
        with self._changed:
            self._schedule.joined(self._clock.monotonic_ms())
            self._notify_change()

    def send_soon(self) -> None:
        """Send a heartbeat as soon as none is under way."""
        with self._changed:
            self._schedule.send_soon(self._clock.monotonic_ms())
            self._notify_change()

    def set_interval(self, interval_ms: int) -> None:
        """Use another interval from the next heartbeat on."""
        with self._changed:
            self._schedule.set_interval(interval_ms)

    def wake(self) -> None:
        """Check the state of the member again."""
        with self._changed:
            self._notify_change()

    def _notify_change(self) -> None:
        self._changed.notify_all()
        if self._work is not None:
            self._work.wake()

    def _turn(self) -> int | None:
        """Do all that is due, on a shared thread."""
        while True:
            with self._changed:
                if self._stopping:
                    return None
                due, wait_ms = self._next()
            if due is Due.NOTHING:
                return REST_MS_MAX if wait_ms is None else wait_ms
            if not self._try(due):
                return self._retry_backoff_ms

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._stopping:
                    return
                due, wait_ms = self._next()
                if due is Due.NOTHING:
                    self._clock.wait(self._changed, wait_ms)
                    continue
            # The lock is not held here: sending may complete immediately and acquire it.
            if not self._try(due):
                with self._changed:
                    if not self._stopping:
                        self._clock.wait(self._changed, self._retry_backoff_ms)

    def _try(self, due: Due) -> bool:
        """Do what is due; heartbeats continue after an unexpected error."""
        try:
            self._act(due)
        except Exception:
            logger.exception("unexpected error of a group member's heartbeats, which continue")
            with self._changed:
                self._schedule.failed(self._clock.monotonic_ms(), self._retry_backoff_ms)
            return False
        return True

    def _next(self) -> tuple[Due, int | None]:
        if not self._member.needs_heartbeats:
            return Due.NOTHING, None
        return self._schedule.next(self._clock.monotonic_ms())

    def _act(self, due: Due) -> None:
        match due:
            case Due.POLL_TOO_LATE:
                self._member.on_poll_timeout()
            case Due.SESSION_EXPIRED:
                self._member.on_session_timeout()
                with self._changed:
                    self._schedule.restart_session(self._clock.monotonic_ms())
            case Due.HEARTBEAT:
                with self._changed:
                    self._schedule.sent(self._clock.monotonic_ms())
                future = self._member.send_heartbeat()
                if future is None:
                    with self._changed:
                        self._schedule.failed(self._clock.monotonic_ms(), self._retry_backoff_ms)
                else:
                    future.add_done_callback(self._answered)
            case Due.NOTHING:
                pass

    def _answered(self, future: Future[object]) -> None:
        now_ms = self._clock.monotonic_ms()
        with self._changed:
            if future.cancelled() or isinstance(future.exception(), MillstreamError):
                self._schedule.failed(now_ms, self._retry_backoff_ms)
            else:
                self._schedule.answered(now_ms)
            self._notify_change()
