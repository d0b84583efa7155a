"""Producer ids are given out once."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.producer_ids import BLOCK_SIZE, FILE_NAME, ProducerIds
from broker.errors import BrokerError, ErrorCode, StorageError


def opened(directory: Path) -> ProducerIds:
    ids = ProducerIds(directory)
    ids.load()
    return ids


@given(uses=st.lists(st.integers(0, 2 * BLOCK_SIZE + 1), min_size=1, max_size=5))
def test_no_id_is_given_out_twice_over_crashes(
    tmp_path_factory: pytest.TempPathFactory, uses: list[int]
) -> None:
    directory = tmp_path_factory.mktemp("ids")
    given_out: list[int] = []
    for count in uses:
        ids = opened(directory)
        given_out += [ids.next() for _ in range(count)]
    assert given_out == sorted(set(given_out))


def test_the_first_id_is_zero_and_a_block_is_reserved_before_it_is_given_out(
    tmp_path: Path,
) -> None:
    assert opened(tmp_path).next() == 0
    assert (tmp_path / FILE_NAME).read_text() == f"{BLOCK_SIZE}\n"


def test_an_id_found_in_the_logs_is_skipped_even_if_the_file_was_lost(tmp_path: Path) -> None:
    ids = opened(tmp_path)
    ids.skip_past(4711)
    assert ids.next() == 4712
    assert opened(tmp_path).next() == 4712 + BLOCK_SIZE


def test_a_damaged_file_is_named_in_the_error(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("many\n")
    with pytest.raises(StorageError, match="not a number") as caught:
        opened(tmp_path)
    assert FILE_NAME in str(caught.value)


def test_a_disk_that_refuses_is_a_storage_error_of_the_protocol(tmp_path: Path) -> None:
    ids = opened(tmp_path / "nowhere")
    with pytest.raises(BrokerError) as caught:
        ids.next()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_the_next_block_is_reserved_in_the_background(tmp_path: Path) -> None:
    jobs: list[Callable[[], object]] = []
    ids = ProducerIds(tmp_path, in_background=jobs.append)
    ids.load()
    found = [ids.next() for _ in range(BLOCK_SIZE)]
    assert (tmp_path / FILE_NAME).read_text() == f"{BLOCK_SIZE}\n"
    assert len(jobs) == 1
    jobs.pop()()
    assert (tmp_path / FILE_NAME).read_text() == f"{2 * BLOCK_SIZE}\n"
    (tmp_path / FILE_NAME).unlink()
    found += [ids.next() for _ in range(BLOCK_SIZE)]
    assert not (tmp_path / FILE_NAME).exists(), "nobody has waited for the disk"
    assert found == list(range(2 * BLOCK_SIZE))


def test_the_first_producer_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    ids = opened(tmp_path)
    ids.skip_past(4711)
    (tmp_path / FILE_NAME).unlink()
    assert ids.next() == 4712
    assert not (tmp_path / FILE_NAME).exists()


def test_producers_try_again_while_the_disk_is_slower_than_they_are(tmp_path: Path) -> None:
    jobs: list[Callable[[], object]] = []
    ids = ProducerIds(tmp_path, in_background=jobs.append)
    ids.load()
    assert [ids.next() for _ in range(BLOCK_SIZE)] == list(range(BLOCK_SIZE))
    with pytest.raises(BrokerError) as caught:
        ids.next()
    assert caught.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    [job] = jobs
    job()
    assert (tmp_path / FILE_NAME).read_text() == f"{2 * BLOCK_SIZE}\n"
    assert ids.next() == BLOCK_SIZE


def test_a_block_that_could_not_be_reserved_is_reserved_later(tmp_path: Path) -> None:
    directory = tmp_path / "late"
    jobs: list[Callable[[], object]] = []
    ids = ProducerIds(directory, in_background=jobs.append)
    ids.load()
    codes = []
    for _ in range(2):
        with pytest.raises(BrokerError) as caught:
            ids.next()
        codes.append(caught.value.code)
        jobs.pop()()
    assert codes == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.KAFKA_STORAGE_ERROR]
    directory.mkdir()
    with pytest.raises(BrokerError):
        ids.next()
    jobs.pop()()
    assert ids.next() == 0
