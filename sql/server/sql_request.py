"""Requests: limits of bodies, and the statements in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.rest import Body
from sql.server.answers import BAD_REQUEST, Refused
from sql.variables import split_statements

BODY_BYTES_MAX = 10 * 1024 * 1024
STATEMENTS_MAX = 10_000
# With this property a server only returns its own rows; the name is ksqlDB's.
SKIP_FORWARDING = "request.ksql.query.pull.skip.forwarding"
TOO_LARGE = 41300
CONTENT_TYPES = frozenset(
    {
        "",
        "application/vnd.ksql.v1+json",
        "application/vnd.ksqlapi.delimited.v1",
        "application/json",
        "application/octet-stream",
        # curl's default.
        "application/x-www-form-urlencoded",
    }
)
JSON_BODY = Body(BODY_BYTES_MAX, CONTENT_TYPES)


@dataclass(frozen=True, slots=True)
class SqlRequest:
    """Statements to execute, with properties and variables for the session."""

    text: str
    properties: Mapping[str, object] = field(default_factory=dict)
    variables: Mapping[str, object] = field(default_factory=dict)
    sequence_number: int | None = None
    # Return local rows only: the request is from another server.
    local: bool = False


def sql_request(content: Mapping[str, object]) -> SqlRequest:
    """A request of /ksql, /query or /query-stream, which use different names."""
    text = text_of(content, "ksql") or text_of(content, "sql")
    if not text:
        raise Refused(BAD_REQUEST, 'No statement in request: "ksql" or "sql" must be a string')
    if "\0" in text:
        raise Refused(BAD_REQUEST, "Invalid statement: it has a NUL character")
    if text.count(";") > STATEMENTS_MAX and len(split_statements(text)) > STATEMENTS_MAX:
        raise Refused(
            BAD_REQUEST, f"Too many statements in request: at most {STATEMENTS_MAX} are allowed"
        )
    sequence_number = content.get("commandSequenceNumber")
    if sequence_number is not None and type(sequence_number) is not int:
        raise Refused(BAD_REQUEST, '"commandSequenceNumber" must be an integer')
    properties = {
        **_mapping(content, "streamsProperties"),
        **_mapping(content, "properties"),
    }
    variables = _mapping(content, "sessionVariables")
    local = _mapping(content, "requestProperties").get(SKIP_FORWARDING) is True
    return SqlRequest(text, properties, variables, sequence_number, local)


def text_of(content: Mapping[str, object], name: str) -> str:
    """A string member, or None."""
    result = content.get(name)
    if result is None:
        return ""
    if not isinstance(result, str):
        raise Refused(BAD_REQUEST, f'"{name}" must be a string')
    return result


def _mapping(content: Mapping[str, object], name: str) -> dict[str, object]:
    """Settings or variables by name; the values must be scalars."""
    result = content.get(name)
    if result is None:
        return {}
    if not isinstance(result, dict):
        raise Refused(BAD_REQUEST, f'"{name}" must be an object')
    for key, value in result.items():
        if isinstance(value, dict | list):
            raise Refused(BAD_REQUEST, f'"{key}" in "{name}" must be a single value')
    return result
