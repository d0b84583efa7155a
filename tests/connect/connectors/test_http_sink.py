"""The HTTP sink against real servers: those that answer, fail, hang up and are slow."""

import datetime
import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from broker.rest.http_server import HttpServer
from connect import data
from connect.connectors.http_sink import HttpSinkConnector, HttpSinkTask
from connect.connectors.http_sink.status_codes import StatusCodes
from connect.data import Struct
from connect.errors import ConfigError, ConnectError, RetriableError
from connect.records import SinkRecord
from tests.connect.connectors.contexts import HandSinkContext, ReportedRecords


@dataclass
class Seen:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Service:
    """A service that keeps what it is sent, and answers what the test says."""

    seen: list[Seen] = field(default_factory=list)
    answers: list[Response] = field(default_factory=list)
    url: str = ""

    async def take(self, request: Request) -> Response:
        body = await request.body()
        # As it was sent: the path of the request is without its escapes.
        path = request.scope["raw_path"].decode()
        self.seen.append(Seen(request.method, path, dict(request.headers), body))
        return self.answers.pop(0) if self.answers else PlainTextResponse("fine")

    @property
    def bodies(self) -> list[str]:
        return [seen.body.decode() for seen in self.seen]


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    methods = ["POST", "PUT", "PATCH", "DELETE"]
    application = Starlette(routes=[Route("/{rest:path}", made.take, methods=methods)])
    with HttpServer(application, listen="127.0.0.1:0", name="service", json_only=False) as server:
        made.url = f"http://{server.address}"
        yield made


def started(
    url: str,
    config: Mapping[str, str] | None = None,
    *,
    reporter: ReportedRecords | None = None,
    **settings: str,
) -> HttpSinkTask:
    task = HttpSinkTask()
    task.context = HandSinkContext(reporter)
    named = {name.replace("_", "."): value for name, value in settings.items()}
    task.start({"http.api.url": url, "topics": "t", **(config or {}), **named})
    return task


def timeouts_of(task: HttpSinkTask) -> list[int]:
    assert isinstance(task.context, HandSinkContext)
    return task.context.timeouts_ms


def record(offset: int, value: object, key: object = None, *, partition: int = 0) -> SinkRecord:
    return SinkRecord("t", partition, None, key, None, value, offset)


def test_each_record_is_one_request_by_default(service: Service) -> None:
    task = started(f"{service.url}/in")
    task.put([record(0, "one"), record(1, "zwölf")])
    task.put([])
    first, second = service.seen
    assert (first.method, first.path, first.body) == ("POST", "/in", b"one")
    assert first.headers["content-type"] == "text/plain; charset=utf-8"
    assert first.headers["idempotency-key"] == "t-0-0"
    assert second.body.decode() == "zwölf"
    task.stop()


def test_topic_and_key_stand_in_the_url_with_their_characters_escaped(service: Service) -> None:
    task = started(service.url + "/${topic}/${key}", request_method="put")
    task.put([record(0, "x", key="a/b ü")])
    task.put([record(1, "x", key=7)])
    assert [(seen.method, seen.path) for seen in service.seen] == [
        ("PUT", "/t/a%2Fb%20%C3%BC"),
        ("PUT", "/t/7"),
    ]
    task.stop()


def test_json_values_are_sent_as_an_array(service: Service) -> None:
    schema = data.struct(
        "order",
        {
            "id": data.INT32,
            "price": data.decimal(2),
            "day": data.date(),
            "at": data.timestamp(),
            "clock": data.time(),
            "raw": data.BYTES,
            "note": data.OPTIONAL_STRING,
        },
    )
    day = datetime.date(1970, 1, 3)
    at = datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=datetime.UTC)
    value = Struct(
        schema, [1, Decimal("10.50"), day, at, datetime.time(0, 0, 2), b"\x00\xff", None]
    )
    task = started(service.url, request_body_format="json")
    task.put([record(0, value)])
    assert service.bodies == [
        '[{"id":1,"price":10.50,"day":2,"at":1500,"clock":2000,"raw":"AP8=","note":null}]'
    ]
    assert service.seen[0].headers["content-type"] == "application/json"
    task.stop()


@pytest.mark.parametrize(
    ("settings", "bodies"),
    [
        ({"batch.max.size": "3"}, ['[{"n":0},{"n":1},{"n":2}]', '[{"n":3},{"n":4}]']),
        (
            {
                "batch.max.size": "10",
                "batch.prefix": '{"rows":[',
                "batch.suffix": "]}",
                "batch.separator": ", ",
            },
            ['{"rows":[{"n":0}, {"n":1}, {"n":2}, {"n":3}, {"n":4}]}'],
        ),
        (
            {"batch.max.size": "4", "batch.json.as.array": "false", "batch.separator": "\\n"},
            ['{"n":0}\n{"n":1}\n{"n":2}\n{"n":3}', '{"n":4}'],
        ),
        (
            {"batch.max.size": "5", "batch.json.as.array": "false", "batch.separator": "\n"},
            ['{"n":0}\n{"n":1}\n{"n":2}\n{"n":3}\n{"n":4}'],
        ),
    ],
)
def test_records_are_sent_in_batches(
    service: Service, settings: dict[str, str], bodies: list[str]
) -> None:
    task = started(service.url, settings, request_body_format="json")
    task.put([record(offset, {"n": offset}) for offset in range(5)])
    assert service.bodies == bodies
    task.stop()


