"""Who a process is, and where its state lies."""

from pathlib import Path
from random import Random

import pytest

from broker.clock import ManualClock
from broker.machine import Machine
from streams.runtime.partitions import TaskId
from streams.runtime.state_directories import StateDirectories


def directories(folder: Path, child: int | None = None) -> StateDirectories:
    return StateDirectories(folder, "app", Machine(), child)


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


@pytest.mark.parametrize("left", [bytes(37), b"\xff\xfe", b"3c1f", b""])
def test_an_id_that_lost_its_bytes_with_the_power_is_replaced(tmp_path: Path, left: bytes) -> None:
    first = directories(tmp_path)
    known = first.claim_process_id()
    first.release_process_id()
    (first.folder / "process.id").write_bytes(left)
    second = directories(tmp_path)
    replaced = second.claim_process_id()
    second.release_process_id()
    assert len(replaced) == len(known)
    assert directories(tmp_path).claim_process_id() == replaced


def test_ids_and_times_of_use_come_from_the_machine(tmp_path: Path) -> None:
    clock = ManualClock(1_000_000)
    machine = Machine(clock=clock, random=Random(7))
    mine = StateDirectories(tmp_path, "app", machine)
    assert mine.claim_process_id() == str(Machine(random=Random(7)).uuid())
    task = mine.lock(TaskId(0, 0))
    clock.advance(600_000)
    task.mark_used()
    task.release()
    clock.advance(500_000)
    assert mine.clean(unused_for_ms=600_000) == []
    clock.advance(100_000)
    assert mine.clean(unused_for_ms=600_000) == [TaskId(0, 0)]
