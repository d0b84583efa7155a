"""Messages: entities as ksqlDB's JSON."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from sql.engine import entities

TAGS: Mapping[type, str] = {
    entities.CurrentStatus: "currentStatus",
    entities.WarningEntity: "warning_entity",
    entities.PropertiesList: "properties",
    entities.StreamsList: "streams",
    entities.TablesList: "tables",
    entities.QueriesList: "queries",
    entities.TopicsList: "kafka_topics",
    entities.ExtendedTopicsList: "kafka_topics_extended",
    entities.SourceDescription: "sourceDescription",
    entities.SourceDescriptions: "source_descriptions",
    entities.QueryDescription: "queryDescription",
    entities.QueryDescriptions: "query_descriptions",
    entities.FunctionsList: "function_names",
    entities.FunctionDescription: "describe_function",
    entities.TypesList: "type_list",
    entities.VariablesList: "variables",
    entities.TerminatedQuery: "terminate_query",
    entities.AssertedTopic: "assert_topic",
    entities.AssertedSchema: "assert_schema",
    entities.CreatedConnector: "connector_info",
    entities.DroppedConnector: "drop_connector",
    entities.ConnectorsList: "connector_list",
    entities.PluginsList: "connector_plugins_list",
    entities.ConnectorDescription: "connector_description",
}
# Types whose null members are omitted.
LEFT_OUT_IF_NULL: Mapping[type, frozenset[str]] = {
    entities.FieldInfo: frozenset({"type", "header_key"}),
    entities.FieldSchema: frozenset({"parameters"}),
    entities.QueryDetails: frozenset({"state", "progress"}),
    entities.RunningQuery: frozenset({"progress"}),
}
# Connect's names for members that are reserved words in Python.
OTHER_NAMES: Mapping[type, Mapping[str, str]] = {
    entities.PluginSummary: {"class_name": "class"},
}


# Any: JSON holds values of all kinds.
def entity_json(entity: entities.Entity) -> dict[str, Any]:
    """The JSON object of an entity, with its "@type"."""
    return {"@type": TAGS[type(entity)], **_object(entity)}


def plain_json(value: object) -> Any:
    """A value as JSON: objects for dataclasses, lists for tuples."""
    if is_dataclass(value) and not isinstance(value, type):
        return _object(value)
    if isinstance(value, Mapping):
        return {str(key): plain_json(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain_json(each) for each in value]
    return value


def _object(value: object) -> dict[str, Any]:
    # Any: mypy does not accept types as hashable.
    kind: Any = type(value)
    left_out = LEFT_OUT_IF_NULL.get(kind, frozenset())
    result = {}
    for name, shown in _names(kind):
        member = getattr(value, name)
        if member is None and name in left_out:
            continue
        result[shown] = plain_json(member)
    return result


@cache
def _names(kind: type) -> tuple[tuple[str, str], ...]:
    others = OTHER_NAMES.get(kind, {})
    # Any: `fields` accepts a type that is known only at run time.
    described: Any = kind
    return tuple(
        (each.name, others.get(each.name) or _camel(each.name)) for each in fields(described)
    )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)
