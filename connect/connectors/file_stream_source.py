"""FileStreamSource: the lines of a file, or of standard input, as records of a topic."""

from collections.abc import Mapping, Sequence
from itertools import repeat

from broker import concurrency
from broker.clock import Clock, SystemClock
from connect.api import ExactlyOnceSupport, SourceConnector, SourceTask
from connect.config_def import ConfigDef, ConfigType, Importance, NonEmptyString, Range
from connect.connectors.file_lines import FileLines, Line, StandardInputLines
from connect.data import STRING
from connect.errors import ConnectError
from connect.records import SourceRecord
from connect.stop_signal import StopSignal

FILENAME = "filename"
POSITION = "position"
# How often to check a file that has no new lines or does not exist yet.
CHECK_MS = 100

DEFINITION = (
    ConfigDef()
    .define(
        "file",
        ConfigType.STRING,
        None,
        importance=Importance.HIGH,
        doc="Source filename. If not specified, the standard input will be used",
    )
    .define(
        "topic",
        ConfigType.STRING,
        validator=NonEmptyString(),
        importance=Importance.HIGH,
        doc="The topic to publish data to",
    )
    .define(
        "batch.size",
        ConfigType.INT,
        2000,
        validator=Range(1),
        importance=Importance.LOW,
        doc="The maximum number of records the Source task can read from file one time",
    )
)


class FileStreamSourceConnector(SourceConnector):
    """Reads one file with one task."""

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

    def task_class(self) -> type[SourceTask]:
        return FileStreamSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """One task: a file is read from front to back."""
        return [self._config]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Supported for files; standard input has no positions."""
        if DEFINITION.parse(config).text_or_none("file"):
            return ExactlyOnceSupport.SUPPORTED
        return ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self,
        config: Mapping[str, str],
        offsets: Sequence[tuple[Mapping[str, object], Mapping[str, object] | None]],
    ) -> bool:
        """Refuses offsets that are not a position in a file; the messages are Kafka's."""
        if not DEFINITION.parse(config).text_or_none("file"):
            raise ConnectError(
                "Offsets cannot be modified if the 'file' configuration is unspecified. "
                "This is because stdin is used for input and offsets are not tracked."
            )
        for partition, offset in offsets:
            # Any partition may be reset, so that users can remove invalid ones.
            if offset is not None:
                _check_offset(partition, offset)
        return True


def _check_offset(partition: Mapping[str, object] | None, offset: Mapping[str, object]) -> None:
    if POSITION not in offset:
        raise ConnectError("Offset objects should either be null or contain the key 'position'")
    position = offset[POSITION]
    if isinstance(position, bool) or not isinstance(position, int):
        raise ConnectError(
            "The value for the 'position' key in the offset is expected to be a Long value"
        )
    if position < 0:
        raise ConnectError(
            "The value for the 'position' key in the offset should be a non-negative value"
        )
    if partition is None:
        raise ConnectError("Partition objects cannot be null")
    if FILENAME not in partition:
        raise ConnectError("Partition objects should contain the key 'filename'")


class FileStreamSourceTask(SourceTask):
    """Reads lines as they are added, from the last stored position on."""

    def __init__(self, clock: Clock | None = None) -> None:
        """The clock is used for waits and timestamps."""
        self._clock = clock or SystemClock()
        self._stop = StopSignal(self._clock)
        self._reading = concurrency.Lock()  # another thread calls `stop`, which closes the file
        self._lines: FileLines | StandardInputLines | None = None
        self._waiting: list[Line] = []  # were read, but not returned yet

    def start(self, config: Mapping[str, str]) -> None:
        """Takes the settings; a file is opened by the first poll that finds it."""
        settings = DEFINITION.parse(config)
        self._file = settings.text_or_none("file") or None
        self._topic = settings.text("topic")
        self._batch_size = settings.integer("batch.size")
        self._partition = {FILENAME: self._file}

    def poll(self) -> Sequence[SourceRecord] | None:
        """The added lines, or none after a wait."""
        with self._reading:
            if self._stop.is_set():
                return None
            lines = self._next_lines()
        if not lines:
            self._stop.wait(CHECK_MS)
            return None
        values, positions = zip(*lines, strict=True)
        count = len(values)
        return SourceRecord.of_columns(
            repeat(self._partition, count),
            [{POSITION: position} for position in positions],
            repeat(self._topic, count),
            repeat(None, count),  # any partition
            repeat(None, count),  # no key
            repeat(None, count),
            repeat(STRING, count),
            values,
            repeat(self._clock.now_ms(), count),
            repeat((), count),
        )

    def stop(self) -> None:
        """Ends a wait of `poll` and closes the file."""
        self._stop.set()
        with self._reading:
            if self._lines is not None:
                self._lines.close()
                self._lines = None

    def _next_lines(self) -> list[Line]:
        if not self._waiting:
            self._lines = self._lines or self._opened()
            self._waiting = self._lines.next_lines() if self._lines else []
        lines = self._waiting[: self._batch_size]
        self._waiting = self._waiting[self._batch_size :]
        return lines

    def _opened(self) -> FileLines | StandardInputLines | None:
        if not self._file:
            return StandardInputLines()
        stored = self.context.offset_reader.offset(self._partition) or {}
        position = stored.get(POSITION, 0)
        if not isinstance(position, int):
            raise ConnectError(
                f"Offset position is the incorrect type: {position!r}", at=f'file "{self._file}"'
            )
        try:
            return FileLines(self._file, position)
        except FileNotFoundError:
            return None  # it may be created
        except OSError as error:
            raise ConnectError(
                f"cannot read the file: {error.strerror}",
                at=f'file "{self._file}"',
                hint="the worker's user must be allowed to read it",
            ) from None
