"""The file system of this machine."""

import os
import threading
from pathlib import Path

from broker.files import FileSystem


def test_a_file_is_read_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert FileSystem().read_file(str(tmp_path / "a")) == b"abc"
    assert FileSystem().read_file(str(tmp_path / "b")) is None


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = b"CREATE STREAM s;" * 10_000
    writer = threading.Thread(target=pipe.write_bytes, args=(text,))
    writer.start()
    assert FileSystem().read_file(str(pipe)) == text
    writer.join()
