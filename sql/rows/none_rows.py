"""NONE: no keys; nothing is written, and keys that are read are ignored."""

from collections.abc import Sequence

from broker.errors import SchemaError
from broker.serde.registry.api import SchemaRegistry
from broker.serde.serde import Serde
from sql.datatypes import Column
from sql.rows.row_format import Row, RowFormat, RowOptions


class NoneRows(RowFormat):
    """The format of keys without columns."""

    name = "NONE"

    def serde(
        self,
        columns: Sequence[Column],
        options: RowOptions,
        registry: SchemaRegistry | None = None,
    ) -> Serde[Row]:
        """A serde of nulls."""
        if columns:
            raise SchemaError(
                'format "NONE" can only be used where there are no columns',
                at=f'column "{columns[0].name}"',
                hint="use another format for the key",
            )
        if not options.is_key:
            raise SchemaError('format "NONE" is for keys only', hint="use another value format")
        return NullSerde()


class NullSerde:
    """Null in both directions, also for streams without key columns in other formats."""

    def serialize(self, topic: str, value: Row | None) -> bytes | None:
        """Always null."""
        return None

    def deserialize(self, topic: str, data: bytes | None) -> Row | None:
        """Always null."""
        return None
