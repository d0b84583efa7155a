"""FileStreamSource: every line once, whatever happens to the file while it is read."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from connect.api import ExactlyOnceSupport
from connect.connectors import file_lines
from connect.connectors.file_lines import LineSplitter
from connect.connectors.file_stream_source import (
    FileStreamSourceConnector,
    FileStreamSourceTask,
)
from connect.data import STRING
from connect.errors import ConfigError, ConnectError
from connect.records import SourceRecord
from tests.connect.connectors.contexts import HandSourceContext


class Impatient(ManualClock):
    """A clock on which every wait is over at once."""

    def monotonic_ms(self) -> int:
        self.advance(1_000)
        return super().monotonic_ms()


def started(file: Path | str, position: object = None, **settings: str) -> FileStreamSourceTask:
    task = FileStreamSourceTask(Impatient())
    stored = [] if position is None else [({"filename": str(file)}, {"position": position})]
    task.context = HandSourceContext(*stored)
    task.start({"file": str(file), "topic": "lines", **settings})
    return task


def lines(task: FileStreamSourceTask) -> list[object]:
    """Everything there is to read now."""
    return [record.value for record in records(task)]


def records(task: FileStreamSourceTask) -> list[SourceRecord]:
    found: list[SourceRecord] = []
    while True:
        polled = task.poll()
        if not polled:
            return found
        found += polled


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lines.txt"


def test_lines_become_records_with_the_position_after_them(file: Path) -> None:
    file.write_text("one\ntwo\n")
    first, second = records(started(file))
    assert (first.topic, first.key, first.value_schema, first.value) == (
        "lines",
        None,
        STRING,
        "one",
    )
    assert first.source_partition == {"filename": str(file)}
    assert first.source_offset == {"position": 4}
    assert second.source_offset == {"position": 8}
    assert second.timestamp_ms is not None


def test_positions_are_bytes_not_characters(file: Path) -> None:
    file.write_text("Zürich\nGenève\n", encoding="utf-8")
    first, _ = records(started(file))
    assert first.source_offset == {"position": 8}
    assert lines(started(file, 8)) == ["Genève"]


def test_a_line_without_its_end_waits(file: Path) -> None:
    file.write_text("one\ntw")
    task = started(file)
    assert lines(task) == ["one"]
    with file.open("a") as out:
        out.write("o\nthree")
    assert lines(task) == ["two"]


@pytest.mark.parametrize("text", ["a\r\nb\r\n", "a\rb\r\n", "a\nb\n"])
def test_all_three_line_ends_are_understood(file: Path, text: str) -> None:
    file.write_bytes(text.encode())
    assert lines(started(file)) == ["a", "b"]


def test_a_carriage_return_at_the_end_waits_for_what_follows(file: Path) -> None:
    file.write_bytes(b"a\r")
    task = started(file)
    assert lines(task) == []
    with file.open("ab") as out:
        out.write(b"\nb\n")
    assert lines(task) == ["a", "b"]


def test_bytes_that_are_no_text_are_replaced(file: Path) -> None:
    file.write_bytes(b"a\xffb\n")
    assert lines(started(file)) == ["a\ufffdb"]


def test_a_file_that_is_not_there_yet_is_waited_for(file: Path) -> None:
    task = started(file)
    assert task.poll() is None
    file.write_text("here\n")
    assert lines(task) == ["here"]


def test_reading_goes_on_at_the_stored_position(file: Path) -> None:
    file.write_text("one\ntwo\nthree\n")
    assert lines(started(file, 4)) == ["two", "three"]


def test_a_stored_position_behind_the_end_means_the_file_was_cut_off(file: Path) -> None:
    file.write_text("new\n")
    assert lines(started(file, 400)) == ["new"]


def test_a_stored_position_that_is_not_a_number_is_refused(file: Path) -> None:
    file.write_text("one\n")
    with pytest.raises(ConnectError, match="Offset position is the incorrect type"):
        started(file, "4").poll()


def test_a_batch_holds_at_most_its_size(file: Path) -> None:
    file.write_text("".join(f"{number}\n" for number in range(10)))
    task = started(file, **{"batch.size": "4"})
    sizes = [len(task.poll() or ()) for _ in range(4)]
    assert sizes == [4, 4, 2, 0]


def test_a_file_that_is_cut_off_is_read_from_its_beginning(file: Path) -> None:
    file.write_text("one\ntwo\nunfinished")
    task = started(file)
    assert lines(task) == ["one", "two"]
    os.truncate(file, 0)
    assert lines(task) == []
    with file.open("a") as out:
        out.write("three\n")
    assert lines(task) == ["three"]


def test_copy_and_truncate_is_seen_even_when_the_file_has_grown_again(file: Path) -> None:
    file.write_text("one\ntwo\n")
    task = started(file)
    assert lines(task) == ["one", "two"]
    file.write_text("first of many\nsecond of many\n")
    assert lines(task) == ["first of many", "second of many"]


def test_a_file_that_takes_the_name_is_read_after_the_rest_of_the_old_one(
    file: Path, tmp_path: Path
) -> None:
    file.write_text("one\n")
    task = started(file)
    assert lines(task) == ["one"]
    with file.open("a") as out:
        out.write("two\nnever finished")
    file.rename(tmp_path / "lines.txt.1")
    assert lines(task) == ["two"]
    file.write_text("three\n")
    last, new = records(task) + records(task)
    assert (last.value, last.source_offset) == ("never finished", {"position": 0})
    assert (new.value, new.source_offset) == ("three", {"position": 6})


def test_a_task_that_waits_returns_when_it_is_stopped(file: Path) -> None:
    file.write_text("one\n")
    task = FileStreamSourceTask(ManualClock())  # time stands still: only a stop ends the wait
    task.context = HandSourceContext()
    task.start({"file": str(file), "topic": "lines"})
    assert len(task.poll() or ()) == 1
    waiting = Thread(target=task.poll)
    waiting.start()
    task.stop()
    waiting.join(60)
    assert not waiting.is_alive()
    assert task.poll() is None


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match="it is not a regular file"):
        started(tmp_path).poll()


def test_a_line_that_never_ends_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lines, "LINE_BYTES_MAX", 10)
    file.write_text("x" * 11)
    with pytest.raises(ConnectError, match="a line is longer than 10 bytes"):
        started(file).poll()


@given(
    st.lists(st.text(alphabet="ab\n\r\u20ac", max_size=6), max_size=20),
    st.integers(1, 7),
)
def test_lines_are_the_same_however_the_bytes_arrive(pieces: list[str], size: int) -> None:
    data = ("".join(pieces) + "|\n").encode()
    at_once = LineSplitter().split(data)
    splitter = LineSplitter()
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert [line for chunk in chunks for line in splitter.split(chunk)] == at_once
    assert at_once[-1][1] == len(data)


READ_STANDARD_INPUT = """
from connect.connectors.file_stream_source import FileStreamSourceTask
task = FileStreamSourceTask()
task.start({"topic": "lines"})
found = []
while len(found) < 2:
    found += task.poll() or []
