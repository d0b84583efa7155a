"""Differences of JSON schemas: why values of one may be invalid for another.

The rules are those of Confluent's registry: a looser schema is compatible, a stricter one is not. A
property that becomes required is compatible if it has a default, and formats are not compared.
Rules that Confluent's registry lacks are added where values would be refused: patternProperties,
propertyNames, contains, if, and types that were not named before.
"""

from broker.errors import SchemaError
from broker.serde.schema.compatibility.json_arrays import array_differences
from broker.serde.schema.compatibility.json_bounds import (
    enum_differences,
    number_differences,
    string_differences,
)
from broker.serde.schema.compatibility.json_combined import combined_differences
from broker.serde.schema.compatibility.json_difference import Difference, one
from broker.serde.schema.compatibility.json_objects import object_differences
from broker.serde.schema.compatibility.json_parts import (
    COMBINED,
    REFERENCE_WORDS,
    SUMS,
    Key,
    NestedSchema,
    Part,
    Parts,
    parts_of,
    root_of,
)
from broker.serde.schema.json_schema import JsonSchema

COMPARISONS_MAX = 20_000
# The number of differences is limited: schemas that are referenced repeatedly multiply them.
DIFFERENCES_MAX = 100
NOTHING: list[Difference] = []
IF_WORDS = ("if", "then", "else")

Pair = tuple[tuple[Key, ...], Key]


def differences(new: JsonSchema, old: JsonSchema) -> list[str]:
    """The reasons why values that are valid for `old` may be invalid for `new`."""
    try:
        found = JsonComparison().nodes(root_of(old), root_of(new), "#")
    except RecursionError as error:
        raise SchemaError("the schemas are nested too deeply to be compared") from error
    return list(dict.fromkeys(str(each) for each in found))


class JsonComparison:
    """Compares pairs of schemas; a pair inside itself counts as compatible."""

    def __init__(self) -> None:
        # Paths are relative to the pair, because a pair may occur in several places.
        self._found: dict[Pair, list[Difference]] = {}
        # Compatible if the pairs being compared are; assumptions inside a cycle are confirmed only
        # when the whole cycle is done.
        self._provisional: dict[Pair, None] = {}
        self._under_way: set[Pair] = set()
        self._assumptions = 0
        self._comparisons = 0

    def nodes(self, old: NestedSchema, new: NestedSchema, path: str) -> list[Difference]:
        """The reasons why values of the old schema may be invalid for the new one."""
        return self.parts(parts_of(old), parts_of(new), path)

    def parts(self, old: Parts, new: Parts, path: str) -> list[Difference]:
        """The same for all parts of two schemas."""
        if any(each.kind == "false" for each in old):
            return []
        return [found for each in new for found in self._demand(old, each, path)]

    def _demand(self, old: Parts, new: Part, path: str) -> list[Difference]:
        """The reasons why a part of the new schema may be violated; cached, and never recursive."""
        pair = (tuple(each.key for each in old), new.key)
        found = self._found.get(pair)
        if found is None:
            if pair in self._under_way or pair in self._provisional:
                self._assumptions += 1
                return []
            self._under_way.add(pair)
            assumed, kept = self._assumptions, len(self._provisional)
            found = self._unmet(old, new, "")[:DIFFERENCES_MAX]
            self._under_way.remove(pair)
            if found or assumed == self._assumptions:
                self._found[pair] = found
            else:
                self._provisional[pair] = None
            while found and len(self._provisional) > kept:  # they may depend on this pair
                self._provisional.popitem()
            if not self._under_way:
                self._found.update(dict.fromkeys(self._provisional, NOTHING))
                self._provisional.clear()
        return [Difference(each.kind, f"{path}{each.path}") for each in found]

    def _unmet(self, old: Parts, new: Part, path: str) -> list[Difference]:
        """Some part of the old schema must imply the new part."""
        tries = [(each, self._pair(each, new, path)) for each in old]
        if any(not result for _, result in tries):
            return []
        if new.kind in COMBINED and self._as_a_whole(old, new, path):
            return []
        for each, result in tries:
            if each.kind == new.kind or (each.kind in COMBINED and new.kind in COMBINED):
                return result
        if len(new.alternatives) == 1:
            return self.parts(old, alternative(new, 0), path)
        return tries[0][1] if len(tries) == 1 else one("TYPE_CHANGED", path)

    def _as_a_whole(self, old: Parts, new: Part, path: str) -> bool:
        """Whether the whole old schema is compatible with the alternatives of a combined part."""
        fits = (
            not self.parts(old, alternative(new, index), path)
            for index in range(len(new.alternatives))
        )
        if new.kind in SUMS:
            return any(fits)
        return all(each.kind != "allOf" for each in old) and all(fits)

    def _pair(self, old: Part, new: Part, path: str) -> list[Difference]:
        self._comparisons += 1
        if self._comparisons > COMPARISONS_MAX:
            raise SchemaError("the schemas have too many alternatives to be compared")
        if old.kind in COMBINED and new.kind in COMBINED:
            return combined_differences(old, new, path, self.parts)
        if old.kind in COMBINED:
            return self._old_combined(old, new, path)
        if old.kind != new.kind:
            return one("TYPE_CHANGED", path)
        if new.typed and not old.typed:
            return one("TYPE_NARROWED", path)
        return self._same_kind(old, new, path)

    def _old_combined(self, old: Part, new: Part, path: str) -> list[Difference]:
        found = [
            self.parts(alternative(old, index), (new,), path)
            for index in range(len(old.alternatives))
        ]
        if len(found) == 1:
            return found[0]
        enough = all if old.kind in SUMS else any
        return [] if enough(not each for each in found) else one("TYPE_CHANGED", path)

    def _same_kind(self, old: Part, new: Part, path: str) -> list[Difference]:
        match new.kind:
            case "string":
                return list(string_differences(old, new, path))
            case "number":
                return list(number_differences(old, new, path))
            case "enum":
                return list(enum_differences(old, new, path))
            case "object":
                return list(object_differences(old, new, path, self.nodes))
            case "array":
                return list(array_differences(old, new, path, self.nodes))
            case "not":
                return self._not(old, new, path)
            case "if":
                return self._equal(old, new, IF_WORDS, path)
            case "reference":
                return self._equal(old, new, REFERENCE_WORDS, path)
            case _:
                return []

    def _not(self, old: Part, new: Part, path: str) -> list[Difference]:
        """What is forbidden now must have been forbidden before, so the sides are swapped."""
        before, after = old.inner("not"), new.inner("not")
        if before is None or after is None:
            return []
        place = f"{path}/not"
        return one("NOT_TYPE_EXTENDED", place) if self.nodes(after, before, place) else []

    def _equal(self, old: Part, new: Part, words: tuple[str, ...], path: str) -> list[Difference]:
        """Keywords that are not interpreted must be equal."""
        same = all(old.words.get(each) == new.words.get(each) for each in words)
        return [] if same else one("TYPE_CHANGED", path)


def alternative(part: Part, index: int) -> Parts:
    """The parts of one alternative of a combined part."""
    found = part.alternatives[index]
    return parts_of(found) if isinstance(found, NestedSchema) else found
