"""RowFormat: how the columns of a key or value become bytes; the interface of all formats.

A row is a tuple with one value for each column, in their order; sql/datatypes.py says
which Python value stands for which type. A null record is None, never a row of nulls.
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
    """How Protobuf says that a field is null: not at all, as `optional`, or in a wrapper."""

    NONE = "NONE"
    OPTIONAL = "OPTIONAL"
    WRAPPER = "WRAPPER"


@dataclass(frozen=True, slots=True)
class RowOptions:
    """What a statement's WITH clause says about one format."""

    is_key: bool = False
    wrapped: bool = True  # whether a single column is a record of one field
    delimiter: str = ","
    full_name: str | None = None  # of the Avro record or Protobuf message
    schema_id: int | None = None  # write with, or read, just this registered schema
    nullable: Nullable = Nullable.NONE


class RowFormat:
    """One format. Wrong columns raise SchemaError when the serde is made, with the column named."""

    name: ClassVar[str]  # as SQL names it

    def serde(
        self,
        columns: Sequence[Column],
        options: RowOptions,
        registry: SchemaRegistry | None = None,
    ) -> Serde[Row]:
        """A serde of rows of these columns; one with a schema registers it at the first write."""
        raise NotImplementedError

    def schema_of(self, columns: Sequence[Column], options: RowOptions) -> Schema:
        """The schema that rows of these columns are registered with."""
        raise self._without_schemas()

    def columns_of(self, schema: ParsedSchema, options: RowOptions) -> tuple[Column, ...]:
        """The columns that a registered schema stands for."""
        raise self._without_schemas()

    def _without_schemas(self) -> SchemaError:
        return SchemaError(
            f'format "{self.name}" does not use a schema registry',
            hint="declare the columns in the statement",
        )
