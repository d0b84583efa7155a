"""Sockets: access to the network of the machine. No other module uses Python's sockets directly.

Connections are Python's own sockets, used without a wrapper. A simulation replaces them with
objects that have the methods named here.
"""

import socket
from collections.abc import Iterable, Sequence
from selectors import BaseSelector, DefaultSelector
from typing import Any, Protocol

# Any: the form of an address depends on its family.
Address = tuple[Any, ...]
Buffer = bytes | bytearray | memoryview


class Socket(Protocol):
    """The part of a non-blocking stream socket that clients and servers use."""

    def fileno(self) -> int:
        """The file descriptor, for selectors."""
        ...

    def setblocking(self, flag: bool, /) -> None:
        """Set whether calls block."""
        ...

    def setsockopt(self, level: int, name: int, value: int, /) -> None:
        """Set an option of the socket."""
        ...

    def getsockopt(self, level: int, name: int, /) -> int:
        """An option of the socket, or the error of the last connect."""
        ...

    def connect(self, address: Address, /) -> None:
        """Start to connect; BlockingIOError means that it is in progress."""
        ...

    def send(self, data: Buffer, flags: int = ..., /) -> int:
        """Send bytes; returns the number of accepted bytes."""
        ...

    def sendmsg(
        self,
        buffers: Iterable[Buffer],
        ancillary: Iterable[Any] = ...,  # Any: never sent
        flags: int = ...,
        /,
    ) -> int:
        """Send several buffers; returns the number of accepted bytes."""
        ...

    def recv(self, size: int, flags: int = ..., /) -> bytes:
        """Receive up to this many bytes; none at the end of the stream."""
        ...

    def recv_into(self, buffer: memoryview, /) -> int:
        """Receive into a buffer; 0 at the end of the stream."""
        ...

    def close(self) -> None:
        """Close it; sent data is still delivered."""
        ...


class Sockets(Protocol):
    """The source of a client's sockets."""

    def selector(self) -> BaseSelector:
        """A selector for these sockets."""
        ...

    def pair(self) -> tuple[Socket, Socket]:
        """Two connected sockets, with which one thread wakes another."""
        ...

    def resolve(self, host: str, port: int) -> Sequence[tuple[int, Address]]:
        """The addresses of a name, with their families; OSError if there are none."""
        ...

    def open(self, family: int) -> Socket:
        """A stream socket that is not connected."""
        ...


class SystemSockets:
    """The machine's network."""

    def selector(self) -> BaseSelector:
        """The best selector of the system."""
        return DefaultSelector()

    def pair(self) -> tuple[Socket, Socket]:
        """Two connected sockets."""
        return socket.socketpair()

    def resolve(self, host: str, port: int) -> Sequence[tuple[int, Address]]:
        """Resolve with the system, which may send DNS requests and blocks."""
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [(family, address) for family, _, _, _, address in found]

    def open(self, family: int) -> Socket:
        """A TCP socket."""
        return socket.socket(family, socket.SOCK_STREAM)
