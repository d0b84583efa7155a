"""Connector files, which standalone workers take on the command line.

name=local-file-source                                   Java properties
connector.class=FileStreamSource

{"name": "local-file-source", "connector.class": ...}    the same as JSON
{"name": ..., "config": {...}, "initial_state": ...}     as for POST /connectors
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from connect.config.worker_config import read_settings, settings_of
from connect.errors import ConfigError
from connect.state.task_state import TargetState

INITIAL_STATES: Mapping[str, TargetState] = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}


@dataclass(frozen=True, slots=True)
class ConnectorFile:
    """A connector that a file describes."""

    name: str
    config: Mapping[str, str]
    initial_state: TargetState | None = None


def read_connector(file: Path) -> ConnectorFile:
    """Read a connector file; ConfigError names the file."""
    content = _json(file)
    if "config" in content:
        config = settings_of(content["config"], at=f"{file}: config")
        state = content.get("initial_state")
        if state is not None and str(state).upper() not in INITIAL_STATES:
            raise ConfigError(
                f'"initial_state" is "{state}"',
                at=str(file),
                hint=f"it must be one of {', '.join(INITIAL_STATES)}",
            )
        initial = None if state is None else INITIAL_STATES[str(state).upper()]
        return ConnectorFile(
            _name(content.get("name") or config.get("name"), file), config, initial
        )
    config = read_settings(file)
    return ConnectorFile(_name(config.get("name"), file), config)


def _json(file: Path) -> dict[str, object]:
    if file.suffix != ".json":
        return {}
    try:
        content = orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise ConfigError(f"cannot read the connector file: {error}", at=str(file)) from error
    return content if isinstance(content, dict) else {}


def _name(name: object, file: Path) -> str:
    if not isinstance(name, str) or not name.strip():
        raise ConfigError("the connector has no name", at=str(file), hint='set "name"')
    return name.strip()
