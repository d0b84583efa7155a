"""`python -m broker`: the command line, signals, exit codes."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from broker.__main__ import load_config, main, parse
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.server.listeners import listen_endpoints
from tests.support.raw_client import RawClient


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=3\nlog.dirs=/nowhere\nbroker.id=7\n")
    options = parse(
        [str(file), "--config", "num.partitions=4", "--data-dir", "here", "--port", "5"]
    )
    config = load_config(options)
    assert (config.num_partitions, config.broker_id) == (4, 7)
    assert (config.data_directory, config.listeners) == ("here", ("PLAINTEXT://127.0.0.1:5",))


@pytest.mark.parametrize("arguments", [[], ["--port", "5"]])
def test_without_a_host_only_this_machine_can_connect(arguments: list[str]) -> None:
    (endpoint,) = listen_endpoints(load_config(parse(arguments)))
    assert endpoint.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--config", "num.partitons=4"], 'did you mean "num.partitions"'),
        (["--config", "num.partitions=many"], "integer"),
        (["/no/such/file"], "No such file"),
        (["--config", "listeners=SSL://:1"], "SSL"),
        (["--config", "listener.security.protocol.map=PLAINTEXT:SSL"], "does not support"),
    ],
)
def test_a_wrong_setting_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], said: str
) -> None:
    assert main(["--data-dir", str(tmp_path), *arguments]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_broker_in_order(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "broker", "--data-dir", str(tmp_path), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on 127.0.0.1:")
        with RawClient(line.split()[-1]) as client:
            client.ask(MetadataRequest(None), MetadataResponse)
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert (tmp_path / ".kafka_cleanshutdown").exists()