print([(record.value, record.source_partition, record.source_offset) for record in found])
"""


@pytest.mark.slow
def test_without_a_file_lines_come_from_standard_input() -> None:
    done = subprocess.run(
        [sys.executable, "-c", READ_STANDARD_INPUT],
        input="one\ntwo\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    nowhere = {"filename": None}, {"position": None}
    assert done.stdout.strip() == str([("one", *nowhere), ("two", *nowhere)])


def test_one_task_reads_however_many_are_allowed() -> None:
    connector = FileStreamSourceConnector()
    connector.start({"file": "a.txt", "topic": "lines"})
    assert connector.task_configs(5) == [{"file": "a.txt", "topic": "lines"}]
    assert connector.task_class() is FileStreamSourceTask


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, 'Missing required configuration "topic" which has no default value.'),
        ({"topic": ""}, "Invalid value  for configuration topic: String must be non-empty"),
        (
            {"topic": "t", "batch.size": "many"},
            "Invalid value many for configuration batch.size: Not a number of type INT",
        ),
    ],
)
def test_wrong_settings_are_refused_in_kafkas_words(
    settings: Mapping[str, str], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        FileStreamSourceConnector().start(settings)
    assert caught.value.message == message


def test_exactly_once_needs_a_file() -> None:
    connector = FileStreamSourceConnector()
    file = {"topic": "t", "file": "a.txt"}
    assert connector.exactly_once_support(file) is ExactlyOnceSupport.SUPPORTED
    assert connector.exactly_once_support({"topic": "t"}) is ExactlyOnceSupport.UNSUPPORTED


@pytest.mark.parametrize(
    ("partition", "offset", "message"),
    [
        ({"filename": "a"}, {"place": 1}, "either be null or contain the key 'position'"),
        ({"filename": "a"}, {"position": "1"}, "is expected to be a Long value"),
        ({"filename": "a"}, {"position": True}, "is expected to be a Long value"),
        ({"filename": "a"}, {"position": -1}, "should be a non-negative value"),
        (None, {"position": 1}, "Partition objects cannot be null"),
        ({"name": "a"}, {"position": 1}, "should contain the key 'filename'"),
    ],
)
def test_offsets_that_are_no_position_in_a_file_are_refused(
    partition: Mapping[str, object], offset: Mapping[str, object], message: str
) -> None:
    connector = FileStreamSourceConnector()
    with pytest.raises(ConnectError, match=message):
        connector.alter_offsets({"topic": "t", "file": "a"}, [(partition, offset)])


def test_positions_and_resets_are_accepted() -> None:
    connector = FileStreamSourceConnector()
    config = {"topic": "t", "file": "a"}
    assert connector.alter_offsets(config, [({"filename": "a"}, {"position": 0}), ({}, None)])
    with pytest.raises(ConnectError, match="'file' configuration is unspecified"):
        connector.alter_offsets({"topic": "t"}, [])
