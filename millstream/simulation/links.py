"""Links: connections between two simulated processes, and their faults.

            hold                      release
    OPEN ---------> HELD (partition) ---------> OPEN      bytes wait, and arrive later
      | cut, power loss
      +-----------> LOST      one end or both may not notice: sent bytes are lost, and the response
                              to them is a reset, when the other machine can be reached

Each direction is a Stream. Bytes arrive in order, after a delay, in pieces.
"""

from collections import deque
from enum import Enum

from millstream.simulation.network_conditions import NetworkConditions
from millstream.simulation.scheduler import Process
from millstream.simulation.sockets import END, RESET, SimulatedSocket, Stream

PIECES_CHANCE = 0.05


class LinkState(Enum):
    """What happens to sent bytes."""

    OPEN = "open"
    HELD = "held"
    LOST = "lost"


class Link:
    """A connection; `client` opened it."""

    def __init__(
        self, conditions: NetworkConditions, client: SimulatedSocket, server: SimulatedSocket
    ) -> None:
        self._conditions = conditions
        self.client = client
        self.server = server
        self.processes: tuple[Process, Process] = (client.process, server.process)
        self.state = LinkState.OPEN
        capacity = conditions.capacity()
        self._streams = {server: Stream(capacity), client: Stream(capacity)}  # by receiver
        self._held: deque[tuple[SimulatedSocket, memoryview | str]] = deque()
        self._held_since_us = 0
        self._unanswered: dict[
            SimulatedSocket, None
        ] = {}  # sockets that have sent bytes on a lost link
        for socket in (client, server):
            socket.link = self
            socket.incoming = self._streams[socket]
            socket.outgoing = self._streams[self._other(socket)]

    def _other(self, socket: SimulatedSocket) -> SimulatedSocket:
        return self.server if socket is self.client else self.client

    @property
    def is_over(self) -> bool:
        """Whether both ends are closed or killed."""
        return all(
            socket.is_closed or not socket.process.is_alive for socket in (self.client, self.server)
        )

    # --- called by the sockets ------------------------------------------------------------------

    def sent(self, socket: SimulatedSocket, data: bytes) -> None:
        """Handle sent bytes, depending on the state."""
        other = self._other(socket)
        self._conditions.add_to_digest(data)
        if self.state is LinkState.HELD:
            self._held.append((other, memoryview(data)))
        elif self.state is LinkState.LOST or other.is_closed:
            self._unanswered[socket] = None
            if not self._conditions.is_unreachable(*self.processes):
                self._reset(socket)
        else:
            self._deliver(other, memoryview(data))
            if self._conditions.must_cut():
                self.cut()

    def _deliver(self, to: SimulatedSocket, data: memoryview) -> None:
        conditions, stream = self._conditions, self._streams[to]
        delay_us = conditions.delay_us(*self.processes)
        if len(data) > 1 and conditions.random.random() < PIECES_CHANCE:
            at = conditions.random.randrange(1, len(data))
            to.changed(stream.put(data[:at], conditions.now_us + delay_us))
            data = data[at:]
            delay_us += conditions.delay_us(*self.processes)
        at_us = stream.put(data, conditions.now_us + delay_us)
        if len(stream.parts) == 1:  # otherwise the receiver already waits for an earlier one
            to.changed(at_us)

    def received(self, socket: SimulatedSocket) -> None:
        """Notify the other end that it can send more."""
        self._other(socket).changed(self._conditions.now_us)

    def closed(self, socket: SimulatedSocket, *, unread: bool) -> None:
        """Close one end: the other gets the end, or possibly a reset if bytes were not read."""
        other = self._other(socket)
        end = RESET if unread and self._conditions.random.random() < 0.5 else END
        self._end(other, end)

    def _end(self, to: SimulatedSocket, end: str) -> None:
        if to.is_closed:
            return
        if self.state is LinkState.HELD:
            self._held.append((to, end))
        elif self.state is LinkState.OPEN:
            stream = self._streams[to]
            delay_us = self._conditions.delay_us(*self.processes)
            to.changed(stream.finish(end, self._conditions.now_us + delay_us))

    def _reset(self, socket: SimulatedSocket) -> None:
        """Send a reset for bytes of an unknown connection."""
        if not socket.is_closed:
            delay_us = self._conditions.delay_us(*self.processes)
            at_us = self._conditions.now_us + delay_us
            socket.changed(self._streams[socket].finish(RESET, at_us))

    # --- called by the network ------------------------------------------------------------------

    def cut(self) -> None:
        """Break the connection: some bytes in transit are lost; each end may or may not notice."""
        if self.state is LinkState.LOST:
            return
        self.vanish()
        for socket, stream in self._streams.items():
            end = self._conditions.random.choice((END, RESET, RESET, None))
            if end is not None and not socket.is_closed:
                at_us = self._conditions.now_us + self._conditions.delay_us(*self.processes)
                socket.changed(stream.finish(end, at_us))

    def vanish(self) -> None:
        """Lose a part of the bytes in transit; neither end is notified.

        An end that has unacknowledged bytes sends them again, and is reset when the other machine
        can be reached; an end that waits sends keepalives.
        """
        self.state = LinkState.LOST
        for to, _ in self._held:
            self._unanswered[self._other(to)] = None
        self._held.clear()
        for socket, stream in self._streams.items():
            if self._lose_tail(stream):
                self._unanswered[self._other(socket)] = None
        for socket, stream in self._streams.items():
            after_us = socket.timeout_us
            if after_us is not None and not socket.is_closed:
                socket.changed(stream.finish(RESET, self._conditions.now_us + after_us))
        if not self._conditions.is_unreachable(*self.processes):
            self._answer()

    def _answer(self) -> None:
        unanswered, self._unanswered = self._unanswered, {}
        for socket in unanswered:
            self._reset(socket)

    def _lose_tail(self, stream: Stream) -> bool:
        """Lose bytes in transit from a random one on; returns whether there were any."""
        conditions = self._conditions
        coming = [part for part in stream.parts if part[0] > conditions.now_us]
        total = sum(len(data) for _, data in coming)
        stream.end = None
        if not coming:
            return False
        kept = conditions.random.randrange(total + 1)
        for _ in coming:
            stream.parts.pop()
        for at_us, data in coming:
            if kept:
                stream.parts.append((at_us, data[:kept]))
                kept -= len(stream.parts[-1][1])
        return True

    def hold(self) -> None:
        """Hold all bytes, also those in transit, until `release`."""
        if self.state is not LinkState.OPEN:
            return
        self.state = LinkState.HELD
        self._held_since_us = self._conditions.now_us
        for socket, stream in self._streams.items():
            coming = [part for part in stream.parts if part[0] > self._conditions.now_us]
            for _ in coming:
                stream.parts.pop()
            self._held.extend((socket, data) for _, data in coming)
            if stream.end is not None and stream.end_us > self._conditions.now_us:
                self._held.append((socket, stream.end))
                stream.end = None

    def release(self) -> None:
        """Deliver held bytes, unless one end has timed out."""
        if self.state is LinkState.HELD and self._has_timed_out():
            self.vanish()
        elif self.state is LinkState.HELD:
            self.state = LinkState.OPEN
            held, self._held = self._held, deque()
            for socket, data in held:
                if isinstance(data, str):
                    self._end(socket, data)
                else:
                    self._deliver(socket, data)
        elif self.state is LinkState.LOST:
            self._answer()

    def _has_timed_out(self) -> bool:
        held_us = self._conditions.now_us - self._held_since_us
        limits_us = [socket.timeout_us for socket in (self.client, self.server)]
        return any(limit_us is not None and held_us > limit_us for limit_us in limits_us)

    def end_of(self, process: Process) -> None:
        """Close the sockets of a killed process."""
        conditions = self._conditions
        for socket in (self.client, self.server):
            if socket.process is process and not socket.is_closed:
                socket.is_closed = True
                if conditions.random.random() < 0.5:
                    if self.state is LinkState.OPEN:
                        self._lose_tail(self._streams[self._other(socket)])
                    self._end(self._other(socket), RESET)
                else:
                    self._end(self._other(socket), END)
