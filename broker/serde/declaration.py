"""as_schema: a schema in the forms in which people give one."""

import json
from collections.abc import Mapping, Sequence

from broker.errors import SchemaError
from broker.serde.schema.schema import Schema, SchemaKind

# A text, the JSON that the text would be, or a schema with its references.
Declaration = Schema | str | Mapping[str, object] | Sequence[object]


def as_schema(declared: Declaration, kind: SchemaKind) -> Schema:
    """The schema that was meant; SchemaError when it is of another kind or no JSON."""
    if isinstance(declared, Schema):
        if declared.kind is not kind:
            raise SchemaError(
                f"the schema has type {declared.kind}, but {kind} is needed",
                hint=f"give it as Schema(text, SchemaKind.{kind.name}), or use another serde",
            )
        return declared
    if isinstance(declared, str):
        return Schema(declared, kind)
    try:
        return Schema(json.dumps(declared), kind)
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(
            f"the schema is not JSON: {error}", hint="pass its JSON text, or dicts and lists"
        ) from error
