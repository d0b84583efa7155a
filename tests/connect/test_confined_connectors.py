"""What a request may make a worker of `millstream up` load and open: no code, no file elsewhere."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker import Broker
from connect.client import ConnectClient, ConnectRefused
from connect.config.worker_config import WorkerConfig
from connect.server import ConnectServer
from tests.connect.running_worker import SETTINGS, make_topic, write

pytestmark = pytest.mark.slow

CODE = """
from pathlib import Path
from connect.connectors.file_stream_sink import FileStreamSinkConnector

Path(__file__).with_name("was-imported").touch()


class Evil(FileStreamSinkConnector):
    pass
"""


@pytest.fixture
def client(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ConnectClient]:
    """A worker in a directory of its own, without settings that allow more."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    settings = {
        name: value for name, value in SETTINGS.items() if name != "connector.allowed.paths"
    }
    config = WorkerConfig.parse(settings | {"listeners": "http://127.0.0.1:0"})
    with ConnectServer(broker, config) as server:
        yield ConnectClient(server.url)


def test_a_class_of_a_module_that_is_not_listed_is_not_loaded(
    client: ConnectClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "written_by_a_page.py").write_text(CODE)
    monkeypatch.syspath_prepend(folder)
    config = {"connector.class": "written_by_a_page:Evil", "topics": "t", "file": "out.txt"}
    with pytest.raises(ConnectRefused, match="written_by_a_page"):
        client.create("evil", config)
    assert not (folder / "was-imported").exists()
    assert "written_by_a_page" not in sys.modules
    assert client.names() == []


def test_a_file_outside_of_the_working_directory_is_not_written(
    client: ConnectClient, broker: Broker, tmp_path: Path
) -> None:
    make_topic(broker, "t")
    write(broker, "t", "import os")
    outside = tmp_path / "outside.txt"
    config = {"connector.class": "FileStreamSink", "topics": "t", "tasks.max": "1"}
    for path in (str(outside), "../outside.txt"):
        with pytest.raises(ConnectRefused, match="outside"):
            client.create("writes", config | {"file": path})
    assert client.names() == []
    assert not outside.exists()


def test_a_file_outside_of_the_working_directory_is_not_read(
    client: ConnectClient, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret\n")
    config = {"connector.class": "FileStreamSource", "topic": "t", "file": str(secret)}
    with pytest.raises(ConnectRefused, match="directory"):
        client.create("reads", config)
    assert client.names() == []
