"""FileStreamSink: a line for every record, as Kafka's sink writes it."""

from pathlib import Path

import pytest

from broker.model import TopicPartition
from connect import data
from connect.connectors.file_stream_sink import FileStreamSinkConnector, FileStreamSinkTask
from connect.connectors.plain_text import plain_text
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


POINT = data.struct("point", {"x": data.INT32, "label": data.OPTIONAL_STRING})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        (None, "null"),
        (True, "true"),
        (7, "7"),
        (1.0, "1.0"),
        (1e10, "1.0E10"),
        (b"bytes", "bytes"),
        ([1, "a", None], "[1, a, null]"),
        ({"a": 1, "b": [True]}, "{a=1, b=[true]}"),
        (Struct(POINT, [1, "north"]), "Struct{x=1,label=north}"),
        (Struct(POINT, [1, None]), "Struct{x=1}"),
    ],
)
def test_values_are_written_as_java_prints_them(value: object, text: str) -> None:
    assert plain_text(value) == text


def test_all_tasks_write_to_the_same_file() -> None:
    connector = FileStreamSinkConnector()
    connector.start({"file": "out.txt"})
    assert connector.task_configs(2) == [{"file": "out.txt"}] * 2
    assert connector.task_class() is FileStreamSinkTask
    assert connector.alter_offsets({}, {TopicPartition("t", 0): 5})
