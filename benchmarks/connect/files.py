"""Files: lines to topics and back, and records to JSON and Parquet files."""

import argparse
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.connect import by_hand
from benchmarks.connect.bench import JSON, STRINGS, Bench, bench
from benchmarks.connect.orders import write_orders
from benchmarks.report import Report

SHARE_OF_LINES = 1
SHARE_OF_ROWS = 10


def measure_lines(report: Report, options: argparse.Namespace) -> None:
    """FileStream: lines of a file to a topic, and back."""
    with bench(report, options, share=SHARE_OF_LINES) as running, TemporaryDirectory() as folder:
        file, copy = Path(folder) / "lines", Path(folder) / "copy"
        text = "".join(
            f"line {number} of a file of many lines\n" for number in range(running.count)
        )
        file.write_text(text)
        size = file.stat().st_size
        topic = running.new_topic()
        by_hand.file_to_topic(running.bootstrap, file, topic)
        running.compare(
            "FileStream source",
            lambda: _file_source(running, file),
            lambda: by_hand.file_to_topic(running.bootstrap, file, running.new_topic()),
        )
        running.compare(
            "FileStream sink",
            lambda: _file_sink(running, topic, copy, size),
            lambda: by_hand.topic_to_file(running.bootstrap, topic, copy, running.count),
        )
        assert copy.read_bytes() == file.read_bytes(), "the copy differs from the file"


def _file_source(running: Bench, file: Path) -> float:
    topic = running.new_topic()
    config = {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": topic,
        "value.converter": STRINGS,
    }
    return running.seconds(config, lambda: running.records(topic))


def _file_sink(running: Bench, topic: str, copy: Path, size: int) -> float:
    copy.unlink(missing_ok=True)
    config = {
        "connector.class": "FileStreamSink",
        "file": str(copy),
        "topics": topic,
        "value.converter": STRINGS,
        "consumer.override.max.poll.records": str(by_hand.WRITTEN_ROWS),
    }
    # Compare sizes: counting the lines repeatedly would take longer than writing them.
    return running.seconds(config, lambda: _size(copy) * running.count // size)


def _count(folder: Path) -> int:
    return len(os.listdir(folder)) if folder.exists() else 0


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def measure_rows(report: Report, options: argparse.Namespace) -> None:
    """FilesSink: JSON with schemas to finished files with equal numbers of rows."""
    with bench(report, options, share=SHARE_OF_ROWS) as running, TemporaryDirectory() as folder:
        topic = running.new_topic()
        write_orders(running.bootstrap, topic, running.count)
        for name, write in (("json", by_hand.write_json), ("parquet", by_hand.write_parquet)):
            _measure_format(running, topic, Path(folder) / name, write)


def _measure_format(running: Bench, topic: str, folder: Path, write: by_hand.WriteRows) -> None:
    rows = running.count // by_hand.FILES
    numbers = iter(range(2 * running.rounds))

    def ours() -> float:
        directory = folder / str(next(numbers))
        config = {
            "connector.class": "FilesSink",
            "directory": str(directory),
            "topics": topic,
            "format": folder.name,
            "flush.size": str(rows),
            "value.converter": JSON,
            "value.converter.schemas.enable": "true",
            "consumer.override.max.poll.records": str(by_hand.WRITTEN_ROWS),
        }
        finished = directory / topic / "partition=0"
        return running.seconds(config, lambda: _count(finished) * rows)

    def theirs() -> float:
        directory = folder / str(next(numbers))
        directory.mkdir(parents=True)
        return by_hand.topic_to_files(running.bootstrap, topic, write, directory, rows)

    running.compare(f"FilesSink: {folder.name}", ours, theirs)
