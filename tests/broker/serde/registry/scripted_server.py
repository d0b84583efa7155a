"""An HTTP server that answers by a script, to see what a client does with each answer."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, object]  # a status, and JSON or raw bytes


@dataclass
class Asked:
    """One request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: object


@dataclass
class ScriptedServer:
    """Its address, what it will answer next (the last answer again and again), what was asked."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next_answer(self, asked: Asked) -> Answer:
        """Note the request and take the next answer."""
        with self.lock:
            self.asked.append(asked)
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def scripted_server(
    *answers: Answer, tls: ssl.SSLContext | None = None
) -> Iterator[ScriptedServer]:
    """A server on a port of its own until the end of the block."""
    script = ScriptedServer(answers=list(answers))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body leave in one packet: two of them would wait for each other.
        wbufsize = -1

        def answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, given = script.next_answer(Asked(self.command, self.path, headers, body))
            raw = given if isinstance(given, bytes) else json.dumps(given).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        script.url = script.url.replace("http:", "https:")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
