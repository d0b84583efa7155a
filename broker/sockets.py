"""Sockets: access to the network of the machine. No other module uses Python's sockets directly.

Connections are Python's own sockets, used without a wrapper. A simulation gives others that offer
the part of them that is named here.
"""

import socket
from collections.abc import Iterable, Sequence
from selectors import BaseSelector, DefaultSelector
from typing import Any, Protocol

# Any: the form of an address depends on its family.
Address = tuple[Any, ...]
Buffer = bytes | bytearray | memoryview


class Socket(Protocol):
    """What clients and servers use of a stream socket, which never blocks."""

    def fileno(self) -> int:
        """Its number, by which selectors know it."""
        ...

    def setblocking(self, flag: bool, /) -> None:
        """Whether calls wait."""
        ...

    def setsockopt(self, level: int, name: int, value: int, /) -> None:
        """Change a setting of the socket."""
        ...

    def getsockopt(self, level: int, name: int, /) -> int:
        """A setting of the socket, or the error of the last connect."""
        ...

    def connect(self, address: Address, /) -> None:
        """Start to connect; BlockingIOError says that it is under way."""
        ...

    def send(self, data: Buffer, flags: int = ..., /) -> int:
        """Send bytes; how many were taken."""
        ...

    def sendmsg(
        self,
        buffers: Iterable[Buffer],
        ancillary: Iterable[Any] = ...,  # Any: never sent
        flags: int = ...,
        /,
    ) -> int:
        """Send several buffers; how many bytes were taken."""
        ...

    def recv(self, size: int, flags: int = ..., /) -> bytes:
        """Receive up to this many bytes; none at the end of the stream."""
        ...

    def recv_into(self, buffer: memoryview, /) -> int:
        """Receive into a buffer; 0 at the end of the stream."""
        ...

    def close(self) -> None:
        """Close it; what was sent still arrives."""
        ...


class Sockets(Protocol):
    """Where a client's sockets come from."""

    def selector(self) -> BaseSelector:
        """Waits for these sockets."""
        ...

    def pair(self) -> tuple[Socket, Socket]:
        """Two connected sockets, by which one thread wakes another."""
        ...

    def resolve(self, host: str, port: int) -> Sequence[tuple[int, Address]]:
        """The addresses behind a name, with their families; OSError if there are none."""
        ...

    def open(self, family: int) -> Socket:
        """A stream socket that is not connected."""
        ...


class SystemSockets:
    """The machine's network."""

    def selector(self) -> BaseSelector:
        """The best that the system has."""
        return DefaultSelector()

    def pair(self) -> tuple[Socket, Socket]:
        """Two connected sockets."""
        return socket.socketpair()

    def resolve(self, host: str, port: int) -> Sequence[tuple[int, Address]]:
        """Ask the system, which may ask a name server, and wait."""
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [(family, address) for family, _, _, _, address in found]

    def open(self, family: int) -> Socket:
        """A TCP socket."""
        return socket.socket(family, socket.SOCK_STREAM)
