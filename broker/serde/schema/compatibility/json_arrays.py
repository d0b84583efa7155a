"""Differences of keywords for arrays: items by position, all other items, and counts."""

from collections.abc import Iterator

from broker.serde.schema.compatibility.json_bounds import (
    ARRAY_BOUNDS,
    CONTAINS_BOUNDS,
    bound_differences,
)
from broker.serde.schema.compatibility.json_difference import Difference
from broker.serde.schema.compatibility.json_objects import (
    Compare,
    additional_differences,
    is_false,
    optional_differences,
    rest_word,
)
from broker.serde.schema.compatibility.json_parts import Json, NestedSchema, Part, parts_of
from broker.serde.schema.json_schema import Draft

REST_NAMES = (
    ("additionalItems", "ADDITIONAL_ITEMS"),
    ("unevaluatedItems", "UNEVALUATED_ITEMS"),
)


def array_differences(old: Part, new: Part, path: str, compare: Compare) -> Iterator[Difference]:
    """All differences of arrays."""
    before, after = positions(old), positions(new)
    for index in range(max(len(before), len(after))):
        yield from item_differences(old, new, (index, f"{path}/items/{index}"), compare)
    if before or after:
        unevaluated = items_word(new) == "unevaluatedItems"
        word, name = REST_NAMES[unevaluated]
        where = (f"{path}/{word}", name)
        yield from additional_differences(rest(old), rest(new), where, compare)
    else:
        yield from all_items_differences(old, new, f"{path}/items", compare)
    if new.words.get("uniqueItems") is True and old.words.get("uniqueItems") is not True:
        yield Difference("UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems")
    yield from contains_differences(old, new, path, compare)
    yield from bound_differences(old.words, new.words, ARRAY_BOUNDS, path)


def item_differences(
    old: Part, new: Part, where: tuple[int, str], compare: Compare
) -> Iterator[Difference]:
    """The item at one position; without its own schema, it is one of the other items."""
    index, path = where
    before, after = positions(old), positions(new)
    if index < len(before) and index < len(after):
        yield from compare(before[index], after[index], path)
    elif index < len(before):
        yield from removed_differences(before[index], rest(new), path, compare)
    else:
        yield from added_differences(rest(old), after[index], path, compare)


def removed_differences(
    old: NestedSchema, others: NestedSchema | None, path: str, compare: Compare
) -> Iterator[Difference]:
    """An item that no longer has its own schema."""
    if others is None or is_false(old):
        return
    if is_false(others):
        yield Difference("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
        return
    inner = compare(old, others, path)
    yield from inner
    if inner:
        yield Difference("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)


def added_differences(
    others: NestedSchema | None, new: NestedSchema, path: str, compare: Compare
) -> Iterator[Difference]:
    """An item that now has its own schema."""
    if others is None:
        if parts_of(new):
            yield Difference("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", path)
        return
    if is_false(others):
        return
    inner = compare(others, new, path)
    yield from inner
    if inner:
        yield Difference("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)


def all_items_differences(
    old: Part, new: Part, path: str, compare: Compare
) -> Iterator[Difference]:
    """The schema of all items."""
    before, after = rest(old), rest(new)
    if after is None:
        return
    if before is None:
        yield Difference("SCHEMA_ADDED", path)
    else:
        yield from compare(before, after, path)


def contains_differences(old: Part, new: Part, path: str, compare: Compare) -> Iterator[Difference]:
    """Items that the array must contain, and how many of them."""
    after = new.inner("contains")
    if after is None:
        return
    if "maxContains" in new.words and old.words.get("contains") != new.words.get("contains"):
        # Fewer items may have matched before, so the upper bound has no meaning.
        yield Difference("TYPE_CHANGED", f"{path}/contains")
        return
    yield from contains_demanded(old, new, path, compare)
    yield from bound_differences(counts(old), counts(new), CONTAINS_BOUNDS, path)


def contains_demanded(old: Part, new: Part, path: str, compare: Compare) -> Iterator[Difference]:
    """The schema itself, which applies even if all counts are allowed."""
    before = old.inner("contains")
    if before is None:
        if counts(new).get("minContains") != 0:
            yield Difference("SCHEMA_ADDED", f"{path}/contains")
    elif parts_of(before):
        yield from optional_differences(old, new, (path, "contains"), compare)
    elif old.words.get("contains") != new.words.get("contains"):
        yield Difference("TYPE_CHANGED", f"{path}/contains")


def counts(part: Part) -> Json:
    """The minimum and maximum count; the default minimum is one."""
    result: Json = {
        word: part.words[word] for word in ("minContains", "maxContains") if word in part.words
    }
    if "contains" in part.words:
        result.setdefault("minContains", 1)
    return result


def positions(part: Part) -> list[NestedSchema]:
    """The schemas of the first items, one by one."""
    word = "prefixItems" if part.node.owner.draft is Draft.DRAFT_2020_12 else "items"
    given = part.words.get(word)
    return [part.node.inner(each) for each in given] if isinstance(given, list) else []


def rest(part: Part) -> NestedSchema | None:
    """The schema of all other items; None allows all."""
    found = part.inner(items_word(part))
    return found if found is not None and parts_of(found) else None


def items_word(part: Part) -> str:
    """The keyword with the schema of all other items."""
    newest = part.node.owner.draft is Draft.DRAFT_2020_12
    tuples = not newest and isinstance(part.words.get("items"), list)
    return rest_word(part, "additionalItems" if tuples else "items", "unevaluatedItems")
