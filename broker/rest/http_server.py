"""HttpServer: serves an ASGI application in a thread with its own event loop."""

import asyncio
import socket
from collections.abc import Iterable
from typing import Any, Self

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from broker import concurrency
from broker.errors import ConfigError
from broker.rest.idle_connections import IdleConnections
from broker.rest.request_guard import AllowedHosts, Refusal, RequestGuard

PORT_MAX = 65535
CONNECTIONS_MAX = 1000  # above it, requests are answered with 503
CONNECTIONS_MANY = 500  # from here on each new connection closes the longest idle one
TICKS_PER_SECOND = 10  # uvicorn's
# How long pending requests may take when the server is closed; then they are cancelled.
SHUTDOWN_GRACE_SECONDS = 5


class _Uvicorn(uvicorn.Server):
    """uvicorn, which also closes idle connections."""

    def __init__(self, config: uvicorn.Config, idle: IdleConnections) -> None:
        super().__init__(config)
        self._idle = idle

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second."""
        if counter % TICKS_PER_SECOND == 0:
            self._idle.close_silent(self.server_state.connections)
        return await super().on_tick(counter)


class HttpServer:
    """Serves an application from `start` to `close`; port 0 uses any free port.

    Requests of web pages are refused before the application receives them: see request_guard.py.

    with HttpServer(application, listen="127.0.0.1:0", name="queries") as server:
        server.address                              # "127.0.0.1:43121"
    """

    def __init__(  # noqa: PLR0913 - each is one setting of a server
        self,
        application: ASGIApp,
        *,
        listen: str,
        name: str,
        allowed_hosts: Iterable[str] = (),
        refusal: Refusal | None = None,
        json_only: bool = True,
        connections: type[asyncio.Protocol] | None = None,
        websockets: type[asyncio.Protocol] | None = None,
        connections_many: int | None = None,
    ) -> None:
        """Nothing listens before `start`; `name` is the name of the thread.

        `allowed_hosts` are additional names of the server; `refusal` creates the responses of
        refused requests. `connections` replaces uvicorn's HTTP protocol. Connections that become
        WebSockets are passed to `websockets`, if given. From `connections_many` on, each new
        connection closes the one that has been idle longest.
        """
        self._host, self._port = parse_listen(listen)
        hosts = AllowedHosts(self._host, allowed_hosts)
        self._application = RequestGuard(application, hosts, refusal=refusal, json_only=json_only)
        self._name = name
        self._connections = connections or AutoHTTPProtocol
        self._idle = IdleConnections(connections_many or CONNECTIONS_MANY)
        self._websockets = websockets
        self._listener: socket.socket | None = None
        self._thread: concurrency.Thread | None = None
        self._server: uvicorn.Server | None = None

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"http://{self.address}"

    @property
    def address(self) -> str:
        """host:port of the listener."""
        assert self._listener is not None, "the server was not started"
        port = self._listener.getsockname()[1]
        return f"[{self._host}]:{port}" if ":" in self._host else f"{self._host}:{port}"

    def start(self) -> Self:
        """Listen; returns when requests are accepted."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            listener = socket.create_server((self._host, self._port), family=family)
        except OSError as error:
            raise ConfigError(
                f"cannot listen: {error.strerror}",
                at=f"{self._host}:{self._port}",
                hint="stop the program that uses the address, or choose another port; 0 "
                "chooses a free one",
            ) from error
        config = uvicorn.Config(
            self._application,
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            http=self._connect,  # type: ignore[arg-type]  # called like the class
            ws=self._websockets or "none",
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=SHUTDOWN_GRACE_SECONDS,
        )
        self._listener = listener
        self._server = _Uvicorn(config, self._idle)
        self._thread = concurrency.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, name=self._name, daemon=True
        )
        self._thread.start()
        return self

    # Any: uvicorn calls it with keyword arguments of its own.
    def _connect(self, *, server_state: Any, **given: Any) -> asyncio.Protocol:
        """A client has connected."""
        self._idle.make_room(server_state.connections)
        # Any: see above.
        protocol: Any = self._connections
        connection: asyncio.Protocol = protocol(server_state=server_state, **given)
        self._idle.opened(connection)
        return connection

    def close(self) -> None:
        """Finish pending requests, and stop; calling it again does nothing."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
            self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


def parse_listen(listen: str) -> tuple[str, int]:
    """Host and port of "host:port" or "[address]:port"; ConfigError for anything else."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > PORT_MAX:
        raise ConfigError(f'the address to listen on is "{listen}"', hint='write it as "host:port"')
    return host.strip("[]"), int(port)
