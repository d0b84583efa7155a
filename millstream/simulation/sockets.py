"""Simulated sockets: both ends of a connection, and the selector on which a thread waits.

    client's socket --Stream--> server's socket          bytes arrive in order, each at its time,
    client's socket <--Stream-- server's socket          at most as many as the stream can hold

There is no background work: a stream stores when its bytes arrive, and a selector blocks until the
first of these times. So a message costs one step of the thread that receives it.
"""

import errno
import heapq
import itertools
import socket as system
from collections import deque
from collections.abc import Iterable, Mapping
from selectors import EVENT_READ, EVENT_WRITE, BaseSelector, SelectorKey
from typing import Any, Protocol, cast

from broker.sockets import Address, Buffer, Socket
from millstream.simulation.scheduler import Process, Scheduler, Task

CALL_US = 5  # the cost of a call that sends or receives
RESET = "reset"
END = "end"


class Link(Protocol):
    """The interface of the network for a socket."""

    def sent(self, socket: "SimulatedSocket", data: bytes) -> None:
        """Handle sent bytes."""
        ...

    def received(self, socket: "SimulatedSocket") -> None:
        """Notify the other end that it can send more."""
        ...

    def closed(self, socket: "SimulatedSocket", *, unread: bool) -> None:
        """Close one end, possibly with unread bytes."""
        ...


class SocketConnector(Protocol):
    """Creates connections."""

    scheduler: Scheduler

    def connect(self, socket: "SimulatedSocket", address: Address) -> None:
        """Start to connect."""
        ...


class Stream:
    """Bytes in transit to one socket; `put` decides when they arrive."""

    __slots__ = ("capacity", "end", "end_us", "last_us", "parts", "size")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.parts: deque[tuple[int, memoryview]] = deque()  # when they arrive
        self.size = 0  # of all bytes that were sent and not received, also of held ones
        self.last_us = 0
        self.end: str | None = None
        self.end_us = 0  # when the end arrives

    def put(self, data: memoryview, at_us: int) -> int:
        """Add bytes that arrive at a time, but not before earlier ones; returns that time."""
        self.last_us = max(self.last_us, at_us)
        self.parts.append((self.last_us, data))
        return self.last_us

    def finish(self, end: str, at_us: int) -> int:
        """Add the end after bytes in transit; returns when it arrives."""
        at_us = max(self.last_us, at_us)
        if self.end is None or at_us < self.end_us or (self.end, end) == (END, RESET):
            self.end, self.end_us = end, at_us
        return self.end_us

    def next_us(self) -> int | None:
        """When the next bytes or the end arrive."""
        if self.parts:
            return self.parts[0][0]
        return None if self.end is None else self.end_us

    def receive(self, now_us: int, size_max: int, *, peek: bool = False) -> bytes | None:
        """Receive arrived bytes, at most `size_max`; None: nothing yet; empty: the end."""
        parts = self.parts
        if len(parts) == 1 and parts[0][0] <= now_us and len(parts[0][1]) <= size_max and not peek:
            data = parts.popleft()[1]  # the most frequent case: one part, received completely
            self.size -= len(data)
            return bytes(data)
        received = []
        left = size_max
        for at_us, data in parts:
            if at_us > now_us or left == 0:
                break
            received.append(data[:left])
            left -= len(received[-1])
        if not received:
            if self.parts or self.end is None or self.end_us > now_us:
                return None
            if self.end == RESET:
                raise ConnectionResetError(errno.ECONNRESET, "connection reset by peer")
            return b""
        if not peek:
            self._drop(size_max - left)
        return b"".join(received)

    def _drop(self, count: int) -> None:
        self.size -= count
        while count:
            at_us, data = self.parts[0]
            if count < len(data):
                self.parts[0] = (at_us, data[count:])
                return
            count -= len(data)
            self.parts.popleft()


