"""AVRO: rows as ksqlDB's Avro records; records with any schema can be read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broker.errors import SchemaError
from broker.serde.registry.api import SchemaRegistry
from broker.serde.schema.avro_schema import AvroSchema
from broker.serde.schema.avro_tree import avro_tree
from broker.serde.schema.avro_types import AvroType
from broker.serde.schema.schema import ParsedSchema, Schema, SchemaKind
from broker.serde.serde import Serde
from broker.serde.wire_format import PREFIX_BYTES, frame
from sql.datatypes import Column
from sql.rows.avro_columns import avro_columns, avro_text
from sql.rows.avro_decoding import row_reader, single_reader
from sql.rows.avro_encoding import row_writer, single_writer
from sql.rows.columns_check import is_alone
from sql.rows.none_rows import NullSerde
from sql.rows.registered_rows import name_of_single, registered_rows
from sql.rows.row_format import Row, RowFormat, RowOptions


class AvroRows(RowFormat):
    """The format AVRO."""

    name = "AVRO"

    def serde(
        self,
        columns: Sequence[Column],
        options: RowOptions,
        registry: SchemaRegistry | None = None,
    ) -> Serde[Row]:
        """A serde of rows of these columns."""
        if options.is_key and not columns:
            return NullSerde()
        return registered_rows(_AvroCodec(tuple(columns), options), options, registry)

    def schema_of(self, columns: Sequence[Column], options: RowOptions) -> Schema:
        """The schema that ksqlDB registers for such columns."""
        wrapped = not is_alone(columns, options)
        text = avro_text(columns, name=options.full_name, wrapped=wrapped)
        return Schema(text, SchemaKind.AVRO)

    def columns_of(self, schema: ParsedSchema, options: RowOptions) -> tuple[Column, ...]:
        """A record's fields; a key, or an unwrapped value, is a single column ROWKEY or ROWVAL."""
        return avro_columns(
            _tree(schema), single=name_of_single(options), upper=options.schema_id is None
        )


@dataclass(frozen=True, slots=True)
class _AvroCodec:
    columns: tuple[Column, ...]
    options: RowOptions
    name: str = "AVRO"
    kind: SchemaKind = SchemaKind.AVRO
    reads_any: bool = False

    def schema(self) -> Schema:
        return AVRO.schema_of(self.columns, self.options)

    def encoder(self, schema: ParsedSchema, schema_id: int) -> Callable[[Row], bytes | None]:
        node, prefix = _tree(schema), frame(schema_id)
        if is_alone(self.columns, self.options):
            return single_writer(node, self.columns[0], prefix)
        return row_writer(node, self.columns, prefix)

    def decoder(self, schema: ParsedSchema | None) -> Callable[[bytes], Row | None]:
        node = _tree(schema)
        if is_alone(self.columns, self.options):
            return single_reader(node, self.columns[0], skip=PREFIX_BYTES)
        return row_reader(node, self.columns, skip=PREFIX_BYTES)


def _tree(schema: ParsedSchema | None) -> AvroType:
    if not isinstance(schema, AvroSchema):
        raise SchemaError("AVRO is given a schema of another kind")
    return avro_tree(schema.root)


AVRO = AvroRows()
