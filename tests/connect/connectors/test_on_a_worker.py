"""The connectors as users have them: created over REST, on a worker and a broker."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyarrow import parquet
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from broker import Broker
from broker.client.api import ConsumerRecord
from broker.client.opening import producer
from broker.rest.http_server import HttpServer
from connect.client import ConnectClient
from connect.config.worker_config import WorkerConfig
from connect.server import ConnectServer
from tests.connect.connectors.files_sink_driver import finished_files
from tests.support.kafka_connect_worker import worker_settings
from tests.support.peer import wait_until
from tests.support.topics import read_topic

pytestmark = pytest.mark.slow

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
STRING_CONVERTERS = {"key.converter": STRINGS, "value.converter": STRINGS}
PLAIN_JSON = {
    "key.converter": STRINGS,
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


@contextmanager
def working(broker: Broker, **settings: str) -> Iterator[ConnectClient]:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    config = WorkerConfig.parse(worker_settings("localhost:9092", 0) | named)
    with ConnectServer(broker, config) as server:
        yield ConnectClient(server.url)


def wait_for_tasks(client: ConnectClient, name: str, state: str = "RUNNING") -> None:
    def reached() -> bool:
        tasks = client.status(name)["tasks"]
        return bool(tasks) and all(task["state"] == state for task in tasks)

    wait_until(reached, f"tasks of {name} {state}")


def wait_for_records(broker: Broker, topic: str, count: int) -> None:
    wait_until(lambda: len(committed(broker, topic)) >= count, f"{count} records in {topic}")


def committed(broker: Broker, topic: str) -> list[ConsumerRecord]:
    return read_topic(broker, topic, committed=True)


def send(broker: Broker, topic: str, values: list[object]) -> None:
    with producer(broker) as out:
        for value in values:
            out.send(topic, key=b"k", value=json.dumps(value).encode())


def test_a_file_goes_through_a_topic_into_another_file(broker: Broker, tmp_path: Path) -> None:
    source, sink = tmp_path / "test.txt", tmp_path / "test.sink.txt"
    source.write_text("foo\nbar\n")
    with working(broker) as client:
        client.create(
            "local-file-source",
            {
                "connector.class": "FileStreamSource",
                "tasks.max": "1",
                "file": str(source),
                "topic": "connect-test",
                **STRING_CONVERTERS,
            },
        )
        client.create(
            "local-file-sink",
            {
                "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
                "tasks.max": "1",
                "file": str(sink),
                "topics": "connect-test",
                **STRING_CONVERTERS,
            },
        )
        wait_until(lambda: sink.exists() and sink.read_text() == source.read_text(), "equal files")
        with source.open("a") as out:
            out.write("baz\n")
        wait_until(lambda: sink.read_text() == "foo\nbar\nbaz\n", "a third line")
        for name in ("local-file-source", "local-file-sink"):
            client.delete(name)
        assert client.names() == []


def test_a_file_source_goes_on_where_the_worker_left_off(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("one\ntwo\n")
    config = {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": "lines",
        **STRING_CONVERTERS,
    }
    with working(broker) as client:
        client.create("lines", config)
        wait_until(lambda: client.topics("lines") == ["lines"], "the first lines")
    with file.open("a") as out:
        out.write("three\n")
    with working(broker) as client:
        wait_for_records(broker, "lines", 3)
        assert [record.value for record in read_topic(broker, "lines")] == [
            b"one",
            b"two",
            b"three",
        ]
        client.stop("lines")
        partition = {"partition": {"filename": str(file)}}
        assert client.offsets("lines") == [{**partition, "offset": {"position": 14}}]
        client.alter_offsets("lines", [{**partition, "offset": {"position": 4}}])
        client.resume("lines")
        wait_for_records(broker, "lines", 5)
    assert [record.value for record in read_topic(broker, "lines")][3:] == [b"two", b"three"]


def test_generated_orders_arrive_once_each_however_often_their_tasks_restart(
    broker: Broker,
) -> None:
    count, tasks = 4_000, 2
    with working(broker, exactly_once_source_support="enabled") as client:
        client.create(
            "orders",
            {
                "connector.class": "io.confluent.kafka.connect.datagen.DatagenConnector",
                "tasks.max": str(tasks),
                "kafka.topic": "orders",
                "quickstart": "orders",
                "rate": "4000",
                "iterations": str(count),
                "exactly.once.support": "required",
                "key.converter": "org.apache.kafka.connect.converters.IntegerConverter",
            },
        )
        for wanted in (count // 2, count, count * 3 // 2):
            wait_for_records(broker, "orders", wanted)
            client.restart("orders", include_tasks=True)
        wait_for_records(broker, "orders", count * tasks)
        wait_for_tasks(client, "orders")
    orders = [json.loads(record.value or b"") for record in committed(broker, "orders")]
    assert sorted(order["payload"]["orderid"] for order in orders) == list(range(count * tasks))
    assert orders[0]["schema"]["name"] == "ksql.orders"


def test_an_http_sink_waits_for_its_service_and_gives_bad_records_away(broker: Broker) -> None:
    taken: list[str] = []
    calls = iter(range(1_000))
    lock = threading.Lock()

    async def take(request: Request) -> Response:
        body = (await request.body()).decode()
        with lock:
            if next(calls) < 2:
                return PlainTextResponse("not yet", 503)
            if "bad" in body:
                return PlainTextResponse("no", 422)
            taken.append(body)
        return PlainTextResponse("fine")

    send(broker, "events", [{"n": 0}, {"n": 1}, {"n": "bad"}, {"n": 3}])
    application = Starlette(routes=[Route("/{rest:path}", take, methods=["POST"])])
    with (
        HttpServer(application, listen="127.0.0.1:0", name="service", json_only=False) as service,
        working(broker) as client,
    ):
        client.create(
            "events",
            {
                "connector.class": "HttpSink",
                "topics": "events",
                "http.api.url": f"http://{service.address}/${{topic}}/${{key}}",
                "request.body.format": "json",
                "batch.json.as.array": "false",
                "retry.backoff.ms": "10",
                **PLAIN_JSON,
                "errors.tolerance": "all",
                "errors.deadletterqueue.topic.name": "dead",
                "errors.deadletterqueue.topic.replication.factor": "1",
            },
        )
        wait_until(lambda: len(taken) >= 3, "three events")
        wait_for_tasks(client, "events")
    assert taken == ['{"n":0}', '{"n":1}', '{"n":3}']
    assert [record.value for record in read_topic(broker, "dead")] == [b'{"n": "bad"}']


@pytest.mark.parametrize("restarts", [0, 3])
def test_files_hold_every_record_once_while_their_task_restarts(
    broker: Broker, tmp_path: Path, restarts: int
) -> None:
    count, size = 1_000, 100
    directory = tmp_path / "files"
    send(broker, "numbers", [{"n": number} for number in range(count)])

    def numbers() -> list[int]:
        return [
            json.loads(line)["n"]
            for path in finished_files(directory)
            for line in path.read_text().splitlines()
        ]

    with working(broker) as client:
        client.create(
            "files",
            {
                "connector.class": "FilesSink",
                "topics": "numbers",
                "directory": str(directory),
                "flush.size": str(size),
                **PLAIN_JSON,
                "consumer.override.max.poll.records": "30",
            },
        )
        for _ in range(restarts):
            client.restart("files", include_tasks=True)
            wait_for_tasks(client, "files")
        wait_until(lambda: len(numbers()) >= count, "all numbers in files")
        send(broker, "numbers", [{"n": number} for number in range(count, count + size)])
        wait_until(lambda: len(numbers()) >= count + size, "more numbers in files")
    assert sorted(numbers()) == list(range(count + size))


def test_generated_records_become_parquet_with_their_schema(broker: Broker, tmp_path: Path) -> None:
    directory = tmp_path / "files"
    with working(broker) as client:
        client.create(
            "trades",
            {
                "connector.class": "Datagen",
                "kafka.topic": "trades",
                "quickstart": "stock_trades",
                "max.interval": "0",
                "iterations": "500",
            },
        )
        wait_for_records(broker, "trades", 500)
        client.create(
            "files",
            {
                "connector.class": "FilesSink",
                "topics": "trades",
                "directory": str(directory),
                "format": "parquet",
                "flush.size": "500",
                "partitioner.class": "field",
                "partition.field.name": "side",
            },
        )
        wait_until(lambda: len(finished_files(directory)) == 2, "files of both sides")
    tables = {path.parent.name: parquet.read_table(path) for path in finished_files(directory)}
    assert set(tables) == {"side=BUY", "side=SELL"}
    assert sum(table.num_rows for table in tables.values()) == 500
    names = ["side", "quantity", "symbol", "price", "account", "userid"]
    assert all(table.column_names == names for table in tables.values())


def test_a_directory_that_cannot_be_written_fails_its_own_task_only(
    broker: Broker, tmp_path: Path
) -> None:
    send(broker, "numbers", [{"n": 1}])
    (tmp_path / "taken").write_text("a file")
    files = {
        "connector.class": "FilesSink",
        "topics": "numbers",
        "flush.size": "1",
        **PLAIN_JSON,
    }
    with working(broker) as client:
        client.create("bad", {**files, "directory": str(tmp_path / "taken")})
        client.create("good", {**files, "directory": str(tmp_path / "good")})
        wait_for_tasks(client, "bad", "FAILED")
        wait_until(lambda: len(finished_files(tmp_path / "good")) == 1, "a file of the good one")
        (task,) = client.status("bad")["tasks"]
        assert str(tmp_path / "taken") in task["trace"]
        wait_for_tasks(client, "good")
