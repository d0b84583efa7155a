"""What is answered: JSON in one of the registry's media types, refusals with their codes."""

import logging
from collections.abc import Sequence

import orjson
from starlette.responses import Response

from broker.errors import MillstreamError, RegistryError, RequestTimeout, SchemaError
from broker.registry.values import StoredSchema, SubjectConfig
from broker.serde.schema.schema import Reference, SchemaKind

logger = logging.getLogger(__name__)

V1_JSON = "application/vnd.schemaregistry.v1+json"
MEDIA_TYPES = (V1_JSON, "application/vnd.schemaregistry+json", "application/json")
STORE_FAILED = 50001
TIMED_OUT = 50002
INVALID_SCHEMA = 42201
PHRASES = {
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    413: "Request Entity Too Large",
    415: "Unsupported Media Type",
}

# What JSON is made of; handlers answer with it.
Json = object


class PlainText(str):
    """An answer that is sent as it is, without quotes."""

    __slots__ = ()


def http_refusal(status: int) -> RegistryError:
    """A refusal that has no code but that of HTTP."""
    return RegistryError(status, f"HTTP {status} {PHRASES[status]}")


def respond(content: Json, *, media_type: str = V1_JSON, status: int = 200) -> Response:
    """An answer with its media type."""
    body = content.encode() if isinstance(content, PlainText) else orjson.dumps(content)
    return Response(body, status_code=status, media_type=media_type)


def respond_with(error: Exception, *, media_type: str = V1_JSON) -> Response:
    """The response to a request that failed; unexpected errors are logged, never returned."""
    code, message = _refused(error)
    status = code if code < 1000 else code // 100
    content = {"error_code": code, "message": message}
    return respond(content, media_type=media_type, status=status)


def _refused(error: Exception) -> tuple[int, str]:
    match error:
        case RegistryError():
            return error.code, error.message
        case SchemaError():
            return INVALID_SCHEMA, error.message
        case RequestTimeout():
            return TIMED_OUT, error.message
        case MillstreamError():
            logger.warning("the registry cannot use its topic: %s", error)
            return STORE_FAILED, error.message
        case _:
            logger.error("a request to the registry failed", exc_info=error)
            return STORE_FAILED, "Internal Server Error"


# --- the objects of the interface ---------------------------------------------------------------


def described(stored: StoredSchema, text: str | None = None) -> dict[str, Json]:
    """A version of a subject; `text` is the schema in another form."""
    return {
        "subject": stored.subject,
        "version": stored.version,
        "id": stored.schema_id,
        "guid": stored.guid,
        **_contents(stored, text),
        **({"deleted": True} if stored.deleted else {}),
    }


def registered(stored: StoredSchema, text: str | None) -> dict[str, Json]:
    """What a registration is answered with; `text` is the schema in another form."""
    return {
        "id": stored.schema_id,
        "version": stored.version,
        "guid": stored.guid,
        **_contents(stored, text),
    }


def schema_alone(stored: StoredSchema, text: str | None = None) -> dict[str, Json]:
    """A schema without a place: by id or GUID."""
    return {"guid": stored.guid, **_contents(stored, text)}


def _contents(stored: StoredSchema, text: str | None) -> dict[str, Json]:
    """The parts that are left out when they say nothing."""
    schema = stored.schema
    found: dict[str, Json] = {}
    if schema.kind is not SchemaKind.AVRO:
        found["schemaType"] = schema.kind.value
    if schema.references:
        found["references"] = _references(schema.references)
    if stored.metadata:
        found["metadata"] = stored.metadata
    if stored.rule_set:
        found["ruleSet"] = stored.rule_set
    found["schema"] = schema.text if text is None else text
    return found


def _references(references: Sequence[Reference]) -> list[dict[str, Json]]:
    return [
        {"name": each.name, "subject": each.subject, "version": each.version} for each in references
    ]


def configured(config: SubjectConfig) -> dict[str, Json]:
    """A configuration as it is read; when it is written the level has another name."""
    level = {} if config.level is None else {"compatibilityLevel": config.level.value}
    return {**level, **config.fields}
