"""as_schema: a schema in any of the accepted forms."""

import json
from collections.abc import Mapping, Sequence

from broker.errors import SchemaError
from broker.serde.schema.schema import Schema, SchemaKind

# A string, the parsed JSON of the string, or a schema with its references.
Declaration = Schema | str | Mapping[str, object] | Sequence[object]


def as_schema(declared: Declaration, kind: SchemaKind) -> Schema:
    """The schema; SchemaError if it is of another kind or is not JSON."""
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
