"""RestApplication: routes, limits and errors, for a service that keeps notes."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, replace

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from broker.exposition import Exposition
from broker.rest import (
    Body,
    HttpError,
    InvalidJson,
    Json,
    PlainText,
    Query,
    Reply,
    RequestCounts,
    RestApplication,
    RestRequest,
    RestService,
    Route,
    StreamedReply,
)

BODY = Body(20, frozenset({"application/json", ""}))
LOOSE_BODY = Body(20, frozenset({"application/json"}), empty_of_any_type=True)


@dataclass
class Notes:
    """What the service serves."""

    texts: dict[str, object] = field(default_factory=dict)
    closed: bool = False
    threads: list[str] = field(default_factory=list)


def show(notes: Notes, request: RestRequest) -> Json:
    notes.threads.append(threading.current_thread().name)
    return {"text": notes.texts[request.variable("name")], "loud": request.flag("loud")}


def put(notes: Notes, request: RestRequest) -> Reply:
    notes.texts[request.variable("name")] = request.json_object()
    return Reply(status=201, headers={"Location": f"{request.base_url}/notes"})


async def stream(notes: Notes, request: RestRequest) -> StreamedReply:
    async def parts() -> AsyncGenerator[bytes, None]:
        yield b"one "
        if request.flag("fails"):
            raise KeyError
        yield b"two"

    return StreamedReply(parts(), media_type="text/plain", cut_off=KeyError)


def error_reply(error: Exception) -> Reply:
    match error:
        case HttpError():
            return Reply({"error": error.message or error.phrase, "path": error.path}, error.status)
        case InvalidJson():
            return Reply({"error": error.reason or f"no object, null: {error.is_null}"}, 400)
        case _:
            return Reply({"error": type(error).__name__}, 500)


def admit(notes: Notes, route: Route[Notes, RestRequest], headers: Mapping[str, str]) -> None:
    if notes.closed and headers.get("x-key") != "master":
        raise HttpError(503, f"closed: {route.path}")


def rewrite(path: str, query: Query) -> tuple[str, Query]:
    return path.removeprefix("/v1") or "/", query


SERVICE = RestService(
    (
        Route("GET", "/", lambda notes, _: sorted(notes.texts)),
        Route("GET", "/text", lambda _, __: PlainText("plain"), media_type="text/plain"),
        Route("GET", "/notes/{name}", show),
        Route("GET", "/quick/{name}", show, at_once=lambda request: request.flag("quick")),
        Route("PUT", "/notes/{name}", put, body=BODY),
        Route("POST", "/loose", lambda _, request: len(request.body), body=LOOSE_BODY),
        Route("GET", "/stream", stream),
        Route("GET", "/unknown", lambda _, __: object()),
    ),
    error_reply,
    RestRequest,
    media_types=("application/vnd.notes+json", "application/json"),
    negotiates=True,
    admit=admit,
    rewrite=rewrite,
)


@pytest.fixture
def notes() -> Notes:
    return Notes({"a/b": 1})


def ask(
    notes: Notes, method: str, path: str, content: bytes = b"", **headers: str
) -> httpx.Response:
    """Send one request."""
    return asyncio.run(_ask(RestApplication(SERVICE, notes), method, path, content, headers))


async def _ask(
    application: RestApplication[Notes, RestRequest],
    method: str,
    path: str,
    content: bytes,
    headers: Mapping[str, str],
) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://notes") as client:
        return await client.request(method, path, content=content, headers=named)


def test_what_a_handler_returns_is_json_in_the_preferred_type(notes: Notes) -> None:
    answer = ask(notes, "GET", "/notes/a%2Fb?loud=TRUE")
    assert answer.json() == {"text": 1, "loud": True}
    assert answer.headers["content-type"] == "application/vnd.notes+json"
    answer = ask(notes, "GET", "/notes/a%2Fb/", accept="application/json, */*;q=0.1")
    assert answer.json() == {"text": 1, "loud": False}
    assert answer.headers["content-type"] == "application/json"
    assert ask(notes, "HEAD", "/v1").status_code == 200


def test_text_and_replies_without_content_are_sent_as_they_are(notes: Notes) -> None:
    answer = ask(notes, "GET", "/text", accept="image/png")
    assert (answer.text, answer.headers["content-type"]) == ("plain", "text/plain; charset=utf-8")
    answer = ask(notes, "PUT", "/notes/c", b'{"d": 1}')
    assert (answer.status_code, answer.content) == (201, b"")
    assert answer.headers["location"] == "http://notes/notes"
    assert notes.texts["c"] == {"d": 1}


@pytest.mark.parametrize(
    ("request_line", "content", "headers", "status", "error"),
    [
        ("GET /nothing/%C3%A9", b"", {}, 404, "Not Found"),
        ("DELETE /notes/a", b"", {}, 405, "Method Not Allowed"),
        ("GET /", b"", {"accept": "image/png"}, 406, "Not Acceptable"),
        ("PUT /notes/a", b'"' + b"x" * 20, {}, 413, "Request Entity Too Large"),
        ("PUT /notes/a", b"", {"content_type": "text/plain"}, 415, "Unsupported Media Type"),
        ("POST /loose", b"{}", {}, 415, "Unsupported Media Type"),
        ("PUT /notes/a", b"{", {}, 400, "unexpected end of data: line 1 column 2 (char 1)"),
        ("PUT /notes/a", b"null", {}, 400, "no object, null: True"),
        ("PUT /notes/a", b"[]", {}, 400, "no object, null: False"),
        ("GET /?" + "&".join(f"{n}=1" for n in range(101)), b"", {}, 400, "more than 100 para"),
        ("GET /notes/nope", b"", {}, 500, "KeyError"),
        ("GET /unknown", b"", {}, 500, "TypeError"),
    ],
)
def test_every_refusal_is_worded_by_the_service(
    notes: Notes,
    request_line: str,
    content: bytes,
    headers: dict[str, str],
    status: int,
    error: str,
) -> None:
    method, _, path = request_line.partition(" ")
    answer = ask(notes, method, path, content, **headers)
    assert answer.status_code == status
    assert answer.json()["error"].startswith(error)
    if status == 404:
        assert answer.json()["path"] == path
    if status == 405:
        assert answer.headers["allow"] == "GET, PUT"


def test_an_empty_body_needs_no_type_if_the_route_says_so(notes: Notes) -> None:
    assert ask(notes, "POST", "/loose", content_type="text/plain").json() == 0
    assert ask(notes, "POST", "/loose", b"{}", content_type="application/json").json() == 2


def test_a_body_is_refused_as_soon_as_it_is_too_large(notes: Notes) -> None:
    received: list[None] = []
    sent: list[Message] = []

    async def receive() -> Message:
        received.append(None)
        return {"type": "http.request", "body": b"x" * 15, "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "PUT",
        "path": "/notes/a",
        "headers": [],
        "query_string": b"",
    }
    asyncio.run(RestApplication(SERVICE, notes)(scope, receive, send))
    assert (len(received), sent[0]["status"]) == (2, 413)


def test_requests_that_are_not_admitted_are_refused_before_their_bodies_are_read(
    notes: Notes,
) -> None:
    notes.closed = True
    answer = ask(notes, "PUT", "/notes/a", b"x" * 100)
    assert (answer.status_code, answer.json()["error"]) == (503, "closed: /notes/{name}")
    assert ask(notes, "GET", "/", x_key="master").status_code == 200


def test_options_lists_the_methods_if_the_service_answers_it(notes: Notes) -> None:
    assert ask(notes, "OPTIONS", "/notes/a").status_code == 405
    application = RestApplication(replace(SERVICE, answers_options=True), notes)
    answer = asyncio.run(_ask(application, "OPTIONS", "/notes/a", b"", {}))
    assert answer.status_code == 200
    assert answer.text == answer.headers["allow"] == "GET, HEAD, OPTIONS, PUT"


def test_handlers_run_in_threads_unless_they_are_quick(notes: Notes) -> None:
    here = threading.current_thread().name
    ask(notes, "GET", "/quick/a%2Fb?quick=true")
    ask(notes, "GET", "/quick/a%2Fb")
    assert notes.threads[0] == here
    assert notes.threads[1] != here


def test_a_streamed_reply_has_no_end_if_it_is_cut_off(notes: Notes) -> None:
    assert ask(notes, "GET", "/stream").text == "one two"
    sent = []

    async def receive() -> Message:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/stream",
        "headers": [],
        "query_string": b"fails=true",
    }
    asyncio.run(RestApplication(SERVICE, notes)(scope, receive, send))
    assert [each.get("body") for each in sent] == [None, b"one "]


def test_responses_are_counted_by_method_route_and_status(notes: Notes) -> None:
    counts = RequestCounts()
    application = RestApplication(SERVICE, notes, counts=counts)
    for method, path in (("GET", "/notes/a%2Fb"), ("GET", "/nope"), ("BREW", "/")):
        asyncio.run(_ask(application, method, path, b"", {}))
    out = Exposition()
    counts.expose(out, "notes_total")
    assert [line for line in out.text().splitlines() if not line.startswith("#")] == [
        'notes_total{method="GET",path="/notes/{name}",status="200"} 1.0',
        'notes_total{method="GET",path="unknown",status="404"} 1.0',
        'notes_total{method="other",path="/",status="405"} 1.0',
    ]


def test_websockets_are_answered_by_their_own_application(notes: Notes) -> None:
    asked: list[str] = []

    async def websockets(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope["path"])

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    async def send(message: Message) -> None:
        raise AssertionError("nothing is sent")

    application = RestApplication(SERVICE, notes, websockets=websockets)
    asyncio.run(application({"type": "websocket", "path": "/ws"}, receive, send))
    asyncio.run(application({"type": "lifespan"}, receive, send))
    assert asked == ["/ws"]


def test_a_method_of_a_path_has_one_route() -> None:
    twice = Route[Notes, RestRequest]("GET", "/", lambda _, __: None)
    with pytest.raises(AssertionError, match="GET / twice"):
        RestApplication(RestService((twice, twice), error_reply, RestRequest), Notes())
