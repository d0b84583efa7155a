"""SqlServer: an engine over HTTP, in a thread."""

from types import TracebackType
from typing import Self

from broker.server.http_server import HttpServer
from sql.engine.engine import Engine
from sql.server.answers import refusal_json
from sql.server.application import SqlApplication
from sql.server.http2 import HttpConnection
from sql.server.websocket import WebSocketConnection

LISTEN = "127.0.0.1:8088"


class SqlServer:
    """Serves a started engine; port 0 takes a free one.

    with Engine(broker, data_directory=path) as engine, SqlServer(engine) as server:
        server.url                                  # "http://127.0.0.1:8088"
    """

    def __init__(self, engine: Engine, *, listen: str = LISTEN, cluster_id: str = "") -> None:
        """Nothing listens before `start`; `cluster_id` is only used for responses."""
        self._application = SqlApplication(engine, cluster_id=cluster_id)
        self._server = HttpServer(
            self._application,
            listen=listen,
            name="sql-server",
            allowed_hosts=engine.config.host_names,
            refusal=refusal_json,
            connections=HttpConnection,
            websockets=WebSocketConnection,
        )

    @property
    def address(self) -> str:
        """host:port, where it listens."""
        return self._server.address

    @property
    def url(self) -> str:
        """What clients are given."""
        return f"http://{self.address}"

    def start(self) -> Self:
        """Listen; returns when requests are taken."""
        self._server.start()
        return self

    def close(self) -> None:
        """End the queries that are answered, and stop; the engine stays open."""
        self._application.close()
        self._server.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
