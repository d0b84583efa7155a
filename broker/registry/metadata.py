"""Metadata and rule sets of schemas: inheritance, merging with the configuration, numbering."""

from broker.registry.fingerprint import RULE_LISTS
from broker.registry.values import JsonObject, StoredSchema, SubjectConfig

VERSION_PROPERTY = "confluent:version"


def metadata_property(metadata: JsonObject | None, name: str) -> object:
    """One property of the metadata, or None."""
    properties = None if metadata is None else metadata.get("properties")
    return properties.get(name) if isinstance(properties, dict) else None


def with_defaults(
    metadata: JsonObject | None,
    rule_set: JsonObject | None,
    config: SubjectConfig,
    previous: StoredSchema | None,
    *,
    version: int | None = None,
    number_it: bool = False,
) -> tuple[JsonObject | None, JsonObject | None]:
    """Metadata and rule set of a new version; missing ones are copied from the previous version.

    If they contain a version number, it is set to that of the new version, if known.
    """
    if previous is not None:
        metadata = previous.metadata if metadata is None else metadata
        rule_set = previous.rule_set if rule_set is None else rule_set
    metadata = merged_metadata(
        merged_metadata(_field(config, "defaultMetadata"), metadata),
        _field(config, "overrideMetadata"),
    )
    rule_set = merged_rule_sets(
        merged_rule_sets(_field(config, "defaultRuleSet"), rule_set),
        _field(config, "overrideRuleSet"),
    )
    carries = metadata_property(metadata, VERSION_PROPERTY) is not None
    if version is not None and (number_it or carries):
        metadata = merged_metadata(metadata, {"properties": {VERSION_PROPERTY: str(version)}})
    return metadata, rule_set


def merged_metadata(old: JsonObject | None, new: JsonObject | None) -> JsonObject | None:
    """Merges both; the new one takes precedence."""
    if old is None or new is None:
        return new if old is None else old
    merged: dict[str, object] = {**old}
    for name, value in new.items():
        before = merged.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[name] = {**before, **value}
        elif isinstance(before, list) and isinstance(value, list):
            merged[name] = [*before, *(each for each in value if each not in before)]
        else:
            merged[name] = value
    return merged


def merged_rule_sets(old: JsonObject | None, new: JsonObject | None) -> JsonObject | None:
    """Merges both; a new rule replaces an old one with the same name."""
    if old is None or new is None:
        return new if old is None else old
    merged: dict[str, object] = {**old, **new}
    for kind in RULE_LISTS:
        before, after = old.get(kind), new.get(kind)
        if isinstance(before, list) and isinstance(after, list):
            names = [_name(rule) for rule in after]
            merged[kind] = [*(rule for rule in before if _name(rule) not in names), *after]
    return merged


def _name(rule: object) -> object:
    return rule.get("name") if isinstance(rule, dict) else rule


def _field(config: SubjectConfig, name: str) -> JsonObject | None:
    value = config.fields.get(name)
    return value if isinstance(value, dict) else None
