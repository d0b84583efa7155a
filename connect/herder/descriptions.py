"""Descriptions of connectors: plain values, which the REST API returns."""

from collections.abc import Mapping
from dataclasses import dataclass

from connect.state.config_store import Config
from connect.state.status_store import Status
from connect.state.task_state import TaskId


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    """The configuration of a connector; its type is "source", "sink" or "unknown"."""

    name: str
    config: Config
    tasks: tuple[TaskId, ...]
    type: str


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """The states of a connector and its tasks."""

    name: str
    connector: Status
    tasks: Mapping[int, Status]
    type: str


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """The configuration of a task."""

    task: TaskId
    config: Config


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """A plugin; its type is the REST API's name for its kind."""

    class_name: str
    type: str
    version: str | None
