"""FileStreamSink: the values of records as lines of a file, or of standard output."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO, cast

from broker.model import TopicPartition
from connect.api import SinkConnector, SinkTask
from connect.config_def import ConfigDef, ConfigType, Importance
from connect.data import text_of
from connect.errors import ConnectError
from connect.records import SinkRecord

DEFINITION = ConfigDef().define(
    "file",
    ConfigType.STRING,
    None,
    importance=Importance.HIGH,
    doc="Destination filename. If not specified, the standard output will be used",
)


class FileStreamSinkConnector(SinkConnector):
    """Writes to one file, with as many tasks as are allowed."""

    def __init__(self) -> None:
        self._config: dict[str, str] = {}

    @classmethod
    def config(cls) -> ConfigDef:
        return DEFINITION

    def start(self, config: Mapping[str, str]) -> None:
        DEFINITION.parse(config)
        self._config = dict(config)

    def local_paths(self, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        """The file, if it is one."""
        file = config.get("file")
        return {"file": [file.strip()]} if file and file.strip() else {}

    def task_class(self) -> type[SinkTask]:
        return FileStreamSinkTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """All tasks append to the same file."""
        return [self._config] * max_tasks

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        """Accepts any offsets: the worker stores them."""
        return True


class FileStreamSinkTask(SinkTask):
    """Appends a line for every record."""

    def __init__(self) -> None:
        self._file: TextIO | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """Opens the file for appending."""
        path = DEFINITION.parse(config).text_or_none("file")
        if not path:
            return
        try:
            # It stays open until the task stops.
            self._file = open(path, "a", encoding="utf-8", newline="\n")  # noqa: SIM115
        except OSError as error:
            raise ConnectError(
                f"Couldn't find or create file '{path}' for FileStreamSinkTask: {error.strerror}",
                hint="the directory must exist and the worker's user must be allowed to write "
                "there",
            ) from None

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Writes and flushes the lines."""
        if records:
            out = self._file or sys.stdout
            lines = [record.value for record in records]
            if set(map(type, lines)) != {str}:
                lines = list(map(text_of, lines))
            # In one write: several tasks append to the same file.
            out.write("\n".join([*cast("list[str]", lines), ""]))
            out.flush()

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Syncs the lines to disk before their offsets are committed."""
        if self._file is not None:
            os.fsync(self._file.fileno())

    def stop(self) -> None:
        if self._file is not None:
            self._file.close()
