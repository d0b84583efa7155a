"""Two workers with one group.id: only the first runs the connectors."""

from pathlib import Path

import pytest

from broker import Broker
from connect.client import ConnectClient
from connect.config.worker_config import WorkerConfig
from connect.errors import ConnectError
from connect.server import ConnectServer
from tests.connect.running_worker import SETTINGS, make_topic, string_values
from tests.support.millstream_broker import MillstreamBroker
from tests.support.millstream_worker import MillstreamWorker
from tests.support.peer import wait_until
from tests.support.server_process import ServerFailed


@pytest.mark.slow
def test_two_servers_with_one_group_do_not_both_run(broker: Broker, tmp_path: Path) -> None:
    lines = tmp_path / "in.txt"
    lines.write_text("".join(f"{number}\n" for number in range(100)))
    make_topic(broker, "lines")
    settings = {**SETTINGS, "listeners": "http://127.0.0.1:0", "heartbeat.interval.ms": "100"}
    config = WorkerConfig.parse(settings)
    with ConnectServer(broker, config) as first:
        source = {"connector.class": "FileStreamSource", "file": str(lines), "topic": "lines"}
        ConnectClient(first.url).create("lines", source)
        with pytest.raises(ConnectError, match="another worker runs the connectors"):
            ConnectServer(broker, config).start()
        wait_until(lambda: len(string_values(broker, "lines")) >= 100, "all lines")
        assert first.failure is None
    assert len(string_values(broker, "lines")) == 100
    with ConnectServer(broker, config) as second:
        assert ConnectClient(second.url).names() == ["lines"]


@pytest.mark.slow
def test_a_second_process_is_refused_and_takes_over_after_kill_9(tmp_path: Path) -> None:
    broker_settings = {"group.initial.rebalance.delay.ms": "0"}
    settings: dict[str, str | None] = {"session.timeout.ms": "6000"}
    with MillstreamBroker(tmp_path / "broker", settings=broker_settings) as broker:
        first = MillstreamWorker(tmp_path / "a", bootstrap=broker.bootstrap, settings=settings)
        second = MillstreamWorker(tmp_path / "b", bootstrap=broker.bootstrap, settings=settings)
        try:
            first.start()
            with pytest.raises(ServerFailed, match="another worker runs the connectors"):
                second.start()
            first.kill()
            first.start()  # at once: it is the same member
            first.kill()
            second.start()  # when the session of the first is over
            assert second.client.names() == []
        finally:
            first.kill()
            second.kill()
