"""IdleConnections: closes HTTP connections that wait for their client, to make room for others.

A connection is silent until its first request has arrived, and idle whenever it has no pending
request. Silent ones are closed after some seconds. If there are too many connections, the one that
has been idle longest is closed: clients that only connect cannot block others.
"""

import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

logger = logging.getLogger(__name__)

SILENT_SECONDS_MAX = 10.0
# Any: uvicorn's protocols and ours have no common type.
Connection = Any


def is_silent(connection: Connection) -> bool:
    """Whether no request has arrived yet."""
    if hasattr(connection, "cycle"):  # uvicorn's own
        return connection.cycle is None
    return bool(getattr(connection, "silent", False))


def is_idle(connection: Connection) -> bool:
    """Whether there is no pending request."""
    if hasattr(connection, "cycle"):
        return connection.cycle is None or bool(connection.cycle.response_complete)
    return is_silent(connection) or bool(getattr(connection, "idle", False))


class IdleConnections:
    """Closes idle connections of one server; called on its event loop."""

    def __init__(self, connections_max: int, *, now: Callable[[], float] = time.monotonic) -> None:
        """`connections_max` is the number of connections above which idle ones are closed."""
        self._connections_max = connections_max
        self._now = now
        self._idle_since: dict[Connection, float] = {}
        self._numbers: WeakKeyDictionary[Connection, int] = WeakKeyDictionary()
        self._opened = 0

    def opened(self, connection: Connection) -> None:
        """A client has connected; of equally long idle connections, the first one is closed."""
        self._opened += 1
        self._numbers[connection] = self._opened

    def close_silent(self, connections: Collection[Connection]) -> None:
        """Close connections whose first request has not arrived in time."""
        self._look(connections)
        oldest = self._now() - SILENT_SECONDS_MAX
        for connection, since in list(self._idle_since.items()):
            if since <= oldest and is_silent(connection):
                self._close(connection)

    def make_room(self, connections: Collection[Connection]) -> None:
        """Before a new connection: close the one that has been idle longest, if necessary."""
        if len(connections) < self._connections_max:
            return
        self._look(connections)
        longest = min(self._idle_since, key=self._age, default=None)
        if longest is not None:
            logger.debug(
                "%d connections: closing the one that has been idle longest", len(connections)
            )
            self._close(longest)

    def _age(self, connection: Connection) -> tuple[float, int]:
        return self._idle_since[connection], self._numbers.get(connection, 0)

    def _look(self, connections: Collection[Connection]) -> None:
        now = self._now()
        before = self._idle_since
        self._idle_since = {
            connection: before.get(connection, now)
            for connection in connections
            if is_idle(connection)
        }

    def _close(self, connection: Connection) -> None:
        self._idle_since.pop(connection, None)
        with suppress(Exception):  # whatever the protocol's state, the connection is removed
            connection.shutdown()
        transport = getattr(connection, "transport", None)
        if transport is not None and not transport.is_closing():
            transport.abort()