class Selectable:
    """An object that a selector can wait for."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.selector: SimulatedSelector | None = None
        self.is_closed = False

    def fileno(self) -> int:
        """Its file descriptor; -1 when it is closed."""
        return -1 if self.is_closed else self.number

    def ready(self, events: int, now_us: int) -> int:
        """The events that are ready now."""
        raise NotImplementedError

    def next_us(self) -> int | None:
        """When the next data or event may arrive, if known."""
        return None

    def changed(self, at_us: int) -> None:
        """Notify the selector of a change at a time."""
        if self.selector is not None:
            self.selector.check_at(self, at_us)


class SimulatedSocket(Selectable):
    """One end of a connection; see broker.sockets.Socket."""

    def __init__(self, number: int, process: Process, connector: SocketConnector) -> None:
        super().__init__(number)
        self.process = process
        self._connector = connector
        self._scheduler = connector.scheduler
        self.link: Link | None = None
        self.incoming: Stream | None = None
        self.outgoing: Stream | None = None
        self.connected_us: int | None = None  # when the connect succeeds or fails
        self.connect_error = 0
        self.is_connected = False  # bytes can be sent
        self._keeps_alive = False
        self._idle_s, self._interval_s, self._probes = 7_200, 75, 9  # the defaults of Linux

    def __repr__(self) -> str:
        return f"socket {self.number} of {self.process}"

    # --- settings -------------------------------------------------------------------------------

    def setblocking(self, flag: bool, /) -> None:
        """Simulated sockets never block."""
        assert not flag

    def setsockopt(self, level: int, name: int, value: int, /) -> None:
        """Set an option; only keepalive options have an effect."""
        match (level, name):
            case (system.SOL_SOCKET, system.SO_KEEPALIVE):
                self._keeps_alive = bool(value)
            case (system.IPPROTO_TCP, system.TCP_KEEPIDLE):
                self._idle_s = value
            case (system.IPPROTO_TCP, system.TCP_KEEPINTVL):
                self._interval_s = value
            case (system.IPPROTO_TCP, system.TCP_KEEPCNT):
                self._probes = value

    @property
    def timeout_us(self) -> int | None:
        """The keepalive timeout of the other end; None: no keepalive."""
        if not self._keeps_alive:
            return None
        return (self._idle_s + self._interval_s * self._probes) * 1_000_000

    def getsockopt(self, level: int, name: int, /) -> int:
        """The outcome of the last connect."""
        assert (level, name) == (system.SOL_SOCKET, system.SO_ERROR)
        return self.connect_error

    # --- connecting -----------------------------------------------------------------------------

    def connect(self, address: Address, /) -> None:
        """Start to connect, which never succeeds immediately."""
        self._connector.connect(self, address)
        raise BlockingIOError(errno.EINPROGRESS, "operation now in progress")

    def _check_connected(self) -> None:
        """Raise unless the socket is connected; every call checks this first."""
        if self.is_closed:
            raise OSError(errno.EBADF, "bad file descriptor")
        if not self.is_connected:
            if self.connected_us is None or self.connected_us > self._scheduler.now_us:
                raise BlockingIOError(errno.EAGAIN, "not connected yet")
            if self.connect_error:
                raise OSError(self.connect_error, "cannot connect")
            self.is_connected = True

    # --- bytes ----------------------------------------------------------------------------------

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        """Send as much as fits."""
        return self._send(memoryview(data))

    def sendmsg(
        self, buffers: Iterable[Buffer], ancillary: Iterable[Any] = (), flags: int = 0, /
    ) -> int:
        """Send as much as fits."""
        return self._send(memoryview(b"".join(buffers)))

    def _send(self, data: memoryview) -> int:
        self._check_connected()
        self._scheduler.spend(CALL_US)
        incoming, outgoing, link = self.incoming, self.outgoing, self.link
        assert incoming is not None
        assert outgoing is not None
        assert link is not None
        if incoming.end == RESET and incoming.end_us <= self._scheduler.now_us:
            raise BrokenPipeError(errno.EPIPE, "broken pipe")
        room = outgoing.capacity - outgoing.size
        if room <= 0:
            raise BlockingIOError(errno.EAGAIN, "no room to send")
        sent = bytes(data if len(data) <= room else data[:room])
        outgoing.size += len(sent)
        link.sent(self, sent)
        return len(sent)

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Receive arrived bytes."""
        return self._receive(size, peek=bool(flags & system.MSG_PEEK))

    def recv_into(self, buffer: memoryview, /) -> int:
        """Receive arrived bytes."""
        received = self._receive(len(buffer))
        buffer[: len(received)] = received
        return len(received)

    def _receive(self, size_max: int, *, peek: bool = False) -> bytes:
        self._check_connected()
        self._scheduler.spend(CALL_US)
        incoming, link = self.incoming, self.link
        assert incoming is not None
        assert link is not None
        was_full = incoming.size >= incoming.capacity
        received = incoming.receive(self._scheduler.now_us, size_max, peek=peek)
        if received is None:
            raise BlockingIOError(errno.EAGAIN, "nothing has arrived")
        if was_full and not peek:
            link.received(self)
        return received

    def close(self) -> None:
        """Close this end."""
        if self.is_closed:
            return
        self.is_closed = True
        if self.selector is not None:
            self.selector.remove(self)
        if self.link is not None and self.incoming is not None:
            next_us = self.incoming.next_us() if self.incoming.parts else None
            unread = next_us is not None and next_us <= self._scheduler.now_us
            self.link.closed(self, unread=unread)

    # --- for the selector -----------------------------------------------------------------------

    def ready(self, events: int, now_us: int) -> int:
        """The events that are ready now."""
        if not self.is_connected:
            if self.connected_us is None or self.connected_us > now_us:
                return 0
            if self.connect_error:
                return events
            self.is_connected = True
        ready = 0
        if events & EVENT_READ:
            assert self.incoming is not None
            next_us = self.incoming.next_us()
            if next_us is not None and next_us <= now_us:
                ready = EVENT_READ
        if events & EVENT_WRITE and self._is_writable(now_us):
            ready |= EVENT_WRITE
        return ready

    def _is_writable(self, now_us: int) -> bool:
        incoming, outgoing = self.incoming, self.outgoing
        assert incoming is not None
        assert outgoing is not None
        was_reset = incoming.end == RESET and incoming.end_us <= now_us
        return was_reset or outgoing.size < outgoing.capacity

    def next_us(self) -> int | None:
        """When the next data or event may arrive, if known."""
        if not self.is_connected and self.connected_us is not None:
            return self.connected_us
        return None if self.incoming is None else self.incoming.next_us()


