"""RequestGuard: refuses requests of web pages, before all routes.

A web page open in a browser can send requests to services on the same machine. Three checks prevent
this; none of them affects programs:

Host          A page of evil.example whose name is suddenly that of 127.0.0.1 (DNS rebinding) still
              sends "Host: evil.example". So the host must be a known one:
                loopback names and addresses: localhost, *.localhost, 127.0.0.0/8, ::1
                the host that the service listens on, and the names it is configured with
                if it listens on more than loopback: the machine's name, and any IP address,
                since it contains no name that could be rebound
Origin        Browsers send the page's origin in every request that may change something, and in
              those that open a WebSocket. Its host must be the host of the request, or one of the
              names above; an address of another machine is refused.
Content-Type  A body must be JSON. Browsers send forms and plain text to any server, but send a
              preflight request before JSON. A body without a type, as from ksqlDB's own clients,
              is only accepted from programs: browsers send Origin and Sec-Fetch headers.
"""

import json
import socket
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.rest.reply import PlainText, Reply

FORBIDDEN, UNSUPPORTED_MEDIA_TYPE = 403, 415
POLICY_VIOLATION = 1008  # the close code of a WebSocket
SHOWN_MAX = 200
ANY = "*"
LOOPBACK_NAME = "localhost"
WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# Besides application/*+json. Clients of a registry may send JSON as bytes; browsers send a
# preflight request for those, too.
JSON_TYPES = frozenset(
    {"application/json", "application/vnd.ksqlapi.delimited.v1", "application/octet-stream"}
)

Headers = Sequence[tuple[bytes, bytes]]
# Creates the response to a refused request, from an HTTP status and a message.
Refusal = Callable[[int, str], Reply]


class AllowedHosts:
    """The names and addresses under which a service may be addressed."""

    def __init__(self, listen: str, names: Iterable[str] = ()) -> None:
        """`listen` is the listener's host; a name may be *.example.org, or * for any."""
        given = [_plain(name) for name in (listen, *names) if name.strip()]
        self._any = ANY in given
        self._names = {LOOPBACK_NAME, *given}
        below = (name[1:] for name in given if name.startswith("*."))
        self._suffixes = (f".{LOOPBACK_NAME}", *below)
        address = _address(_plain(listen))
        is_loopback = address.is_loopback if address else _plain(listen) == LOOPBACK_NAME
        self._any_address = not is_loopback
        if self._any_address:
            self._names.add(_plain(socket.gethostname()))

    def allows(self, host: str) -> bool:
        """Whether a request may name this host, without its port."""
        return self._is_ours(host) or (self._any_address and _address(_plain(host)) is not None)

    def _is_ours(self, host: str) -> bool:
        """Whether a host is a configured name, or always this machine."""
        name = _plain(host)
        if self._any or name in self._names or name.endswith(self._suffixes):
            return True
        address = _address(name)
        return address is not None and address.is_loopback

    def problem(self, headers: Headers) -> str | None:
        """The reason why a request with these headers is refused, or None."""
        requested = None
        for name, value in headers:
            if name == b"host":
                requested = _host(f"//{value.decode('latin-1')}")
                if requested is not None and self.allows(requested):
                    continue
                return (
                    f'the host "{_shown(value)}" is not one of this server\'s names; '
                    "if it is, add it to the allowed hosts in the server's settings"
                )
        for name, value in headers:
            if name == b"origin" and not self._allows_origin(value, requested):
                return (
                    f'pages of the origin "{_shown(value)}" may not use this server; '
                    "if they should, add their host to the allowed hosts in its settings"
                )
        return None

    def _allows_origin(self, value: bytes, requested: str | None) -> bool:
        text = value.decode("latin-1")
        if self._any:
            return True
        host = _host(text) if text.startswith(("http://", "https://")) else None
        return host is not None and (host == requested or self._is_ours(host))


class RequestGuard:
    """An ASGI application that passes allowed requests to another one."""

    def __init__(
        self,
        application: ASGIApp,
        hosts: AllowedHosts,
        *,
        refusal: Refusal | None = None,
        json_only: bool = True,
    ) -> None:
        """`json_only`: bodies must be JSON."""
        self._application = application
        self._hosts = hosts
        self._refusal = refusal or plain_refusal
        self._json_only = json_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        problem = self._hosts.problem(scope["headers"])
        if scope["type"] == "websocket":
            if problem is not None:
                await receive()
                await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": problem})
                return
        elif problem is not None:
            await self._refuse(send, FORBIDDEN, problem)
            return
        elif self._json_only and scope["method"] in WITH_BODY:
            type_problem = _type_problem(scope["headers"])
            if type_problem is not None:
                first = await receive()
                while not _has_content(first) and first.get("more_body"):
                    first = await receive()
                if _has_content(first):
                    await self._refuse(send, UNSUPPORTED_MEDIA_TYPE, type_problem)
                    return
                receive = _again(first, receive)
        await self._application(scope, receive, send)

    async def _refuse(self, send: Send, status: int, message: str) -> None:
        reply = self._refusal(status, message)
        is_text = isinstance(reply.content, PlainText)
        body = str(reply.content) if is_text else json.dumps(reply.content)
        media_type = reply.media_type if is_text else "application/json"
        headers = [
            (b"content-type", media_type.encode()),
            (b"content-length", str(len(body.encode())).encode()),
            # The rest of the request may not be read.
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body.encode()})


def plain_refusal(status: int, message: str) -> Reply:
    """In the format of schema registry and Connect errors."""
    return Reply({"error_code": status, "message": message}, status)


def _type_problem(headers: Headers) -> str | None:
    """The reason why a body is refused: its type is not JSON. None if it is."""
    given = b""
    from_browser = False
    for name, value in headers:
        if name == b"content-type":
            given = value
        from_browser = from_browser or name == b"origin" or name.startswith(b"sec-fetch-")
    media_type = given.decode("latin-1").partition(";")[0].strip().lower()
    if media_type in JSON_TYPES or (
        media_type.startswith("application/") and media_type.endswith("+json")
    ):
        return None
    if not media_type and not from_browser:
        return None
    shown = f'"{_shown(given)}"' if given else "missing"
    return (
        f"HTTP 415 Unsupported Media Type: the Content-Type is {shown}, but must be JSON; "
        'send the header "Content-Type: application/json", with curl: '
        '-H "Content-Type: application/json"'
    )


def _has_content(message: Message) -> bool:
    return bool(message.get("body"))


def _again(first: Message, receive: Receive) -> Receive:
    """Receive a message again, then the following ones."""
    waiting = [first]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received


def _host(url: str) -> str | None:
    """The host of "scheme://host:port" or "//host:port"; None for anything else."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is not a number
    except ValueError:
        return None
    if parts.username is not None or parts.path or parts.query or parts.fragment:
        return None
    return parts.hostname


def _plain(name: str) -> str:
    return name.strip().strip("[]").lower().rstrip(".")


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name.partition("%")[0])
    except ValueError:
        return None


def _shown(value: bytes) -> str:
    return value[:SHOWN_MAX].decode("latin-1")
