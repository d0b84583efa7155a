"""What is told about connectors: plain values, which the REST API shows."""

from collections.abc import Mapping
from dataclasses import dataclass

from connect.config_store import Config
from connect.status_store import Status
from connect.task_state import TaskId


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    """A connector as it is wanted; its type is "source", "sink" or "unknown"."""

    name: str
    config: Config
    tasks: tuple[TaskId, ...]
    type: str


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """What a connector and its tasks do."""

    name: str
    connector: Status
    tasks: Mapping[int, Status]
    type: str


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A task as it is wanted."""

    task: TaskId
    config: Config


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """A plugin that can be used; its type is the REST API's word for its kind."""

    class_name: str
    type: str
    version: str | None
