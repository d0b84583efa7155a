"""The client of the REST API, against a worker."""

from pathlib import Path

import pytest

from broker import Broker
from connect.client import ConnectClient, ConnectRefused
from connect.config.worker_config import WorkerConfig
from connect.server import ConnectServer
from tests.support.kafka_connect_worker import worker_settings
from tests.support.peer import wait_until
from tests.support.ports import held_ports

pytestmark = pytest.mark.slow


def worker(broker: Broker, **settings: str) -> ConnectServer:
    named = {name.replace("_", "."): text for name, text in settings.items()}
    return ConnectServer(broker, WorkerConfig.parse(worker_settings("localhost:9092", 0) | named))


def test_everything_can_be_asked(broker: Broker, tmp_path: Path) -> None:
    lines = tmp_path / "in.txt"
    lines.write_text("one\ntwo\n")
    config = {"connector.class": "FileStreamSource", "file": str(lines), "topic": "lines"}
    name = "two words/and a slash"
    with worker(broker) as server:
        client = ConnectClient(server.url)
        assert client.about()["kafka_cluster_id"]
        assert {each["type"] for each in client.plugins()} == {"source", "sink"}
        assert {each["type"] for each in client.plugins(connectors_only=False)} > {"converter"}
        assert client.validate("FileStreamSource", config)["error_count"] == 1
        client.create(name, config, initial_state="PAUSED")
        wait_until(lambda: state(client, name) == "PAUSED", "the pause")
        client.resume(name)
        wait_until(lambda: client.topics(name) == ["lines"], "the topic")
        client.put_config(name, config | {"x": "1"})
        assert client.patch_config(name, {"x": None, "y": "2"})["config"]["y"] == "2"
        wait_until(lambda: state(client, name) == "RUNNING", "the connector")
        client.restart(name)
        client.restart(name, include_tasks=True, only_failed=True)
        client.restart_task(name, 0)
        assert len(client.tasks(name)) == 1
        client.pause(name)
        client.stop(name)
        wait_until(lambda: state(client, name) == "STOPPED", "the stop")
        partition = {"partition": {"filename": str(lines)}}
        assert "altered" in client.alter_offsets(name, [{**partition, "offset": {"position": 4}}])
        assert client.offsets(name) == [{**partition, "offset": {"position": 4}}]
        assert "reset" in client.reset_offsets(name)
        assert client.describe(name)["name"] == name
        client.delete(name)
        assert client.names() == []
        with pytest.raises(ConnectRefused, match="not found") as caught:
            client.describe(name)
        assert caught.value.status == 404


def state(client: ConnectClient, name: str) -> str:
    try:
        return str(client.status(name)["connector"]["state"])
    except ConnectRefused:
        return ""


def test_a_worker_that_is_not_there_is_named() -> None:
    (port,) = held_ports(1)
    with pytest.raises(ConnectRefused, match="does not respond") as caught:
        ConnectClient(f"http://127.0.0.1:{port}").names()
    assert str(port) in caught.value.hint


def test_tracking_of_topics_can_be_forbidden(broker: Broker) -> None:
    with worker(broker, topic_tracking_enable="false") as server:
        with pytest.raises(ConnectRefused, match="Topic tracking is disabled") as caught:
            ConnectClient(server.url).topics("x")
        assert caught.value.status == 403
    with (
        worker(broker, topic_tracking_allow_reset="false") as server,
        pytest.raises(ConnectRefused, match="Topic tracking reset is disabled"),
    ):
        ConnectClient(server.url)._ask("PUT", "/connectors/x/topics/reset")


def test_a_worker_has_several_listeners_and_metrics(broker: Broker) -> None:
    listeners = "http://127.0.0.1:0,http://127.0.0.1:0"
    with worker(broker, listeners=listeners) as server:
        urls = server.urls
        assert len(set(urls)) == 2
        for url in urls:
            assert ConnectClient(url).names() == []
