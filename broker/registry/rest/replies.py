"""The responses: JSON objects of the API, and errors with their codes."""

import logging
from collections.abc import Sequence

from broker.errors import MillstreamError, RegistryError, RequestTimeout, SchemaError
from broker.registry.values import StoredSchema, SubjectConfig
from broker.rest import HttpError, InvalidJson, Json, Reply
from broker.serde.schema.schema import Reference, SchemaKind

logger = logging.getLogger(__name__)

V1_JSON = "application/vnd.schemaregistry.v1+json"
MEDIA_TYPES = (V1_JSON, "application/vnd.schemaregistry+json", "application/json")
STORE_FAILED = 50001
TIMED_OUT = 50002
INVALID_SCHEMA = 42201


def error_reply(error: Exception) -> Reply:
    """The reply to a request that failed; unexpected errors are logged, never returned."""
    code, message = _code_and_message(error)
    status = code if code < 1000 else code // 100
    return Reply({"error_code": code, "message": message}, status)


def _code_and_message(error: Exception) -> tuple[int, str]:
    match error:
        case HttpError():
            return error.status, error.message or f"HTTP {error.status} {error.phrase}"
        case InvalidJson():
            return _invalid_body(error)
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


def _invalid_body(error: InvalidJson) -> tuple[int, str]:
    if error.is_null:
        return 422, "request body must not be null (was null)"
    if error.reason:
        return 400, f"the body is not JSON: {error.reason}"
    return 400, "the body must be an object"


# --- the objects of the interface ---------------------------------------------------------------


def described(stored: StoredSchema, text: str | None = None) -> dict[str, Json]:
    """A version of a subject; `text` is the schema in another format."""
    return {
        "subject": stored.subject,
        "version": stored.version,
        "id": stored.schema_id,
        "guid": stored.guid,
        **_contents(stored, text),
        **({"deleted": True} if stored.deleted else {}),
    }


def registered(stored: StoredSchema, text: str | None) -> dict[str, Json]:
    """The response to a registration; `text` is the schema in another format."""
    return {
        "id": stored.schema_id,
        "version": stored.version,
        "guid": stored.guid,
        **_contents(stored, text),
    }


def schema_alone(stored: StoredSchema, text: str | None = None) -> dict[str, Json]:
    """A schema without a subject: by id or GUID."""
    return {"guid": stored.guid, **_contents(stored, text)}


def _contents(stored: StoredSchema, text: str | None) -> dict[str, Json]:
    """Optional parts, which are omitted if they are empty."""
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
    """A configuration as GET returns it; in PUT the level has another name."""
    level = {} if config.level is None else {"compatibilityLevel": config.level.value}
    return {**level, **config.fields}
