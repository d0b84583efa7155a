"""parse_schema: parses and validates a schema of any kind."""

from typing import assert_never

from broker.serde.schema.avro_schema import parse_avro
from broker.serde.schema.json_schema import parse_json_schema
from broker.serde.schema.protobuf_schema import parse_protobuf
from broker.serde.schema.schema import ParsedSchema, Resolved, Schema, SchemaKind

NOTHING: Resolved = {}


def parse_schema(schema: Schema, resolved: Resolved = NOTHING) -> ParsedSchema:
    """Parse a schema; SchemaError if it is invalid."""
    match schema.kind:
        case SchemaKind.AVRO:
            return parse_avro(schema.text, resolved)
        case SchemaKind.JSON:
            return parse_json_schema(schema.text, resolved)
        case SchemaKind.PROTOBUF:
            return parse_protobuf(schema.text, resolved)
        case _:
            assert_never(schema.kind)
