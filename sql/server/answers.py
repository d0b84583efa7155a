"""Responses: JSON in ksqlDB's media types, and errors with ksqlDB's codes.

A code is the HTTP status times 100, plus a number that distinguishes errors of one status.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from broker.errors import BrokerError, ErrorCode, MillstreamError
from broker.rest import HttpError, InvalidJson, Reply
from sql.connector_masks import masked
from sql.engine.asserting import AssertionFailed
from sql.engine.commands import Degraded
from sql.engine.messages import TAGS, entity_json
from sql.engine.transient_queries import TooManyPushQueries
from sql.engine.trial import WrongEndpoint
from sql.errors import SqlError, SyntaxFailed

logger = logging.getLogger(__name__)

V1_JSON = "application/vnd.ksql.v1+json"
JSON = "application/json"
DELIMITED = "application/vnd.ksqlapi.delimited.v1"
PROTOBUF = "application/vnd.ksql.v1+protobuf"

BAD_REQUEST = 40000
BAD_STATEMENT = 40001
WRONG_ENDPOINT = 40002
TOO_MANY_PUSH_QUERIES = 40003
KAFKA_DENIED = 40301
NOT_FOUND = 40400
NOT_ACCEPTABLE = 40600
ASSERTION_FAILED = 41700
NO_SCHEMA_REGISTRY = 42801
SERVER_ERROR = 50000
STOPPING = 50300
COMMANDS_BEHIND = 50301
NOT_READY = 50302
TERMINATED = 50304

# The maximum length of the statement in an error: more does not help, and is sent twice.
STATEMENT_CHARACTERS_MAX = 100_000

GENERIC = "generic_error"
OF_STATEMENT = "statement_error"
NO_REGISTRY_TEXT = "KSQL is not configured to use a schema registry"
DENIED = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


class Refused(Exception):
    """An error response; the first digits of the code are the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ServerStopping(Refused):
    """A response that ends before its query does, because the server is stopping."""

    def __init__(self) -> None:
        super().__init__(STOPPING, "The server is shutting down: the query did not complete")


def error_reply(error: Exception, text: str = "") -> Reply:
    """The response to a failed request; `text` is the SQL of the request."""
    content = error_json(error, text)
    return Reply(content, content["error_code"] // 100)


# Any: JSON values have any type.
def error_json(error: Exception, text: str = "") -> dict[str, Any]:
    """An error in ksqlDB's format; unexpected errors are logged and not returned."""
    match error:
        case Refused():
            return _generic(error.code, error.message)
        case HttpError():
            return _generic(error.status * 100, _message(error))
        case InvalidJson():
            why = error.reason or "expected an object"
            return _generic(BAD_REQUEST, f"Invalid JSON in request: {why}")
        case SqlError():
            return _sql_error(error, text)
        case BrokerError() if error.code in DENIED:
            return _generic(KAFKA_DENIED, error.message)
        case MillstreamError():
            logger.warning("a request failed: %s", error)
            return _generic(SERVER_ERROR, error.message)
        case _:
            logger.error("a request failed", exc_info=error)
            return _generic(SERVER_ERROR, "The server encountered an internal error")


def _sql_error(error: SqlError, text: str) -> dict[str, Any]:
    code = _code(error)
    statement = error.statement or (masked(text) if isinstance(error, SyntaxFailed) else "")
    if len(statement) > STATEMENT_CHARACTERS_MAX:
        statement = f"{statement[:STATEMENT_CHARACTERS_MAX]}..."
    if not statement:
        return _generic(BAD_REQUEST if code == BAD_STATEMENT else code, error.message)
    message = error.message
    if isinstance(error, SyntaxFailed):
        message += f"\nStatement: {statement}"
    return {
        "@type": OF_STATEMENT,
        "error_code": code,
        "message": message,
        "statementText": statement,
        "entities": _entities(error.answers),
    }


def _code(error: SqlError) -> int:
    for kind, code in CODES.items():
        if isinstance(error, kind):
            return code
    return NO_SCHEMA_REGISTRY if NO_REGISTRY_TEXT in error.message else BAD_STATEMENT


CODES: Mapping[type[SqlError], int] = {
    WrongEndpoint: WRONG_ENDPOINT,
    TooManyPushQueries: TOO_MANY_PUSH_QUERIES,
    AssertionFailed: ASSERTION_FAILED,
    Degraded: NOT_READY,
}


# Any: errors do not know the type of entities.
def _entities(answers: Iterable[Any]) -> list[dict[str, Any]]:
    return [entity_json(each) for each in answers if type(each) in TAGS]


def _message(error: HttpError) -> str:
    if error.path:
        return f"Path not found: {unquote(error.path, errors='replace')}"
    return error.message or error.phrase


def _generic(code: int, message: str) -> dict[str, Any]:
    return {"@type": GENERIC, "error_code": code, "message": message}
