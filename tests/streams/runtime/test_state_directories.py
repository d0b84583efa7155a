"""Who a process is, and where its state lies."""

from pathlib import Path

from broker.clock import SystemClock
from streams.runtime.partitions import TaskId
from streams.runtime.state_directories import StateDirectories


def directories(folder: Path, child: int | None = None) -> StateDirectories:
    return StateDirectories(folder, "app", SystemClock(), child)


def test_a_process_keeps_its_id_over_a_restart(tmp_path: Path) -> None:
    first = directories(tmp_path)
    known = first.claim_process_id()
    first.release_process_id()
    assert directories(tmp_path).claim_process_id() == known


def test_two_processes_at_once_have_two_ids(tmp_path: Path) -> None:
    first, second = directories(tmp_path), directories(tmp_path)
    assert first.claim_process_id() != second.claim_process_id()
    first.release_process_id()
    second.release_process_id()


def test_children_have_folders_of_their_own(tmp_path: Path) -> None:
    first, second = directories(tmp_path, 0), directories(tmp_path, 1)
    assert first.folder != second.folder
    first.lock(TaskId(0, 1)).release()
    assert first.tasks_on_disk() == [TaskId(0, 1)]
    assert second.tasks_on_disk() == []
