"""JSON_SR: rows as JSON with the id of their JSON Schema as prefix.

Values are read as in the format JSON, regardless of the schema: as in ksqlDB, the schema is for
other readers, and for statements without columns. When writing with a given schema, its further
properties have their defaults, or null if they are nullable.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from broker.errors import SchemaError
from broker.serde.registry.api import SchemaRegistry
from broker.serde.schema.json_schema import JsonSchema
from broker.serde.schema.json_text import write_json
from broker.serde.schema.schema import ParsedSchema, Schema, SchemaKind
from broker.serde.serde import Serde
from broker.serde.wire_format import PREFIX_BYTES, frame
from sql.datatypes import Column
from sql.rows.columns_check import is_alone
from sql.rows.json_columns import json_columns, json_schema_text
from sql.rows.json_decoding import JsonRowDecoder, single_decoder
from sql.rows.json_encoding import row_encoder, single_encoder
from sql.rows.none_rows import NullSerde
from sql.rows.registered_rows import name_of_single, registered_rows
from sql.rows.row_format import Row, RowFormat, RowOptions


class JsonSrRows(RowFormat):
    """The format JSON_SR."""

    name = "JSON_SR"

    def serde(
        self,
        columns: Sequence[Column],
        options: RowOptions,
        registry: SchemaRegistry | None = None,
    ) -> Serde[Row]:
        """A serde of rows of these columns."""
        if options.is_key and not columns:
            return NullSerde()
        return registered_rows(_JsonCodec(tuple(columns), options), options, registry)

    def schema_of(self, columns: Sequence[Column], options: RowOptions) -> Schema:
        """The schema that ksqlDB registers for such columns."""
        text = json_schema_text(columns, wrapped=not is_alone(columns, options))
        return Schema(text, SchemaKind.JSON)

    def columns_of(self, schema: ParsedSchema, options: RowOptions) -> tuple[Column, ...]:
        """An object's properties; a key or unwrapped value is one column, ROWKEY or ROWVAL."""
        return json_columns(
            _json(schema), single=name_of_single(options), upper=options.schema_id is None
        )


@dataclass(frozen=True, slots=True)
class _JsonCodec:
    columns: tuple[Column, ...]
    options: RowOptions
    name: str = "JSON_SR"
    kind: SchemaKind = SchemaKind.JSON
    reads_any: bool = True

    def schema(self) -> Schema:
        return JSON_SR.schema_of(self.columns, self.options)

    def encoder(self, schema: ParsedSchema, schema_id: int) -> Callable[[Row], bytes | None]:
        prefix = frame(schema_id)
        if is_alone(self.columns, self.options):
            return _prefixed(single_encoder(self.columns[0]), prefix)
        encode = row_encoder(self.columns)
        rest = _further_properties(_json(schema), [each.name for each in self.columns])
        if not rest:
            return lambda row: prefix + encode(row)
        comma = b"," if self.columns else b""
        return lambda row: b"".join((prefix, encode(row)[:-1], comma, rest, b"}"))

    def decoder(self, schema: ParsedSchema | None) -> Callable[[bytes], Row | None]:
        decode: Callable[[bytes], Row | None]
        if is_alone(self.columns, self.options):
            decode = single_decoder(self.columns[0].type)
        else:
            decode = JsonRowDecoder(self.columns).decode
        return lambda data: decode(data[PREFIX_BYTES:])


def _prefixed(
    encode: Callable[[Row], bytes | None], prefix: bytes
) -> Callable[[Row], bytes | None]:
    def encode_with_prefix(row: Row) -> bytes | None:
        found = encode(row)
        return None if found is None else prefix + found

    return encode_with_prefix


def _further_properties(schema: JsonSchema, names: Sequence[str]) -> bytes:
    """The JSON of properties without a column, without the enclosing braces."""
    source = schema.source if isinstance(schema.source, dict) else {}
    properties = source.get("properties")
    if not isinstance(properties, Mapping):
        return b""  # the schema may be behind a $ref; then readers validate it
    missing = [each for each in names if each not in properties]
    if missing and source.get("additionalProperties") is False:
        raise SchemaError(
            f'the JSON schema lacks property "{missing[0]}"',
            hint=f"its properties are {', '.join(properties)}",
        )
    required = source.get("required")
    further: dict[str, object] = {}
    for name in properties.keys() - set(names):
        declared = properties[name]
        if isinstance(declared, Mapping) and "default" in declared:
            further[name] = declared["default"]
        elif _may_be_null(declared):
            further[name] = None
        elif isinstance(required, list) and name in required:
            raise SchemaError(
                f'the JSON schema requires a property "{name}" that has no column',
                hint="add a default to the property, or make it nullable",
            )
    ordered = {name: further[name] for name in properties if name in further}
    return write_json(ordered)[1:-1].encode()


def _may_be_null(declared: object) -> bool:
    if not isinstance(declared, Mapping):
        return False
    kinds = declared.get("type")
    if kinds == "null" or (isinstance(kinds, list) and "null" in kinds):
        return True
    choices = [declared.get("oneOf"), declared.get("anyOf")]
    return any(
        _may_be_null(each) for choice in choices if isinstance(choice, list) for each in choice
    )


def _json(schema: ParsedSchema) -> JsonSchema:
    if not isinstance(schema, JsonSchema):
        raise SchemaError(f"a schema of kind {schema.kind} is given to JSON_SR")
    return schema


JSON_SR = JsonSrRows()
