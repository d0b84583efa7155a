"""A TCP proxy that cuts connections after a chosen number of bytes, in either direction."""

import contextlib
import socket
import threading
from collections.abc import Callable
from random import Random
from typing import Self

PIECE_BYTES = 4_096
HEALED = 1 << 60


class CuttingProxy:
    """Passes bytes between clients and one server; each connection lives for some bytes only.

    `lifetime` says how many, for each new connection; a cut request was received in part or as a
    whole, a cut response is lost after the server did its work.
    """

    def __init__(self, server: tuple[str, int], lifetime: Callable[[], int]) -> None:
        self._server = server
        self._lifetime = lifetime
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self.cuts = 0

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._listener.getsockname()
        return str(host), int(port)

    def heal(self) -> None:
        """Cut no more."""
        self._lifetime = lambda: HEALED

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in tuple(self._open):
            _hang_up(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server)
            except OSError:
                client.close()
                continue
            left = [self._lifetime()]
            for source, sink in ((client, server), (server, client)):
                self._open.add(source)
                threading.Thread(target=self._pass, args=(source, sink, left), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, left: list[int]) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(PIECE_BYTES):
                passed = piece[: max(0, left[0])]
                left[0] -= len(piece)
                sink.sendall(passed)
                if left[0] <= 0:
                    self.cuts += 1
                    break
        for end in (source, sink):
            _hang_up(end)
        self._open.discard(source)


def random_lifetimes(seed: int, *, least: int, most: int) -> Callable[[], int]:
    """Lifetimes of connections, in bytes, the same for the same seed."""
    chance = Random(seed)
    return lambda: chance.randint(least, most)


def _hang_up(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
