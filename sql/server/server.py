"""SqlServer: an engine over HTTP, in a thread."""

from broker.rest import HttpServer
from sql.engine.engine import Engine
from sql.server.application import SqlEndpoints, sql_application
from sql.server.http2 import HttpConnection
from sql.server.websocket import WebSocketConnection

LISTEN = "127.0.0.1:8088"


class SqlServer(HttpServer):
    """Serves a started engine; port 0 uses any free port.

    with Engine(broker, data_directory=path) as engine, SqlServer(engine) as server:
        server.url                                  # "http://127.0.0.1:8088"
    """

    def __init__(self, engine: Engine, *, listen: str = LISTEN, cluster_id: str = "") -> None:
        """Call `start` to listen; `cluster_id` is only used for responses."""
        self._endpoints = SqlEndpoints(engine, cluster_id=cluster_id)
        application = sql_application(self._endpoints)
        super().__init__(
            application,
            listen=listen,
            name="sql-server",
            allowed_hosts=engine.config.host_names,
            refusal=application.refusal,
            connections=HttpConnection,
            websockets=WebSocketConnection,
        )

    def close(self) -> None:
        """End the running queries, and stop; the engine stays open."""
        self._endpoints.close()
        super().close()
