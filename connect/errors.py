"""Exceptions of connect.

MillstreamError
└── ConnectError                anything that goes wrong in a worker, a connector or a task
    ├── RetriableError          may succeed when it is retried: a system is unavailable
    ├── DataError               a value that does not match its schema, or invalid bytes
    ├── ConfigError             an unknown or wrong setting of a worker, connector or transform
    ├── AlreadyExists           the connector already exists                            (409)
    ├── NotFound                no such connector, task, plugin or logger               (404)
    ├── BadRequest              the request is invalid or not allowed                   (400)
    ├── Forbidden               the worker's settings do not allow the operation        (403)
    └── Conflict                another operation is under way: try again later         (409)
"""

from broker.errors import MillstreamError


class ConnectError(MillstreamError):
    """Base class of errors in a worker, a connector or a task."""


class RetriableError(ConnectError):
    """An operation may succeed when it is retried: a system is temporarily unavailable."""


class DataError(ConnectError):
    """A value does not match its schema, or bytes cannot be decoded."""


class ConfigError(ConnectError):
    """An unknown or wrong setting of a worker, connector or transform."""


class AlreadyExists(ConnectError):
    """The connector already exists."""


class NotFound(ConnectError):
    """No such connector, task, plugin or logger."""


class BadRequest(ConnectError):
    """The request is invalid, or not allowed in the current state."""


class Forbidden(ConnectError):
    """The worker's settings do not allow the operation."""


class Conflict(ConnectError):
    """Another operation is under way: the same request may succeed later."""
