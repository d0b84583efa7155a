"""/schemas: schemas by id, by GUID, or all of them."""

from broker.registry.registry import Registry
from broker.registry.rest.forms import text_in
from broker.registry.rest.registry_request import (
    RegistryRequest,
    RegistryRoute,
    always,
    unless_formatted,
)
from broker.registry.rest.replies import described, schema_alone
from broker.registry.subject_names import ALL_CONTEXTS, context_of
from broker.registry.values import StoredSchema
from broker.rest import Json, PlainText

# In the order of Confluent's server.
KINDS = ["JSON", "PROTOBUF", "AVRO"]


def _list(registry: Registry, request: RegistryRequest) -> Json:
    rule_type = request.text("ruleType")
    offset, limit = request.offset, request.limit
    found = registry.all_schemas(
        prefix=request.text("subjectPrefix"),
        deleted=request.deleted,
        latest_only=request.flag("latestOnly"),
        # Rules are filtered here, before paging: omitted versions must not count.
        **({} if rule_type else {"offset": offset, "limit": limit}),
    )
    if rule_type:
        found = [stored for stored in found if _has_rule(stored, rule_type)][offset:]
        found = found if limit < 0 else found[:limit]
    return [described(stored) for stored in found]


def _has_rule(stored: StoredSchema, rule_type: str) -> bool:
    lists = [rules for rules in (stored.rule_set or {}).values() if isinstance(rules, list)]
    return any(
        isinstance(rule, dict) and rule.get("type") == rule_type
        for rules in lists
        for rule in rules
    )


def _by_id(registry: Registry, request: RegistryRequest) -> Json:
    stored = registry.by_id(request.schema_id, subject=request.within)
    content = schema_alone(stored, text_in(registry, stored, request.text("format")))
    if request.flag("fetchMaxId"):
        content["maxId"] = registry.max_id(subject=request.within)
    return content


def _text_by_id(registry: Registry, request: RegistryRequest) -> Json:
    stored = registry.by_id(request.schema_id, subject=request.within)
    return PlainText(text_in(registry, stored, request.text("format")))


def _by_guid(registry: Registry, request: RegistryRequest) -> Json:
    stored = registry.by_guid(request.variable("guid"))
    return schema_alone(stored, text_in(registry, stored, request.text("format")))


def _ids_of_guid(registry: Registry, request: RegistryRequest) -> Json:
    """The ids of a schema, each with its context."""
    guid = registry.by_guid(request.variable("guid")).guid
    everywhere = registry.all_schemas(prefix=ALL_CONTEXTS, deleted=True)
    found = {
        (context_of(stored.subject), stored.schema_id)
        for stored in everywhere
        if stored.guid == guid
    }
    return [{"context": context, "id": number} for context, number in sorted(found)]


def _subjects(registry: Registry, request: RegistryRequest) -> Json:
    return registry.subjects_of(
        request.schema_id,
        subject=request.within,
        deleted=request.deleted,
        offset=request.offset,
        limit=request.limit,
    )


def _versions(registry: Registry, request: RegistryRequest) -> Json:
    places = registry.versions_of(
        request.schema_id,
        subject=request.within,
        deleted=request.deleted,
        offset=request.offset,
        limit=request.limit,
    )
    return [{"subject": place.subject, "version": place.version} for place in places]


def _kinds(registry: Registry, request: RegistryRequest) -> Json:
    del registry, request
    return KINDS


ROUTES: tuple[RegistryRoute, ...] = (
    RegistryRoute("GET", "/schemas", _list),
    RegistryRoute("GET", "/schemas/types", _kinds, at_once=always),
    RegistryRoute("GET", "/schemas/ids/{id}", _by_id, at_once=unless_formatted),
    RegistryRoute("GET", "/schemas/ids/{id}/schema", _text_by_id, at_once=unless_formatted),
    RegistryRoute("GET", "/schemas/ids/{id}/subjects", _subjects, at_once=always),
    RegistryRoute("GET", "/schemas/ids/{id}/versions", _versions, at_once=always),
    RegistryRoute("GET", "/schemas/guids/{guid}", _by_guid, at_once=unless_formatted),
    RegistryRoute("GET", "/schemas/guids/{guid}/ids", _ids_of_guid),
)
