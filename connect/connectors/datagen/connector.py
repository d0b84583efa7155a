"""DatagenConnector: a source of generated records, for demonstrations, tests and load."""

from collections.abc import Mapping, Sequence

from connect.api import ExactlyOnceSupport, SourceConnector, SourceTask
from connect.config_def import ConfigDef
from connect.connectors.datagen.definition import DEFINITION
from connect.connectors.datagen.files import files_of_schema, files_of_schema_file
from connect.connectors.datagen.plan import SOURCES, read_event_time, read_plan
from connect.connectors.datagen.task import TASK_COUNT, TASK_ID, DatagenTask
from connect.errors import ConfigError


class DatagenConnector(SourceConnector):
    """Generates records; each task generates its own stream."""

    def __init__(self) -> None:
        self._config: dict[str, str] = {}

    @classmethod
    def config(cls) -> ConfigDef:
        return DEFINITION

    def validate(self, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        """Finds invalid schemas, keys and times before the start."""
        if any(found.errors for found in DEFINITION.validate(config)):
            return {}  # the definition reports the errors
        try:
            self.start(config)
        except ConfigError as error:
            source = next((name for name in SOURCES if config.get(name)), SOURCES[0])
            return {"start.time" if "start.time" in error.message else source: [str(error)]}
        return {}

    def start(self, config: Mapping[str, str]) -> None:
        """Checks the whole configuration."""
        settings = DEFINITION.parse(config)
        read_plan(settings)
        read_event_time(settings, 1)
        self._config = dict(config)

    def local_paths(self, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        """The schema file, and the files of values that the schema uses."""
        file, text = config.get("schema.filename", "").strip(), config.get("schema.string", "")
        result = {"schema.filename": [file, *files_of_schema_file(file)]} if file else {}
        if files := files_of_schema(text):
            result["schema.string"] = files
        return result

    def task_class(self) -> type[SourceTask]:
        return DatagenTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Uses all `max_tasks`, each with its index."""
        return [
            {**self._config, TASK_ID: str(task), TASK_COUNT: str(max_tasks)}
            for task in range(max_tasks)
        ]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Supported: the offset determines the next record exactly."""
        return ExactlyOnceSupport.SUPPORTED
