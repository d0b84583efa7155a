"""Differences of anyOf and oneOf, which are sums, and of allOf, which is a product.

Each alternative of the old schema is matched with a different alternative of the new one.
"""

from collections.abc import Callable

from broker.serde.schema.compatibility.json_difference import Difference, one
from broker.serde.schema.compatibility.json_parts import NestedSchema, Part, Parts, parts_of
from broker.serde.schema.json_text import write_json

Compare = Callable[[Parts, Parts, str], list[Difference]]


def combined_differences(old: Part, new: Part, path: str, compare: Compare) -> list[Difference]:
    """The reasons why the old combined part may be valid where the new one is not."""
    if not criterion_holds(old, new):
        return one("COMBINED_TYPE_CHANGED", path)
    before, after = alternatives(old), alternatives(new)
    result: list[Difference] = []
    if len(before) < len(after) and new.kind == "allOf":
        result += one("PRODUCT_TYPE_EXTENDED", path)
    elif len(before) > len(after) and new.kind != "allOf":
        result += one("SUM_TYPE_NARROWED", path)
    fitting = [
        [
            column
            for column, each in enumerate(after)
            if not compare(given, each, f"{path}/{old.kind}/{row}")
        ]
        for row, given in enumerate(before)
    ]
    if matched(fitting) < min(len(before), len(after)):
        result += one("COMBINED_TYPE_SUBSCHEMAS_CHANGED", path)
    return result


def criterion_holds(old: Part, new: Part) -> bool:
    """Whether one keyword may replace another."""
    if old.kind == new.kind or new.kind == "anyOf":
        return True
    single = len(old.alternatives) == 1
    return single and (new.kind == "oneOf" or len(new.alternatives) == 1)


def alternatives(part: Part) -> list[Parts]:
    """The parts of each alternative; equal alternatives count once."""
    found: dict[object, Parts] = {}
    for index, each in enumerate(part.alternatives):
        if isinstance(each, NestedSchema):
            found.setdefault((each.base, write_json(each.schema, sort=True)), parts_of(each))
        else:
            found[index] = each
    return list(found.values())


def matched(fitting: list[list[int]]) -> int:
    """The maximum number of rows that can be matched with different columns."""
    owners: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column in fitting[row]:
            if column in tried:
                continue
            tried.add(column)
            if column not in owners or place(owners[column], tried):
                owners[column] = row
                return True
        return False

    return sum(place(row, set()) for row in range(len(fitting)))