def test_a_batch_has_records_of_one_partition_and_one_url(service: Service) -> None:
    task = started(service.url + "/${key}", batch_max_size="10")
    task.put(
        [
            record(0, "a", "k"),
            record(1, "b", "k"),
            record(2, "c", "other"),
            record(0, "d", "other", partition=1),
        ]
    )
    assert [(seen.path, seen.body.decode()) for seen in service.seen] == [
        ("/k", "a,b"),
        ("/other", "c"),
        ("/other", "d"),
    ]
    assert service.seen[0].headers["idempotency-key"] == "t-0-0-1"
    task.stop()


def test_headers_and_authentication_are_sent(service: Service) -> None:
    basic = started(
        service.url,
        headers="X-Team:blue|content-type: application/xml",
        auth_type="basic",
        connection_user="ann",
        connection_password="secret",
        idempotency_key_header="",
    )
    bearer = started(service.url, auth_type="BEARER", bearer_token="abc")
    basic.put([record(0, "x")])
    bearer.put([record(0, "x")])
    first, second = (seen.headers for seen in service.seen)
    assert first["x-team"] == "blue"
    assert first["content-type"] == "application/xml"
    assert first["authorization"] == "Basic YW5uOnNlY3JldA=="
    assert "idempotency-key" not in first
    assert second["authorization"] == "Bearer abc"
    basic.stop()
    bearer.stop()


def test_records_without_a_value_are_skipped_deleted_or_refused(service: Service) -> None:
    records = [record(0, "a", "k"), record(1, None, "k"), record(2, "b", "k")]
    ignoring = started(service.url + "/${key}", batch_max_size="10")
    ignoring.put(records)
    assert service.bodies == ["a", "b"]
    service.seen.clear()
    deleting = started(service.url + "/${key}", behavior_on_null_values="delete")
    deleting.put(records)
    assert [seen.method for seen in service.seen] == ["POST", "DELETE", "POST"]
    assert service.seen[1].path == "/k"
    failing = started(service.url, behavior_on_null_values="fail")
    with pytest.raises(ConnectError, match="the record has no value"):
        failing.put(records)
    for task in (ignoring, deleting, failing):
        task.stop()


