"""/subjects: registering, finding and deleting schemas."""

from urllib.parse import unquote

from broker.registry.refusals import schema_not_found
from broker.registry.registry import Registry
from broker.registry.rest.forms import text_in
from broker.registry.rest.registry_request import (
    JSON_BODY,
    RegistryRequest,
    RegistryRoute,
    always,
    unless_formatted,
)
from broker.registry.rest.replies import described, registered
from broker.registry.subject_names import ALL_CONTEXTS
from broker.registry.values import StoredSchema
from broker.rest import Json, PlainText
from broker.serde.schema.schema import SchemaKind


def _list(registry: Registry, request: RegistryRequest) -> Json:
    return registry.subjects(
        prefix=request.text("subjectPrefix", ALL_CONTEXTS),
        deleted=request.deleted,
        deleted_only=request.flag("deletedOnly"),
        offset=request.offset,
        limit=request.limit,
    )


def _find(registry: Registry, request: RegistryRequest) -> Json:
    wanted = request.schema_request()
    found = registry.find(
        request.subject,
        wanted.schema,
        normalize=request.flag("normalize"),
        deleted=request.deleted,
        metadata=wanted.metadata,
        rule_set=wanted.rule_set,
    )
    return described(found, text_in(registry, found, request.text("format")))


def _delete(registry: Registry, request: RegistryRequest) -> Json:
    return registry.delete_subject(request.subject, permanent=request.flag("permanent"))


def _versions(registry: Registry, request: RegistryRequest) -> Json:
    return registry.versions(
        request.subject,
        deleted=request.deleted,
        deleted_only=request.flag("deletedOnly"),
        offset=request.offset,
        limit=request.limit,
    )


def _register(registry: Registry, request: RegistryRequest) -> Json:
    wanted = request.schema_request()
    added = registry.add(
        request.subject,
        wanted.schema,
        normalize=request.flag("normalize"),
        schema_id=wanted.schema_id,
        version=wanted.version,
        metadata=wanted.metadata,
        rule_set=wanted.rule_set,
    )
    # Clients cache the response as the schema of its id: those that sent a descriptor expect one.
    sent = wanted.schema
    return registered(added, sent.text if sent.kind is SchemaKind.PROTOBUF else None)


def _stored(registry: Registry, request: RegistryRequest) -> StoredSchema:
    return registry.stored(request.subject, request.version, deleted=request.deleted)


def _version(registry: Registry, request: RegistryRequest) -> Json:
    stored = _stored(registry, request)
    return described(stored, text_in(registry, stored, request.text("format")))


def _version_text(registry: Registry, request: RegistryRequest) -> Json:
    return PlainText(text_in(registry, _stored(registry, request), request.text("format")))


def _referenced_by(registry: Registry, request: RegistryRequest) -> Json:
    found = registry.referenced_by(request.subject, request.version)[request.offset :]
    return found if request.limit < 0 else found[: request.limit]


def _delete_version(registry: Registry, request: RegistryRequest) -> Json:
    return registry.delete_version(
        request.subject, request.version, permanent=request.flag("permanent")
    )


def _latest_with_metadata(registry: Registry, request: RegistryRequest) -> Json:
    """The latest version whose metadata has all the properties of the query."""
    keys, values = request.texts("key"), request.texts("value")
    wanted = dict(zip(keys, values, strict=False))
    deleted = request.deleted
    for number in reversed(registry.versions(request.subject, deleted=deleted)):
        stored = registry.stored(request.subject, number, deleted=deleted)
        if _has_properties(stored, wanted):
            return described(stored, text_in(registry, stored, request.text("format")))
    raise schema_not_found()


def _has_properties(stored: StoredSchema, wanted: dict[str, str]) -> bool:
    properties = (stored.metadata or {}).get("properties")
    known = properties if isinstance(properties, dict) else {}
    # Confluent's Python client encodes it twice.
    return all(
        known.get(key, known.get(unquote(key))) in (value, unquote(value))
        for key, value in wanted.items()
    )


ROUTES: tuple[RegistryRoute, ...] = (
    RegistryRoute("GET", "/subjects", _list),
    RegistryRoute("POST", "/subjects/{subject}", _find, body=JSON_BODY),
    RegistryRoute("DELETE", "/subjects/{subject}", _delete),
    RegistryRoute("GET", "/subjects/{subject}/metadata", _latest_with_metadata),
    RegistryRoute("GET", "/subjects/{subject}/versions", _versions, at_once=always),
    RegistryRoute("POST", "/subjects/{subject}/versions", _register, body=JSON_BODY),
    RegistryRoute(
        "GET", "/subjects/{subject}/versions/{version}", _version, at_once=unless_formatted
    ),
    RegistryRoute("DELETE", "/subjects/{subject}/versions/{version}", _delete_version),
    RegistryRoute(
        "GET",
        "/subjects/{subject}/versions/{version}/schema",
        _version_text,
        at_once=unless_formatted,
    ),
    RegistryRoute(
        "GET", "/subjects/{subject}/versions/{version}/referencedby", _referenced_by, at_once=always
    ),
)
