"""Limits of untrusted Avro schemas and values: recursion, depth, arrays that take no bytes."""

from broker.errors import SchemaError
from broker.serde.schema.avro_types import RECORDS, AvroType, children

DEPTH_MAX = 200  # of types


def check_items(array: AvroType) -> None:
    """Refuse arrays whose items take no bytes, because their length is unlimited."""
    if array.kind == "array" and array.element is not None and _takes_no_bytes(array.element, {}):
        raise SchemaError(
            "the Avro schema has arrays whose items take no bytes, so their length is unlimited",
            hint="change the items of the array; a count would hold the same information",
        )


def depth_exceeds(value: object, limit: int) -> bool:
    """Whether dicts and lists are nested deeper than a limit; without recursion."""
    level = [value]
    for _ in range(limit + 1):
        below: list[object] = []
        for each in level:
            if isinstance(each, dict):
                below.extend(each.values())
            elif isinstance(each, list | tuple):
                below.extend(each)
        if not below:
            return False
        level = below
    return True


def is_recursive(root: AvroType) -> bool:
    """Whether a type contains itself; SchemaError if types are nested too deeply otherwise."""
    heights: dict[int, int | None] = {}  # None while it is being computed
    recursive = False

    def height(each: AvroType, depth: int) -> int:
        nonlocal recursive
        if id(each) in heights:
            known = heights[id(each)]
            recursive = recursive or known is None
            found = known or 0
        else:
            if depth > DEPTH_MAX:
                raise _too_deep()
            heights[id(each)] = None
            below = (height(child, depth + 1) for child in children(each))
            found = heights[id(each)] = 1 + max(below, default=0)
        if depth + found > DEPTH_MAX:
            raise _too_deep()
        return found

    height(root, 0)
    return recursive


def _too_deep() -> SchemaError:
    return SchemaError(f"the types of the Avro schema are nested more than {DEPTH_MAX} deep")


def check_finite(root: AvroType) -> None:
    """Refuse arrays whose items take no bytes, and records without a finite value."""
    empty: dict[int, bool | None] = {}  # None while it is being computed
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            waiting += children(each)
            _takes_no_bytes(each, empty)
            check_items(each)


def _takes_no_bytes(each: AvroType, empty: dict[int, bool | None]) -> bool:
    if each.kind not in RECORDS:
        return each.kind == "null" or (each.kind == "fixed" and each.size == 0)
    if id(each) not in empty:
        empty[id(each)] = None
        fields = [_takes_no_bytes(field.type, empty) for field in each.fields]
        empty[id(each)] = all(fields)
    found = empty[id(each)]
    if found is None:
        raise SchemaError(
            f'the Avro record "{each.name}" always contains itself, so it has no finite value',
            hint='make the field a union with "null", or an array',
        )
    return found