def test_a_skipped_record_is_logged_when_that_is_set(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    task = started(service.url, behavior_on_null_values="log")
    with caplog.at_level(logging.WARNING):
        task.put([record(3, None)])
    assert 'topic "t" partition 0 offset 3' in caplog.text
    task.stop()


def test_a_busy_service_gets_the_rest_of_the_records_again(service: Service) -> None:
    task = started(service.url, retry_backoff_ms="100", max_retries="5")
    records = [record(offset, f"{offset}") for offset in range(4)]
    service.answers = [
        PlainTextResponse("fine"),
        PlainTextResponse("busy", 503),
        PlainTextResponse("busy", 429, headers={"Retry-After": "2"}),
    ]
    for _ in range(2):
        with pytest.raises(RetriableError, match="the service responded with"):
            task.put(records)
    task.put(records)
    assert service.bodies == ["0", "1", "1", "1", "2", "3"]
    assert timeouts_of(task) == [100, 2_000]
    task.put([record(4, "4")])
    assert service.bodies[-1] == "4"
    task.stop()


def test_the_wait_doubles_with_every_failure_up_to_a_minute(service: Service) -> None:
    task = started(service.url, retry_backoff_ms="20000", max_retries="4")
    service.answers = [PlainTextResponse("busy", 500) for _ in range(5)]
    for _ in range(4):
        with pytest.raises(RetriableError):
            task.put([record(0, "x")])
    assert timeouts_of(task) == [20_000, 40_000, 60_000, 60_000]
    with pytest.raises(ConnectError, match="the service responded with 500") as caught:
        task.put([record(0, "x")])
    assert not isinstance(caught.value, RetriableError)
    assert 'topic "t" partition 0 offset 0' in caught.value.at
    task.stop()


def test_a_refused_record_fails_the_task_at_once(service: Service) -> None:
    task = started(service.url)
    service.answers = [PlainTextResponse("no such thing", 404)]
    with pytest.raises(ConnectError, match="404 Not Found: no such thing"):
        task.put([record(0, "x")])
    assert timeouts_of(task) == []
    task.stop()


@pytest.mark.parametrize("behavior", ["ignore", "log"])
def test_records_that_cannot_be_delivered_are_passed_over_when_that_is_set(
    service: Service, behavior: str, caplog: pytest.LogCaptureFixture
) -> None:
    task = started(service.url, behavior_on_error=behavior)
    service.answers = [PlainTextResponse("bad", 400)]
    with caplog.at_level(logging.ERROR):
        task.put([record(0, "bad"), record(1, "good")])
    assert service.bodies == ["bad", "good"]
    assert ("offset 0 on are lost" in caplog.text) == (behavior == "log")
    task.stop()


def test_bad_records_are_reported_and_the_others_delivered(service: Service) -> None:
    reporter = ReportedRecords()
    task = started(service.url + "/${key}", reporter=reporter, request_body_format="json")
    service.answers = [PlainTextResponse("bad", 400)]
    bad, keyless, odd, good = (
        record(0, "bad", "k"),
        record(1, "x"),
        record(2, object(), "k"),
        record(3, "good", "k"),
    )
    task.put([bad, keyless, odd, good])
    assert [found for found, _ in reporter.reported] == [bad, keyless, odd]
    assert "the URL needs the record's key" in str(reporter.reported[1][1])
    assert "cannot write the value as JSON" in str(reporter.reported[2][1])
    assert service.bodies[-1] == '["good"]'
    task.stop()


@contextmanager
def raw_server(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that does what it likes with each connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                serve(connection)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def test_a_service_that_hangs_up_is_tried_again() -> None:
    answers = [b"", b"HTTP/1.1 200", b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"]

    def serve(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(answers.pop(0))

    with raw_server(serve) as url:
        task = started(url)
        for _ in range(2):
            with pytest.raises(RetriableError, match="the service cannot be reached"):
                task.put([record(0, "x")])
        task.put([record(0, "x")])
        task.stop()


def test_a_service_that_does_not_answer_in_time_is_tried_again() -> None:
    done = threading.Event()

    def serve(connection: socket.socket) -> None:
        done.wait(60)

    with raw_server(serve) as url:
        task = started(url, http_request_timeout_ms="50")
        with pytest.raises(RetriableError, match="timed out"):
            task.put([record(0, "x")])
        task.stop()
        done.set()


def test_a_service_that_is_not_there_is_tried_again_until_the_retries_are_used_up() -> None:
    free = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{free.getsockname()[1]}"
    free.close()
    task = started(url, max_retries="1")
    with pytest.raises(RetriableError):
        task.put([record(0, "x")])
    with pytest.raises(ConnectError, match="the service cannot be reached") as caught:
        task.put([record(0, "x")])
    assert not isinstance(caught.value, RetriableError)
    task.stop()


def test_partitions_that_are_opened_again_forget_a_half_delivered_put(service: Service) -> None:
    task = started(service.url)
    records = [record(0, "a"), record(1, "b")]
    service.answers = [PlainTextResponse("fine"), PlainTextResponse("busy", 500)]
    with pytest.raises(RetriableError):
        task.put(records)
    task.open([])
    task.put(records)
    assert service.bodies == ["a", "b", "a", "b"]
    task.stop()


@pytest.mark.parametrize(
    ("settings", "name", "why"),
    [
        ({"http.api.url": "example.com"}, "http.api.url", "is not a valid URL"),
        ({"http.api.url": "http://x/${offset}"}, "http.api.url", "unknown placeholder"),
        ({"headers": "no colon"}, "headers", '"no colon" in headers is not a valid header'),
        ({"auth.type": "basic"}, "connection.user", "no connection.user"),
        ({"auth.type": "bearer"}, "bearer.token", "no bearer.token"),
    ],
)
def test_wrong_settings_are_found_before_anything_starts(
    settings: dict[str, str], name: str, why: str
) -> None:
    config = {"http.api.url": "http://localhost:1", **settings}
    found = HttpSinkConnector().validate(config)
    assert list(found) == [name]
    assert why in found[name][0]
    with pytest.raises(ConfigError):
        HttpSinkConnector().start(config)


def test_what_the_definition_refuses_is_not_said_twice() -> None:
    assert HttpSinkConnector().validate({"request.method": "GET"}) == {}
    with pytest.raises(ConfigError, match="5xx"):
        HttpSinkConnector().start({"http.api.url": "http://x", "retry.on.status.codes": "5xx"})


def test_all_tasks_send_to_the_same_service() -> None:
    connector = HttpSinkConnector()
    config = {"http.api.url": "http://localhost:1"}
    connector.start(config)
    assert connector.task_configs(2) == [config, config]
    assert connector.task_class() is HttpSinkTask
    assert connector.alter_offsets(config, {})
    assert connector.validate(config) == {}


def test_status_codes_are_codes_and_ranges() -> None:
    codes = StatusCodes("404, 500-502 ,509-")
    assert [code for code in range(600) if code in codes][:5] == [404, 500, 501, 502, 509]
    assert 599 in codes
    for wrong in ("x", "500-x", "600-500"):
        with pytest.raises(ConfigError):
            StatusCodes(wrong)


def test_json_bodies_can_be_read_back(service: Service) -> None:
    value = {"text": "naïve", "list": [1, 2.5, None, True], "map": {"a": {"b": "c"}}}
    task = started(service.url, request_body_format="json", batch_json_as_array="false")
    task.put([record(0, value)])
    assert json.loads(service.bodies[0]) == value
    task.stop()
