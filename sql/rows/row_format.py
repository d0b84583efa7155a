"""RowFormat: the conversion of key and value columns to bytes; the interface of all formats.

A row is a tuple with one value per column, in their order; sql/datatypes.py lists the Python values
of each type. A null record is None, never a row of nulls.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from broker.errors import SchemaError
from broker.serde.registry.api import SchemaRegistry
from broker.serde.schema.schema import ParsedSchema, Schema
from broker.serde.serde import Serde
from sql.datatypes import Column

Row = tuple[object, ...]


class Nullable(Enum):
    """The representation of null fields in Protobuf: none, `optional`, or a wrapper."""

    NONE = "NONE"
    OPTIONAL = "OPTIONAL"
    WRAPPER = "WRAPPER"


@dataclass(frozen=True, slots=True)
class RowOptions:
    """The options of one format in a WITH clause."""

    is_key: bool = False
    wrapped: bool = True  # whether a single column is a record of one field
    delimiter: str = ","
    full_name: str | None = None  # of the Avro record or Protobuf message
    schema_id: int | None = None  # write with, or read, only this registered schema
    nullable: Nullable = Nullable.NONE


class RowFormat:
    """One format. Unsupported columns raise SchemaError when the serde is created."""

    name: ClassVar[str]  # as SQL names it

    def serde(
        self,
        columns: Sequence[Column],
        options: RowOptions,
        registry: SchemaRegistry | None = None,
    ) -> Serde[Row]:
        """A serde of rows with these columns; a schema is registered at the first write."""
        raise NotImplementedError

    def schema_of(self, columns: Sequence[Column], options: RowOptions) -> Schema:
        """The schema to register for rows with these columns."""
        raise self._without_schemas()

    def columns_of(self, schema: ParsedSchema, options: RowOptions) -> tuple[Column, ...]:
        """The columns of a registered schema."""
        raise self._without_schemas()

    def _without_schemas(self) -> SchemaError:
        return SchemaError(
            f'format "{self.name}" does not use a schema registry',
            hint="declare the columns in the statement",
        )
