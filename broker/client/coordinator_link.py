"""CoordinatorLink: requests to the broker that coordinates a group, found without waiting."""

from concurrent.futures import Future
from typing import cast

from broker.client.answers import check
from broker.client.cluster import Cluster, find_coordinator, read_coordinator
from broker.client.retry import is_retriable
from broker.client.wake_signal import Signal
from broker.errors import ConnectionFailed, MillstreamError
from broker.protocol.messages.metadata import FindCoordinatorResponse


class CoordinatorLink:
    """Finds the coordinator; the caller calls `step` until it is known.

    Two threads may call `step` at once (the caller's and the heartbeat's): at worst both look it
    up.
    """

    def __init__(self, cluster: Cluster, group_id: str, signal: Signal) -> None:
        """The signal is set whenever a response arrives."""
        self._cluster = cluster
        self._group_id = group_id
        self._signal = signal
        self._search: Future[object] | None = None
        self._failures = 0
        self._not_before_ms = 0

    @property
    def retry_backoff_ms(self) -> int:
        """The time before a refused request is retried."""
        return self._cluster.config.retry_backoff_ms

    def step(self) -> int | None:
        """Look up the coordinator; None when it is known, else the maximum wait in ms."""
        if self._node_id() is not None:
            return None
        search = self._search
        if search is None:
            wait_ms = self._not_before_ms - self._cluster.clock.monotonic_ms()
            if wait_ms > 0:
                return wait_ms
            search = self._search = self._ask()
        if not search.done():
            return self._cluster.config.request_timeout_ms
        self._search = None
        try:
            self._take(cast(FindCoordinatorResponse, search.result()))
        except MillstreamError as error:
            if not is_retriable(error):
                raise
            return self._pause()
        self._failures = 0
        return None

    def send(
        self, request: object, *, timeout_ms: int | None = None, version_max: int | None = None
    ) -> Future[object]:
        """Send to the known coordinator; ConnectionFailed if it is unknown."""
        node_id = self._node_id()
        if node_id is None:
            raise ConnectionFailed(f'the coordinator of group "{self._group_id}" is not known')
        future = self._cluster.submit(
            node_id, request, timeout_ms=timeout_ms, version_max=version_max
        )
        future.add_done_callback(lambda _: self._signal.set())
        return future

    def forget(self) -> None:
        """Look up the coordinator again, after a backoff: it moved or does not respond."""
        if self._node_id() is not None:
            self._cluster.forget_coordinator("group", self._group_id)
            self._pause()

    def _node_id(self) -> int | None:
        return self._cluster.known_coordinator("group", self._group_id)

    def _pause(self) -> int:
        self._failures += 1
        wait_ms = self._cluster.backoff.delay_ms(self._failures)
        self._not_before_ms = self._cluster.clock.monotonic_ms() + wait_ms
        return wait_ms

    def _ask(self) -> Future[object]:
        search = self._cluster.submit(None, find_coordinator("group", self._group_id))
        search.add_done_callback(lambda _: self._signal.set())
        return search

    def _take(self, answer: FindCoordinatorResponse) -> None:
        found = read_coordinator(answer)
        check(
            found.error_code,
            f'looking for the coordinator of group "{self._group_id}"',
            message=found.error_message,
        )
        self._cluster.learn_coordinator("group", self._group_id, found)
