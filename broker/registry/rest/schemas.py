"""/schemas: schemas by id, by GUID, or all of them."""

from urllib.parse import unquote

from broker.registry.registry import Registry
from broker.registry.rest.answers import Json, PlainText, described, schema_alone
from broker.registry.rest.endpoint import Endpoint, Endpoints, short, short_unless_formatted
from broker.registry.rest.forms import text_in
from broker.registry.rest.requests import RestRequest
from broker.registry.subject_names import ALL_CONTEXTS, context_of
from broker.registry.values import StoredSchema

# In the order that Confluent's server has.
KINDS = ["JSON", "PROTOBUF", "AVRO"]


def _list(registry: Registry, asked: RestRequest) -> Json:
    rule_type = asked.text("ruleType")
    offset, limit = asked.offset, asked.limit
    found = registry.all_schemas(
        prefix=asked.text("subjectPrefix"),
        deleted=asked.deleted,
        latest_only=asked.flag("latestOnly"),
        # Rules are looked for here: what is left out must not count.
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


def _by_id(registry: Registry, asked: RestRequest) -> Json:
    stored = registry.by_id(asked.schema_id, subject=asked.within)
    content = schema_alone(stored, text_in(registry, stored, asked.text("format")))
    if asked.flag("fetchMaxId"):
        content["maxId"] = registry.max_id(subject=asked.within)
    return content


def _text_by_id(registry: Registry, asked: RestRequest) -> Json:
    stored = registry.by_id(asked.schema_id, subject=asked.within)
    return PlainText(text_in(registry, stored, asked.text("format")))


def _by_guid(registry: Registry, asked: RestRequest) -> Json:
    stored = registry.by_guid(unquote(asked.path["guid"], errors="replace"))
    return schema_alone(stored, text_in(registry, stored, asked.text("format")))


def _ids_of_guid(registry: Registry, asked: RestRequest) -> Json:
    """The ids that a schema has, each in its context."""
    guid = registry.by_guid(unquote(asked.path["guid"], errors="replace")).guid
    everywhere = registry.all_schemas(prefix=ALL_CONTEXTS, deleted=True)
    found = {
        (context_of(stored.subject), stored.schema_id)
        for stored in everywhere
        if stored.guid == guid
    }
    return [{"context": context, "id": number} for context, number in sorted(found)]


def _subjects(registry: Registry, asked: RestRequest) -> Json:
    return registry.subjects_of(
        asked.schema_id,
        subject=asked.within,
        deleted=asked.deleted,
        offset=asked.offset,
        limit=asked.limit,
    )


def _versions(registry: Registry, asked: RestRequest) -> Json:
    places = registry.versions_of(
        asked.schema_id,
        subject=asked.within,
        deleted=asked.deleted,
        offset=asked.offset,
        limit=asked.limit,
    )
    return [{"subject": place.subject, "version": place.version} for place in places]


def _kinds(registry: Registry, asked: RestRequest) -> Json:
    del registry, asked
    return KINDS


ENDPOINTS: Endpoints = {
    "/schemas": {"GET": Endpoint(_list)},
    "/schemas/types": {"GET": short(_kinds)},
    "/schemas/ids/{id}": {"GET": short_unless_formatted(_by_id)},
    "/schemas/ids/{id}/schema": {"GET": short_unless_formatted(_text_by_id)},
    "/schemas/ids/{id}/subjects": {"GET": short(_subjects)},
    "/schemas/ids/{id}/versions": {"GET": short(_versions)},
    "/schemas/guids/{guid}": {"GET": short_unless_formatted(_by_guid)},
    "/schemas/guids/{guid}/ids": {"GET": Endpoint(_ids_of_guid)},
}
