"""HttpServer: an ASGI application on an address, in a thread with an event loop of its own."""

import asyncio
import socket
import threading
from types import TracebackType
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from broker.errors import ConfigError

PORT_MAX = 65535
CONNECTIONS_MAX = 1000  # more are answered with 503
# Requests under way may take this long when the server is closed; then they are broken off.
SHUTDOWN_GRACE_SECONDS = 5


class HttpServer:
    """Serves an application from `start` to `close`; port 0 takes a free one.

    with HttpServer(application, listen="127.0.0.1:0", name="queries") as server:
        server.address                              # "127.0.0.1:43121"
    """

    def __init__(
        self,
        application: ASGIApp,
        *,
        listen: str,
        name: str,
        connections: type[asyncio.Protocol] | None = None,
        websockets: type[asyncio.Protocol] | None = None,
    ) -> None:
        """Nothing listens before `start`; the thread gets the name.

        `connections` speak HTTP in place of uvicorn's own. Those that become WebSockets are handed
        over to `websockets`, if it is there.
        """
        self._application = application
        self._host, self._port = parse_listen(listen)
        self._name = name
        self._connections = connections
        self._websockets = websockets
        self._listener: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._server: uvicorn.Server | None = None

    @property
    def address(self) -> str:
        """host:port, where it listens."""
        assert self._listener is not None, "the server was not started"
        port = self._listener.getsockname()[1]
        return f"[{self._host}]:{port}" if ":" in self._host else f"{self._host}:{port}"

    def start(self) -> Self:
        """Listen; returns when requests are taken."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            listener = socket.create_server((self._host, self._port), family=family)
        except OSError as error:
            raise ConfigError(
                f"cannot listen: {error.strerror}",
                at=f"{self._host}:{self._port}",
                hint="stop the program that has the address, or choose another port; 0 is any",
            ) from error
        config = uvicorn.Config(
            self._application,
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            http=self._connections or "auto",
            ws=self._websockets or "none",
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=SHUTDOWN_GRACE_SECONDS,
        )
        self._listener = listener
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, name=self._name, daemon=True
        )
        self._thread.start()
        return self

    def close(self) -> None:
        """Answer what was asked, and stop; calling again does nothing."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
            self._thread = None

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()


def parse_listen(listen: str) -> tuple[str, int]:
    """Host and port of "host:port" or "[address]:port"; ConfigError for anything else."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > PORT_MAX:
        raise ConfigError(f'the address to listen on is "{listen}"', hint='write it as "host:port"')
    return host.strip("[]"), int(port)
