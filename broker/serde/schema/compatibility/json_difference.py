"""Difference: a reason why values of one JSON schema may be invalid for another.

Only reasons that make schemas incompatible are here; the names are Confluent's.
"""

from dataclasses import dataclass

ADDED = "the keyword at path '{path}' in the new schema is not present in the old schema"
MORE = "the value at path '{path}' in the new schema is more than its value in the old schema"
LESS = "the value at path '{path}' in the new schema is less than its value in the old schema"
OTHER = "the value at path '{path}' in the new schema is different from the old schema"
FEWER_ELEMENTS = (
    "an array or combined type at path '{path}' has fewer elements in the new schema "
    "than in the old schema"
)
MORE_ELEMENTS = (
    "an array or combined type at path '{path}' has more elements in the new schema "
    "than in the old schema"
)
OTHER_TYPE = "a type at path '{path}' is different between the new schema and the old schema"
ADDED_TO_OPEN = (
    "the old schema has an open content model, and the new schema has a property or item "
    "at path '{path}' which is missing in the old schema"
)
ADDED_UNCOVERED = (
    "the new schema has a property or item at path '{path}' which is missing in the old schema "
    "and is not covered by its partially open content model"
)
REMOVED_UNCOVERED = (
    "a property or item is missing in the new schema but present at path '{path}' "
    "in the old schema and is not covered by its partially open content model"
)
REMOVED_FROM_CLOSED = (
    "the new schema has a closed content model and is missing a property or item present "
    "at path '{path}' in the old schema"
)
REQUIRED_ADDED = (
    "the new schema has a required property at path '{path}' which is missing in the old schema, "
    "whose content model is not open"
)

DESCRIPTIONS = {
    "SCHEMA_ADDED": ADDED,
    "TYPE_CHANGED": OTHER_TYPE,
    "TYPE_NARROWED": OTHER_TYPE,
    "COMBINED_TYPE_CHANGED": OTHER_TYPE,
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED": OTHER_TYPE,
    "ENUM_ARRAY_CHANGED": OTHER_TYPE,
    "ENUM_ARRAY_NARROWED": FEWER_ELEMENTS,
    "SUM_TYPE_NARROWED": FEWER_ELEMENTS,
    "PRODUCT_TYPE_EXTENDED": MORE_ELEMENTS,
    "NOT_TYPE_EXTENDED": MORE_ELEMENTS,
    "DEPENDENCY_ARRAY_EXTENDED": MORE_ELEMENTS,
    "DEPENDENCY_ARRAY_CHANGED": OTHER,
    "DEPENDENCY_ARRAY_ADDED": ADDED,
    "DEPENDENCY_SCHEMA_ADDED": ADDED,
    "PATTERN_ADDED": ADDED,
    "PATTERN_CHANGED": OTHER,
    "MULTIPLE_OF_ADDED": ADDED,
    "MULTIPLE_OF_EXPANDED": MORE,
    "MULTIPLE_OF_CHANGED": OTHER,
    "UNIQUE_ITEMS_ADDED": ADDED,
    "REQUIRED_ATTRIBUTE_ADDED": ADDED,
    "ADDITIONAL_PROPERTIES_REMOVED": ADDED,
    "ADDITIONAL_PROPERTIES_NARROWED": FEWER_ELEMENTS,
    "UNEVALUATED_PROPERTIES_REMOVED": ADDED,
    "UNEVALUATED_PROPERTIES_NARROWED": FEWER_ELEMENTS,
    "ADDITIONAL_ITEMS_REMOVED": ADDED,
    "ADDITIONAL_ITEMS_NARROWED": FEWER_ELEMENTS,
    "UNEVALUATED_ITEMS_REMOVED": ADDED,
    "UNEVALUATED_ITEMS_NARROWED": FEWER_ELEMENTS,
    "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": ADDED_TO_OPEN,
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": ADDED_UNCOVERED,
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": REMOVED_UNCOVERED,
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": REMOVED_FROM_CLOSED,
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": REQUIRED_ADDED,
    "ITEM_ADDED_TO_OPEN_CONTENT_MODEL": ADDED_TO_OPEN,
    "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": ADDED_UNCOVERED,
    "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": REMOVED_UNCOVERED,
    "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL": REMOVED_FROM_CLOSED,
    **{
        f"{name}_{change}": text
        for name in ("MAX_LENGTH", "MAXIMUM", "EXCLUSIVE_MAXIMUM", "MAX_PROPERTIES", "MAX_ITEMS")
        for change, text in (("ADDED", ADDED), ("DECREASED", LESS))
    },
    **{
        f"{name}_{change}": text
        for name in ("MIN_LENGTH", "MINIMUM", "EXCLUSIVE_MINIMUM", "MIN_PROPERTIES", "MIN_ITEMS")
        for change, text in (("ADDED", ADDED), ("INCREASED", MORE))
    },
    "MAX_CONTAINS_ADDED": ADDED,
    "MAX_CONTAINS_DECREASED": LESS,
    "MIN_CONTAINS_ADDED": ADDED,
    "MIN_CONTAINS_INCREASED": MORE,
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason and its path, which starts with `#`."""

    kind: str
    path: str

    def __str__(self) -> str:
        """The message of Confluent's registry."""
        path = self.path if self.path != "#" else "#/"
        text = DESCRIPTIONS[self.kind].format(path=path)
        return f'{{errorType:"{self.kind}", description:"{text[0].upper()}{text[1:]}"}}'


def one(kind: str, path: str) -> list[Difference]:
    """A single reason."""
    return [Difference(kind, path)]
