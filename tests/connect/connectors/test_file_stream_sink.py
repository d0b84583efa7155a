"""FileStreamSink: a line for every record, as Kafka's sink writes it."""

from pathlib import Path

import pytest

from broker.model import TopicPartition
from connect import data
from connect.connectors.file_stream_sink import FileStreamSinkConnector, FileStreamSinkTask
from connect.data import Struct
from connect.errors import ConnectError
from connect.records import SinkRecord


def record(value: object, offset: int = 0) -> SinkRecord:
    return SinkRecord("t", 0, None, None, None, value, offset)


def test_values_are_added_to_the_file_and_seen_at_once(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    file.write_text("before\n")
    task = FileStreamSinkTask()
    task.start({"file": str(file)})
    task.put([record("one"), record("Zürich")])
    assert file.read_text(encoding="utf-8") == "before\none\nZürich\n"
    task.put([])
    task.flush({TopicPartition("t", 0): 2})
    task.stop()


def test_a_file_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match="Couldn't find or create file"):
        FileStreamSinkTask().start({"file": str(tmp_path / "no" / "out.txt")})


def test_without_a_file_lines_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    task = FileStreamSinkTask()
    task.start({})
    task.put([record("one"), record(None)])
    task.flush({})
    task.stop()
    assert capsys.readouterr().out == "one\nnull\n"


def test_values_that_are_not_strings_are_written_as_java_prints_them(tmp_path: Path) -> None:
    point = data.struct("point", {"x": data.INT32, "label": data.OPTIONAL_STRING})
    task = FileStreamSinkTask()
    task.start({"file": str(tmp_path / "out.txt")})
    values = [True, 1e10, ["a", None], {"a": 1}, Struct(point, [1, "north"])]
    task.put([record(value) for value in values])
    task.stop()
    lines = (tmp_path / "out.txt").read_text().splitlines()
    assert lines == ["true", "1.0E10", "[a, null]", "{a=1}", "Struct{x=1,label=north}"]


def test_all_tasks_write_to_the_same_file() -> None:
    connector = FileStreamSinkConnector()
    connector.start({"file": "out.txt"})
    assert connector.task_configs(2) == [{"file": "out.txt"}] * 2
    assert connector.task_class() is FileStreamSinkTask
    assert connector.alter_offsets({}, {TopicPartition("t", 0): 5})
