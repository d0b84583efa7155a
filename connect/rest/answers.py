"""What is answered: JSON, and refusals with their statuses.

Kafka Connect answers 500 to many client errors, such as a body that is not valid JSON. Here
every mistake of a client is a 4xx; the words are Kafka's where it has any.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson
from starlette.responses import Response

from broker.errors import MillstreamError
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

JSON = "application/json"
PLAIN = "text/plain; version=0.0.4; charset=utf-8"
PHRASES = {
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    413: "Request Entity Too Large",
    415: "Unsupported Media Type",
}
STATUSES: tuple[tuple[type[MillstreamError], int], ...] = (
    (NotFound, 404),
    (AlreadyExists, 409),
    (Conflict, 409),
    (Forbidden, 403),
    (BadRequest, 400),
    (ConfigError, 400),
    (DataError, 400),
)

# What JSON is made of; endpoints answer with it.
Json = object


class HttpError(Exception):
    """A request that is refused before it reaches the herder."""

    def __init__(self, status: int, message: str = "", allow: str = "") -> None:
        """Without a message it is that of Kafka Connect; `allow` lists methods that are there."""
        self.status = status
        self.message = message or f"HTTP {status} {PHRASES[status]}"
        self.allow = allow
        super().__init__(self.message)


@dataclass(frozen=True, slots=True)
class Reply:
    """A response; without content it has no body."""

    content: Json = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = JSON

    def response(self) -> Response:
        """The HTTP response."""
        if self.content is None:
            return Response(status_code=self.status, headers=dict(self.headers))
        body = (
            self.content.encode()
            if isinstance(self.content, str) and self.media_type == PLAIN
            else orjson.dumps(self.content)
        )
        return Response(body, self.status, dict(self.headers), self.media_type)


ACCEPTED = Reply(status=202)
NO_CONTENT = Reply(status=204)


def refusal(error: Exception) -> Reply:
    """The response to a failed request; unexpected errors are logged, but not sent."""
    if isinstance(error, HttpError):
        headers = {"Allow": error.allow} if error.allow else {}
        return _error(error.status, error.message, headers)
    if not isinstance(error, MillstreamError):
        logger.error("a request failed", exc_info=error)
        return _error(500, "Internal Server Error")
    message = f"{error.message} ({error.hint})" if error.hint else error.message
    for kind, status in STATUSES:
        if isinstance(error, kind):
            return _error(status, message)
    logger.warning("a request failed: %s", error)
    return _error(500, message)


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply({"error_code": status, "message": message}, status, headers or {})


# --- the objects of the interface -----------------------------------------------------------


def task_json(task: TaskId) -> Json:
    """Which task."""
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
