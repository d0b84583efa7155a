"""/subjects: registering schemas under names, finding and deleting them."""

from urllib.parse import unquote

from broker.registry.refusals import schema_not_found
from broker.registry.registry import Registry
from broker.registry.rest.answers import Json, PlainText, described, registered
from broker.registry.rest.endpoint import Endpoint, Endpoints, short, short_unless_formatted
from broker.registry.rest.forms import text_in
from broker.registry.rest.requests import RestRequest
from broker.registry.subject_names import ALL_CONTEXTS
from broker.registry.values import StoredSchema
from broker.serde.schema.schema import SchemaKind


def _list(registry: Registry, asked: RestRequest) -> Json:
    return registry.subjects(
        prefix=asked.text("subjectPrefix", ALL_CONTEXTS),
        deleted=asked.deleted,
        deleted_only=asked.flag("deletedOnly"),
        offset=asked.offset,
        limit=asked.limit,
    )


def _find(registry: Registry, asked: RestRequest) -> Json:
    wanted = asked.schema_request()
    found = registry.find(
        asked.subject,
        wanted.schema,
        normalize=asked.flag("normalize"),
        deleted=asked.deleted,
        metadata=wanted.metadata,
        rule_set=wanted.rule_set,
    )
    return described(found, text_in(registry, found, asked.text("format")))


def _delete(registry: Registry, asked: RestRequest) -> Json:
    return registry.delete_subject(asked.subject, permanent=asked.flag("permanent"))


def _versions(registry: Registry, asked: RestRequest) -> Json:
    return registry.versions(
        asked.subject,
        deleted=asked.deleted,
        deleted_only=asked.flag("deletedOnly"),
        offset=asked.offset,
        limit=asked.limit,
    )


def _register(registry: Registry, asked: RestRequest) -> Json:
    wanted = asked.schema_request()
    added = registry.add(
        asked.subject,
        wanted.schema,
        normalize=asked.flag("normalize"),
        schema_id=wanted.schema_id,
        version=wanted.version,
        metadata=wanted.metadata,
        rule_set=wanted.rule_set,
    )
    # Clients keep the answer as the schema of its id: those that sent a descriptor want it back.
    sent = wanted.schema
    return registered(added, sent.text if sent.kind is SchemaKind.PROTOBUF else None)


def _stored(registry: Registry, asked: RestRequest) -> StoredSchema:
    return registry.stored(asked.subject, asked.version, deleted=asked.deleted)


def _version(registry: Registry, asked: RestRequest) -> Json:
    stored = _stored(registry, asked)
    return described(stored, text_in(registry, stored, asked.text("format")))


def _version_text(registry: Registry, asked: RestRequest) -> Json:
    return PlainText(text_in(registry, _stored(registry, asked), asked.text("format")))


def _referenced_by(registry: Registry, asked: RestRequest) -> Json:
    found = registry.referenced_by(asked.subject, asked.version)[asked.offset :]
    return found if asked.limit < 0 else found[: asked.limit]


def _delete_version(registry: Registry, asked: RestRequest) -> Json:
    return registry.delete_version(asked.subject, asked.version, permanent=asked.flag("permanent"))


def _latest_with_metadata(registry: Registry, asked: RestRequest) -> Json:
    """The latest version whose metadata has all the properties of the query."""
    keys, values = asked.texts("key"), asked.texts("value")
    wanted = dict(zip(keys, values, strict=False))
    deleted = asked.deleted
    for number in reversed(registry.versions(asked.subject, deleted=deleted)):
        stored = registry.stored(asked.subject, number, deleted=deleted)
        if _has_properties(stored, wanted):
            return described(stored, text_in(registry, stored, asked.text("format")))
    raise schema_not_found()


def _has_properties(stored: StoredSchema, wanted: dict[str, str]) -> bool:
    properties = (stored.metadata or {}).get("properties")
    known = properties if isinstance(properties, dict) else {}
    # Confluent's Python client encodes what its HTTP library encodes again.
    return all(
        known.get(key, known.get(unquote(key))) in (value, unquote(value))
        for key, value in wanted.items()
    )


ENDPOINTS: Endpoints = {
    "/subjects": {"GET": Endpoint(_list)},
    "/subjects/{subject}": {"POST": Endpoint(_find), "DELETE": Endpoint(_delete)},
    "/subjects/{subject}/metadata": {"GET": Endpoint(_latest_with_metadata)},
    "/subjects/{subject}/versions": {"GET": short(_versions), "POST": Endpoint(_register)},
    "/subjects/{subject}/versions/{version}": {
        "GET": short_unless_formatted(_version),
        "DELETE": Endpoint(_delete_version),
    },
    "/subjects/{subject}/versions/{version}/schema": {"GET": short_unless_formatted(_version_text)},
    "/subjects/{subject}/versions/{version}/referencedby": {"GET": short(_referenced_by)},
}
