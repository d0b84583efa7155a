"""The fingerprint of a schema: the MD5 that identifies equal schemas in all registries.

It is Confluent's: the text, each reference, then metadata and rule set, each with a byte 1 before
it if it is present. The GUID of a schema is this digest in the form of a UUID.
"""

import hashlib
from collections.abc import Iterator

from broker.registry.values import JsonObject
from broker.serde.schema.schema import Schema

THERE = b"\x01"
RULE_LISTS = ("migrationRules", "domainRules", "encodingRules")
RULE_TEXTS_BEFORE = (("name", ""), ("doc", ""), ("kind", "TRANSFORM"), ("mode", "WRITEREAD"))
RULE_TEXTS_AFTER = ("expr", "onSuccess", "onFailure")


def guid_of(
    schema: Schema, metadata: JsonObject | None = None, rule_set: JsonObject | None = None
) -> str:
    """The GUID of a schema, the same in every registry."""
    digest = hashlib.md5(schema.text.encode(), usedforsecurity=False)
    for reference in schema.references:
        digest.update(reference.name.encode() + reference.subject.encode())
        digest.update(reference.version.to_bytes(4, "big", signed=True))
    if metadata is not None:
        digest.update(THERE + b"".join(_metadata_parts(metadata)))
    if rule_set is not None:
        digest.update(THERE + b"".join(_rule_set_parts(rule_set)))
    text = digest.hexdigest()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _metadata_parts(metadata: JsonObject) -> Iterator[bytes]:
    for tag, paths in _sorted_items(metadata.get("tags")):
        yield tag.encode()
        yield from _sorted_texts(paths)
    for name, value in _sorted_items(metadata.get("properties")):
        yield name.encode() + str(value).encode()
    yield from _sorted_texts(metadata.get("sensitive"))


def _rule_set_parts(rule_set: JsonObject) -> Iterator[bytes]:
    for kind in RULE_LISTS:
        rules = rule_set.get(kind)
        for rule in rules if isinstance(rules, list) else ():
            if isinstance(rule, dict):
                yield from _rule_parts(rule)


def _rule_parts(rule: JsonObject) -> Iterator[bytes]:
    for name, default in RULE_TEXTS_BEFORE:
        yield _text(rule.get(name) or default)
    yield _text(rule.get("type"))
    yield from _sorted_texts(rule.get("tags"))
    for name, value in _sorted_items(rule.get("params")):
        yield name.encode() + str(value).encode()
    for name in RULE_TEXTS_AFTER:
        yield _text(rule.get(name))
    if rule.get("disabled") is True:
        yield THERE


def _text(value: object) -> bytes:
    return b"" if value is None else str(value).encode()


def _sorted_items(value: object) -> list[tuple[str, object]]:
    return sorted(value.items()) if isinstance(value, dict) else []


def _sorted_texts(value: object) -> list[bytes]:
    return sorted({str(each).encode() for each in value}) if isinstance(value, list) else []
