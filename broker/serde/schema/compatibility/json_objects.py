"""Differences of keywords for objects: properties and the content model.

The content model defines which other properties are allowed besides the named ones: an open one
allows all, a closed one none, a partially open one those that match a pattern or a schema.
"""

import re
from collections.abc import Callable, Iterator

from broker.linear_patterns import PatternTimeout, compile_pattern
from broker.serde.schema.compatibility.json_bounds import OBJECT_BOUNDS, bound_differences
from broker.serde.schema.compatibility.json_difference import Difference
from broker.serde.schema.compatibility.json_parts import Json, NestedSchema, Part, parts_of

REST_NAMES = {
    "additionalProperties": "ADDITIONAL_PROPERTIES",
    "unevaluatedProperties": "UNEVALUATED_PROPERTIES",
}

Compare = Callable[[NestedSchema, NestedSchema, str], list[Difference]]


def object_differences(old: Part, new: Part, path: str, compare: Compare) -> Iterator[Difference]:
    """All differences of objects."""
    yield from required_differences(old, new, path)
    yield from property_differences(old, new, path, compare)
    yield from pattern_differences(old, new, path, compare)
    yield from dependency_differences(old, new, path, compare)
    word = rest_word(new, "additionalProperties", "unevaluatedProperties")
    where = (f"{path}/{word}", REST_NAMES[word])
    yield from additional_differences(rest(old), rest(new), where, compare)
    yield from optional_differences(old, new, (path, "propertyNames"), compare)
    yield from bound_differences(old.words, new.words, OBJECT_BOUNDS, path)


def required_differences(old: Part, new: Part, path: str) -> Iterator[Difference]:
    """Properties that are required now; a property with a default is compatible."""
    before, properties = required(old.words), new.inner_by_name("properties")
    named = old.inner_by_name("properties")
    for name in required(new.words):
        if name in before or (name in properties and name not in named and not is_open(old)):
            continue
        if not has_default(properties.get(name)):
            yield Difference("REQUIRED_ATTRIBUTE_ADDED", f"{path}/required/{name}")


def property_differences(old: Part, new: Part, path: str, compare: Compare) -> Iterator[Difference]:
    """Properties that were added, removed or changed."""
    before, after = old.inner_by_name("properties"), new.inner_by_name("properties")
    for name in dict.fromkeys((*before, *after)):
        place = f"{path}/properties/{name}"
        if name not in after:
            yield from removed_differences(before[name], new, (name, place), compare)
        elif name not in before:
            yield from added_differences(old, after[name], (name, place), compare)
            demanded = name in required(new.words) - required(old.words)
            if demanded and not is_open(old) and not has_default(after[name]):
                yield Difference("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", place)
        else:
            yield from compare(before[name], after[name], place)


