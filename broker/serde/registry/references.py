"""resolve_references: the text of all schemas that a schema references."""

from broker.errors import SchemaError
from broker.serde.registry.api import SchemaRegistry
from broker.serde.schema.schema import Resolved, Schema

DEPTH_MAX = 50
SCHEMAS_MAX = 1_000


def resolve_references(registry: SchemaRegistry, schema: Schema) -> Resolved:
    """Schema text by reference name; each schema comes after the schemas it references.

    If a name is used for several schemas, the first is used, as in Confluent's clients.
    """
    resolved: dict[str, str] = {}
    _add(registry, schema, resolved, 0)
    return resolved


def _add(registry: SchemaRegistry, schema: Schema, resolved: dict[str, str], depth: int) -> None:
    if depth > DEPTH_MAX:
        raise SchemaError(
            f"references between schemas are nested more than {DEPTH_MAX} deep",
            hint="check whether two schemas refer to each other",
        )
    for reference in schema.references:
        if reference.name in resolved:
            continue
        found = registry.version(reference.subject, reference.version).schema
        _add(registry, found, resolved, depth + 1)
        resolved.setdefault(reference.name, found.text)
        if len(resolved) > SCHEMAS_MAX:
            raise SchemaError(f"a schema refers to more than {SCHEMAS_MAX} others")
