"""The commands of the README, as they are typed, with curl."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.millstream_broker import MillstreamBroker
from tests.support.millstream_worker import MillstreamWorker
from tests.support.peer import REPOSITORY, PeerMissing, find_command, skip_without_peer, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.peer]

LINES = "broker.id=0\n# comment\nlog.dirs=/tmp/kafka-logs\n"


def commands() -> list[str]:
    """What the README types into a console, without what it prints."""
    text = (REPOSITORY / "connect" / "README.md").read_text()
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    (block,) = [block for block in blocks if "load-config" in block]
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]


def test_a_file_goes_into_a_topic_and_out_again(tmp_path: Path) -> None:
    try:
        find_command("curl")
    except PeerMissing as missing:
        skip_without_peer(missing)
    (tmp_path / "server.properties").write_text(LINES)
    copy = tmp_path / "copy-of-server.properties"
    with (
        MillstreamBroker(tmp_path / "broker") as broker,
        MillstreamWorker(tmp_path / "worker", bootstrap=broker.bootstrap) as worker,
    ):
        load, dump, names, diff, *deletions = (
            command.replace("localhost:8083", worker.address).replace(
                '"file": "', f'"file": "{tmp_path}/'
            )
            for command in commands()
        )
        assert '"type":"source"' in run(load, tmp_path)
        assert '"type":"sink"' in run(dump, tmp_path)
        assert run(names, tmp_path) == '["dump-config","load-config"]'
        wait_until(lambda: copy.exists() and copy.read_text() == LINES, "the copy")
        assert run(diff, tmp_path) == ""
        for deletion in deletions:
            assert run(deletion, tmp_path) == ""
        assert run(names, tmp_path) == "[]"


def run(command: str, folder: Path) -> str:
    """Type a command; what it prints."""
    done = subprocess.run(
        ["bash", "-c", command.replace("curl", "curl --silent --show-error --fail", 1)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