def removed_differences(
    old: NestedSchema, new: Part, where: tuple[str, str], compare: Compare
) -> Iterator[Difference]:
    """A property that the new schema does not name: its content model must allow it."""
    name, path = where
    if is_open(new) or is_false(old):
        return
    covering = covers(new, name)
    if not covering:
        yield Difference("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
    for each in covering:
        inner = compare(old, each, path)
        yield from inner
        if inner:
            kind = "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
            yield Difference(kind, path)


def added_differences(
    old: Part, new: NestedSchema, where: tuple[str, str], compare: Compare
) -> Iterator[Difference]:
    """A property that the old schema does not name: values that it allowed must be valid."""
    name, path = where
    if is_open(old):
        if parts_of(new):
            yield Difference("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", path)
        return
    covering = covers(old, name)
    tries = [compare(each, new, path) for each in covering]
    # All schemas that cover the property apply to it, so one compatible schema is enough.
    if tries and all(tries):
        yield from tries[0]
        yield Difference("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)


def pattern_differences(old: Part, new: Part, path: str, compare: Compare) -> Iterator[Difference]:
    """Properties that match a pattern and are not named."""
    before, after = old.inner_by_name("patternProperties"), new.inner_by_name("patternProperties")
    for pattern in dict.fromkeys((*before, *after)):
        place = f"{path}/patternProperties/{pattern}"
        if pattern in before and pattern in after:
            yield from compare(before[pattern], after[pattern], place)
        elif pattern in after:
            yield from added_pattern(old, new, (pattern, place), compare)
        elif not is_false(before[pattern]):
            others = rest(new)
            if others is not None and compare(before[pattern], others, place):
                closed = is_false(others)
                kind = "REMOVED" if closed else "NARROWED"
                yield Difference(f"ADDITIONAL_PROPERTIES_{kind}", place)


def added_pattern(
    old: Part, new: Part, where: tuple[str, str], compare: Compare
) -> Iterator[Difference]:
    """A pattern of the new schema only: matching properties must be valid for its schema."""
    pattern, path = where
    schema = new.inner_by_name("patternProperties")[pattern]
    others = rest(old)
    unnamed = [old.node.inner(True) if others is None else others]
    unnamed.extend(old.inner_by_name("patternProperties").values())
    named = [each for name, each in old.inner_by_name("properties").items() if fits(pattern, name)]
    if any(not is_false(each) and compare(each, schema, path) for each in (*unnamed, *named)):
        yield Difference("ADDITIONAL_PROPERTIES_NARROWED", path)


def dependency_differences(
    old: Part, new: Part, path: str, compare: Compare
) -> Iterator[Difference]:
    """Requirements that apply if a property is present."""
    before, after = dependencies(old), dependencies(new)
    for name, demanded in after[0].items():
        place = f"{path}/dependencies/{name}"
        given = before[0].get(name)
        if given is None:
            if demanded:
                yield Difference("DEPENDENCY_ARRAY_ADDED", place)
        elif not demanded <= given:
            kind = "EXTENDED" if given < demanded else "CHANGED"
            yield Difference(f"DEPENDENCY_ARRAY_{kind}", place)
    for name, schema in after[1].items():
        place = f"{path}/dependencies/{name}"
        if name in before[1]:
            yield from compare(before[1][name], schema, place)
        elif parts_of(schema):
            yield Difference("DEPENDENCY_SCHEMA_ADDED", place)


def additional_differences(
    old: NestedSchema | None, new: NestedSchema | None, where: tuple[str, str], compare: Compare
) -> Iterator[Difference]:
    """Schemas of other properties; None is an open content model."""
    path, name = where
    if new is None or (old is not None and is_false(old)):
        return
    if is_false(new):
        yield Difference(f"{name}_REMOVED", path)
    elif old is None:
        yield Difference(f"{name}_NARROWED", path)
    else:
        yield from compare(old, new, path)


def optional_differences(
    old: Part, new: Part, where: tuple[str, str], compare: Compare
) -> Iterator[Difference]:
    """An optional keyword with a schema."""
    path, word = where
    before, after = old.inner(word), new.inner(word)
    if after is None or not parts_of(after):
        return
    if before is None:
        yield Difference("SCHEMA_ADDED", f"{path}/{word}")
    else:
        yield from compare(before, after, f"{path}/{word}")


def rest(part: Part) -> NestedSchema | None:
    """The schema of properties that are not named and match no pattern; None allows all."""
    found = part.inner(rest_word(part, "additionalProperties", "unevaluatedProperties"))
    return found if found is not None and parts_of(found) else None


def rest_word(part: Part, word: str, other: str) -> str:
    """The keyword for other properties; the second one is used if the first is missing."""
    return other if part.inner(word) is None and part.inner(other) is not None else word


def is_open(part: Part) -> bool:
    """Whether other properties may have any value."""
    return rest(part) is None and not part.inner_by_name("patternProperties")


def covers(part: Part, name: str) -> list[NestedSchema]:
    """The schemas that apply to a property that is not named."""
    patterns = part.inner_by_name("patternProperties")
    result = [each for pattern, each in patterns.items() if fits(pattern, name)]
    if result:
        return result
    others = rest(part)
    if others is None:
        return [part.node.inner(True)]
    return [] if is_false(others) else [others]


def fits(pattern: str, name: str) -> bool:
    """Whether a name matches a pattern; an invalid pattern matches all names, to be safe."""
    try:
        return compile_pattern(pattern).search(name) is not None
    except (re.error, PatternTimeout):
        return True


def is_false(node: NestedSchema) -> bool:
    """Whether no value is valid."""
    return any(each.kind == "false" for each in parts_of(node))


def has_default(node: NestedSchema | None) -> bool:
    """Whether a property has a default."""
    return node is not None and isinstance(node.schema, dict) and "default" in node.schema


def required(words: Json) -> frozenset[str]:
    """The required properties."""
    return names(words.get("required"))


def names(value: object) -> frozenset[str]:
    """A list of names."""
    found = value if isinstance(value, list) else []
    return frozenset(each for each in found if isinstance(each, str))


def dependencies(part: Part) -> tuple[dict[str, frozenset[str]], dict[str, NestedSchema]]:
    """Required properties and schemas by the property that requires them, for all drafts."""
    lists: dict[str, frozenset[str]] = {}
    schemas = part.inner_by_name("dependentSchemas")
    for word in ("dependencies", "dependentRequired"):
        given = part.words.get(word)
        for name, each in given.items() if isinstance(given, dict) else ():
            if isinstance(each, list):
                lists[name] = lists.get(name, frozenset()) | names(each)
            else:
                schemas.setdefault(name, part.node.inner(each))
    return lists, schemas
