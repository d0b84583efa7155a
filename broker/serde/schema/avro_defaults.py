"""check_default: whether a field's default is a value of the field's type, in Avro's JSON."""

from broker.errors import SchemaError
from broker.serde.schema.avro_types import MISSING, RECORDS, AvroField, AvroType
from broker.serde.schema.json_text import write_json

WHOLE_NUMBERS = {"int": 2**31, "long": 2**63}
TEXTS = frozenset(("string", "bytes", "enum", "fixed"))
SHOWN_MAX = 200
# The type of a default may be recursive; a default is not deeper than its text is long.
DEPTH_MAX = 250


def check_default(record: str, field: AvroField) -> None:
    """Refuse a default that readers could not use."""
    if not fits(field.type, field.default, 0):
        text = write_json(field.default)
        raise SchemaError(
            f'invalid default for field "{field.name}" of record "{record}": '
            f'{text[:SHOWN_MAX]} is not a value of type "{field.type.name or field.type.kind}"'
        )


def fits(node: AvroType, value: object, depth: int) -> bool:
    """Whether a JSON value is a value of a type; for a union, of any branch."""
    kind = node.kind
    if depth > DEPTH_MAX:
        return False
    if kind in TEXTS:
        return isinstance(value, str)
    if kind in WHOLE_NUMBERS:
        limit = WHOLE_NUMBERS[kind]
        return type(value) is int and -limit <= value < limit
    if kind in RECORDS:
        return isinstance(value, dict) and record_fits(node, value, depth + 1)
    if kind == "union":
        return any(fits(each, value, depth) for each in node.branches)
    if kind in ("array", "map"):
        return elements_fit(node, value, depth + 1)
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    return type(value) in (int, float)


def record_fits(node: AvroType, value: dict[str, object], depth: int) -> bool:
    """Whether each field has a valid value, or a default."""
    for each in node.fields:
        inner = value.get(each.name, each.default)
        if inner is MISSING or not fits(each.type, inner, depth):
            return False
    return True


def elements_fit(node: AvroType, value: object, depth: int) -> bool:
    """Whether all elements of an array, or all values of a map, are valid."""
    if node.kind == "array":
        elements = value if isinstance(value, list) else None
    else:
        elements = list(value.values()) if isinstance(value, dict) else None
    if elements is None or node.element is None:
        return False
    element = node.element
    return all(fits(element, each, depth) for each in elements)
