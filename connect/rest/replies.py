"""The responses: JSON objects of the API, and errors with their status codes.

Kafka Connect returns 500 for many client errors, such as a body that is not valid JSON. Here every
client error is a 4xx; the messages are Kafka's if it has any.
"""

import logging

from broker.errors import MillstreamError
from broker.rest import HttpError, InvalidJson, Json, Reply
from connect.errors import (
    AlreadyExists,
    BadRequest,
    ConfigError,
    Conflict,
    DataError,
    Forbidden,
    NotFound,
)
from connect.herder.descriptions import ConnectorInfo, ConnectorStatus
from connect.herder.loggers import LoggerLevel
from connect.state.status_store import Status
from connect.state.task_state import TaskId

logger = logging.getLogger(__name__)

STATUSES: tuple[tuple[type[MillstreamError], int], ...] = (
    (NotFound, 404),
    (AlreadyExists, 409),
    (Conflict, 409),
    (Forbidden, 403),
    (BadRequest, 400),
    (ConfigError, 400),
    (DataError, 400),
)

ACCEPTED = Reply(status=202)
NO_CONTENT = Reply(status=204)


def error_reply(error: Exception) -> Reply:
    """The response to a failed request; unexpected errors are logged, but not returned."""
    status, message = _status_and_message(error)
    return Reply({"error_code": status, "message": message}, status)


def _status_and_message(error: Exception) -> tuple[int, str]:
    match error:
        case HttpError():
            return error.status, error.message or f"HTTP {error.status} {error.phrase}"
        case InvalidJson(reason=reason) if reason:
            return 400, f"the body is not valid JSON: {reason}"
        case InvalidJson():
            return 400, "the body must be a JSON object"
        case MillstreamError():
            return _status(
                error
            ), f"{error.message} ({error.hint})" if error.hint else error.message
        case _:
            logger.error("a request failed", exc_info=error)
            return 500, "Internal Server Error"


def _status(error: MillstreamError) -> int:
    for kind, status in STATUSES:
        if isinstance(error, kind):
            return status
    logger.warning("a request failed: %s", error)
    return 500


# --- the objects of the interface -----------------------------------------------------------


def task_json(task: TaskId) -> Json:
    """The id of a task."""
    return {"connector": task.connector, "task": task.task}


def info_json(info: ConnectorInfo) -> Json:
    """The configuration of a connector."""
    return {
        "name": info.name,
        "config": dict(info.config),
        "tasks": [task_json(task) for task in info.tasks],
        "type": info.type,
    }


def status_json(status: ConnectorStatus) -> Json:
    """The states of a connector and its tasks."""
    return {
        "name": status.name,
        "connector": _state(status.connector),
        "tasks": [task_status_json(number, each) for number, each in status.tasks.items()],
        "type": status.type,
    }


def task_status_json(number: int, status: Status) -> Json:
    """The state of a task."""
    return {"id": number, **_state(status)}


def _state(status: Status) -> dict[str, Json]:
    state: dict[str, Json] = {
        "state": status.state.value,
        "worker_id": status.worker_id,
        "version": status.version,
    }
    if status.trace is not None:
        state["trace"] = status.trace
    return state


def logger_json(level: LoggerLevel) -> Json:
    """The level of a logger."""
    return {"level": level.level, "last_modified": level.last_modified_ms}
