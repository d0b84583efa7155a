"""StateDirectory: one process per task folder; what nobody uses for long is removed."""

import subprocess
import sys
from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.machine import Machine
from streams.errors import StateDirectoryLocked
from streams.state.directory import StateDirectory

HOUR_MS = 3_600_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def directory(tmp_path: Path, clock: ManualClock) -> StateDirectory:
    return StateDirectory(tmp_path, "app", Machine(clock=clock))


def test_a_task_has_a_folder_of_its_own(tmp_path: Path, directory: StateDirectory) -> None:
    assert directory.tasks() == []
    directory.lock("0_1").release()
    directory.lock("0_0").release()
    (tmp_path / "app" / "global").mkdir()
    assert directory.tasks() == ["0_0", "0_1"]
    assert (tmp_path / "app" / "0_1").is_dir()


def test_a_folder_is_locked_until_it_is_released(directory: StateDirectory) -> None:
    held = directory.lock("0_0")
    with pytest.raises(StateDirectoryLocked, match='task "0_0" is in use'):
        directory.lock("0_0")
    other = directory.lock("0_1")
    held.release()
    held.release()
    directory.lock("0_0").release()
    other.release()


@pytest.mark.slow
def test_a_lock_ends_with_its_process(tmp_path: Path, directory: StateDirectory) -> None:
    program = (
        "import sys; from streams.state.directory import StateDirectory\n"
        "from broker.machine import Machine\n"
        "held = StateDirectory(sys.argv[1], 'app', Machine()).lock('0_0')\n"
        "print('held', flush=True); sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(StateDirectoryLocked):
        directory.lock("0_0")
    process.kill()
    process.wait()
    process.stdout.close()
    process.stdin.close()
    directory.lock("0_0").release()


def test_clean_up_removes_what_was_not_used_for_long(
    directory: StateDirectory, clock: ManualClock
) -> None:
    directory.lock("0_0").release()
    directory.lock("0_1").release()
    held = directory.lock("0_2")
    clock.advance(HOUR_MS)
    directory.lock("0_3").release()
    assert directory.clean(unused_for_ms=HOUR_MS, keep={"0_1"}) == ["0_0"]
    assert directory.tasks() == ["0_1", "0_2", "0_3"]
    assert not directory.remove("0_2")
    held.release()
    assert directory.remove("0_2")
    assert directory.tasks() == ["0_1", "0_3"]