class WakeReceiver(Selectable):
    """The receiving end of a pair, on which a thread waits."""

    def __init__(self, number: int, scheduler: Scheduler) -> None:
        super().__init__(number)
        self._scheduler = scheduler
        self._sent = 0

    def setblocking(self, flag: bool, /) -> None:
        """Simulated sockets never block."""

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Receive everything that was sent."""
        count, self._sent = self._sent, 0
        return bytes(count)

    def close(self) -> None:
        """Close this end."""
        self.is_closed = True
        if self.selector is not None:
            self.selector.remove(self)

    def ready(self, events: int, now_us: int) -> int:
        """Whether there are bytes to receive."""
        return EVENT_READ if self._sent else 0

    def put(self, count: int) -> None:
        """Add bytes, which arrive immediately."""
        self._sent += count
        self.changed(self._scheduler.now_us)


class WakeSender:
    """The sending end of a pair, by which other threads wake the waiting one."""

    def __init__(self, receiver: WakeReceiver) -> None:
        self._receiver = receiver

    def setblocking(self, flag: bool, /) -> None:
        """Simulated sockets never block."""

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        """Wake the waiting thread."""
        if self._receiver.is_closed:
            raise BrokenPipeError(errno.EPIPE, "broken pipe")
        self._receiver.put(len(data))
        return len(data)

    def close(self) -> None:
        """Nothing to close."""


class SimulatedSelector(BaseSelector):
    """Waits for simulated sockets, in virtual time."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._keys: dict[Selectable, SelectorKey] = {}
        self._to_check: dict[Selectable, None] = {}  # those that may be ready
        self._due: list[tuple[int, int, Selectable]] = []  # those that will be checked, and when
        self._order = itertools.count()
        self._task: Task | None = None  # the thread that blocks in `select`
        self._ticket = 0
        self._interrupted = False

    def register(self, fileobj: Any, events: int, data: Any = None) -> SelectorKey:
        """Start to wait for a socket."""
        selectable = cast(Selectable, fileobj)
        assert selectable not in self._keys, "a socket is registered once"
        key = self._keys[selectable] = SelectorKey(fileobj, selectable.number, events, data)
        selectable.selector = self
        self._to_check[selectable] = None
        return key

    def unregister(self, fileobj: Any) -> SelectorKey:
        """Stop waiting for a socket, which may have been closed."""
        selectable = cast(Selectable, fileobj)
        key = self._keys.pop(selectable)
        selectable.selector = None
        self._to_check.pop(selectable, None)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> SelectorKey:
        """Wait for other events of a socket."""
        selectable = cast(Selectable, fileobj)
        key = self._keys[selectable] = SelectorKey(fileobj, selectable.number, events, data)
        self._to_check[selectable] = None
        return key

    def remove(self, selectable: Selectable) -> None:
        """Called when a socket is closed: it is never ready again, but can be unregistered."""
        self._to_check.pop(selectable, None)
        selectable.selector = None

    def check_at(self, selectable: Selectable, at_us: int) -> None:
        """Check a socket at a time."""
        task = self._task
        blocked = task is not None and task.ticket == self._ticket
        if at_us <= self._scheduler.now_us:
            self._to_check[selectable] = None
            if blocked:
                assert task is not None
                self._scheduler.wake(task)
            return
        earliest_us = self._due[0][0] if self._due else None
        heapq.heappush(self._due, (at_us, next(self._order), selectable))
        if blocked and (earliest_us is None or at_us < earliest_us):
            assert task is not None
            self._scheduler.wake_at(task, self._ticket, at_us)

    def interrupt(self) -> None:
        """Make `select` return, now or at its next call."""
        self._interrupted = True
        task = self._task
        if task is not None and task.ticket == self._ticket:
            self._scheduler.wake(task)

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        """Block until sockets are ready, or until the timeout."""
        scheduler = self._scheduler
        until_us = None if timeout is None else scheduler.now_us + round(timeout * 1_000_000)
        while True:
            ready = self._ready(scheduler.now_us)
            is_over = until_us is not None and scheduler.now_us >= until_us
            if ready or is_over or self._interrupted:
                self._interrupted = False
                return ready
            deadline_us = until_us
            if self._due and (deadline_us is None or self._due[0][0] < deadline_us):
                deadline_us = self._due[0][0]
            task = self._task = scheduler.current
            assert task is not None
            self._ticket = task.ticket + 1
            scheduler.block(deadline_us)
            self._task = None

    def _ready(self, now_us: int) -> list[tuple[SelectorKey, int]]:
        due, to_check, keys = self._due, self._to_check, self._keys
        while due and due[0][0] <= now_us:
            selectable = heapq.heappop(due)[2]
            if selectable.selector is self:
                to_check[selectable] = None
        ready: list[tuple[SelectorKey, int]] = []
        if not to_check:
            return ready
        for selectable in list(to_check):
            key = keys[selectable]
            mask = selectable.ready(key.events, now_us)
            if mask:
                ready.append((key, mask))  # checked again next time: it may still be ready
                continue
            del to_check[selectable]
            next_us = selectable.next_us()
            if next_us is not None and next_us > now_us:
                heapq.heappush(due, (next_us, next(self._order), selectable))
        return ready

    def close(self) -> None:
        """Stop waiting for all sockets."""
        for selectable in self._keys:
            selectable.selector = None
        self._keys.clear()
        self._to_check.clear()
        self._due.clear()

    def get_map(self) -> Mapping[Any, SelectorKey]:
        """The registered sockets."""
        return self._keys


class SimulatedSockets:
    """The sockets of one process; see broker.sockets.Sockets."""

    def __init__(
        self, process: Process, connector: SocketConnector, numbers: Iterable[int]
    ) -> None:
        self._process = process
        self._connector = connector
        self._numbers = iter(numbers)

    def selector(self) -> BaseSelector:
        """Create a selector that waits in virtual time."""
        return SimulatedSelector(self._connector.scheduler)

    def pair(self) -> tuple[Socket, Socket]:
        """Create two connected sockets, by which one thread wakes another."""
        receiver = WakeReceiver(next(self._numbers), self._connector.scheduler)
        return cast(Socket, receiver), cast(Socket, WakeSender(receiver))

    def resolve(self, host: str, port: int) -> list[tuple[int, Address]]:
        """Return the name as the address."""
        return [(system.AF_INET, (host, port))]

    def open(self, family: int) -> Socket:
        """Create a socket that is not connected."""
        return SimulatedSocket(next(self._numbers), self._process, self._connector)
