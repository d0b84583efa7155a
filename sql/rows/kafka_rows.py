"""KAFKA: a single column as Kafka's own serializers write it."""

from collections.abc import Callable, Sequence
from typing import Any

from broker.errors import SchemaError
from broker.serde.primitives import BytesSerde, DoubleSerde, IntegerSerde, LongSerde, StringSerde
from broker.serde.registry.api import SchemaRegistry
from broker.serde.serde import Serde, cannot_encode
from sql.datatypes import BIGINT, BYTES, DOUBLE, INT, STRING, Column, DataType
from sql.rows.columns_check import unsupported_type
from sql.rows.none_rows import NullSerde
from sql.rows.row_format import Row, RowFormat, RowOptions

# Any: each serde has its own type of values.
SERDES: dict[DataType, Serde[Any]] = {
    INT: IntegerSerde(),
    BIGINT: LongSerde(),
    DOUBLE: DoubleSerde(),
    STRING: StringSerde(),
    BYTES: BytesSerde(),
}


class KafkaRows(RowFormat):
    """The plain bytes of a number or a string."""

    name = "KAFKA"

    def serde(
        self,
        columns: Sequence[Column],
        options: RowOptions,
        registry: SchemaRegistry | None = None,
    ) -> Serde[Row]:
        """A serde of rows of one column, or of nulls if there is none."""
        if not columns:
            return NullSerde()
        if len(columns) > 1:
            listed = ", ".join(f"`{each.name}` {each.type}" for each in columns)
            raise SchemaError(
                'format "KAFKA" supports only a single column',
                at=f"columns {listed}",
                hint="use another format, such as JSON or DELIMITED",
            )
        if columns[0].type not in SERDES:
            raise unsupported_type(self.name, columns[0])
        return KafkaRowSerde(SERDES[columns[0].type])


class KafkaRowSerde:
    """Rows of one column; a null column is a null record."""

    # Any: each serde has its own type of values.
    def __init__(self, inner: Serde[Any]) -> None:
        self._serialize = inner.serialize
        self._deserialize = inner.deserialize
        self._is_text = isinstance(inner, StringSerde)

    def serialize(self, topic: str, value: Row | None) -> bytes | None:
        """The bytes of the only value."""
        if value is None:
            return None
        if len(value) != 1:
            raise cannot_encode(topic, "KAFKA", f"{len(value)} values for one column")
        return self._serialize(topic, value[0])

    def deserialize(self, topic: str, data: bytes | None) -> Row | None:
        """A row of the only value."""
        return None if data is None else (self._deserialize(topic, data),)

    def encoder(self, topic: str) -> Callable[[Row], bytes | None]:
        """The equivalent of `serialize` for a topic."""
        serialize = self._serialize

        def encode(row: Row) -> bytes | None:
            (value,) = row
            return serialize(topic, value)

        return _encode_text if self._is_text else encode

    def decoder(self, topic: str) -> Callable[[bytes], Row]:
        """The equivalent of `deserialize` for a topic."""
        deserialize = self._deserialize
        if self._is_text:
            return lambda data: (str(data, "utf-8"),)
        return lambda data: (deserialize(topic, data),)

    def chunk_decoder(self, topic: str) -> Callable[[Sequence[bytes]], list[Row | None]]:
        """The equivalent of `decoder` for many values."""
        if self._is_text:
            return lambda data: list(zip(map(bytes.decode, data)))
        decode = self.decoder(topic)
        return lambda data: list(map(decode, data))


# Any: the row of a string, which is not validated.
def _encode_text(row: Any) -> bytes | None:
    (text,) = row
    return None if text is None else text.encode()
