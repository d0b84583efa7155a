"""JSON: an object with a field for each column, or the unwrapped value of a single column."""

from collections.abc import Callable, Sequence

import msgspec

from broker.serde.registry.api import SchemaRegistry
from broker.serde.serde import Serde, cannot_encode
from sql.datatypes import Column
from sql.rows.columns_check import check_map_keys, is_alone
from sql.rows.json_decoding import JsonRowDecoder, single_decoder
from sql.rows.json_encoding import row_encoder, single_encoder
from sql.rows.mismatch import undecodable, unencodable
from sql.rows.none_rows import NullSerde
from sql.rows.row_format import Row, RowFormat, RowOptions


class JsonRows(RowFormat):
    """JSON without a schema."""

    name = "JSON"

    def serde(
        self,
        columns: Sequence[Column],
        options: RowOptions,
        registry: SchemaRegistry | None = None,
    ) -> Serde[Row]:
        """A serde of rows of these columns."""
        check_map_keys(self.name, columns)
        if options.is_key and not columns:
            return NullSerde()
        return JsonRowSerde(columns, alone=is_alone(columns, options))


class JsonRowSerde:
    """Rows as JSON; JSON's null is a null record, or a null in an unwrapped column."""

    def __init__(self, columns: Sequence[Column], *, alone: bool) -> None:
        self._encode: Callable[[Row], bytes | None]
        self._decode: Callable[[bytes], Row | None]
        self._decode_chunk: Callable[[Sequence[bytes]], list[Row | None]]
        if alone:
            self._encode = single_encoder(columns[0])
            self._decode = decode = single_decoder(columns[0].type)
            self._decode_chunk = lambda data: list(map(decode, data))
        else:
            self._encode = row_encoder(columns)
            decoder = JsonRowDecoder(columns)
            self._decode, self._decode_chunk = decoder.decode, decoder.decode_chunk

    def encoder(self, topic: str) -> Callable[[Row], bytes | None]:
        """The equivalent of `serialize` for any topic."""
        return self._encode

    def decoder(self, topic: str) -> Callable[[bytes], Row | None]:
        """The equivalent of `deserialize` for any topic."""
        return self._decode

    def chunk_decoder(self, topic: str) -> Callable[[Sequence[bytes]], list[Row | None]]:
        """The equivalent of `decoder` for many values."""
        return self._decode_chunk

    def serialize(self, topic: str, value: Row | None) -> bytes | None:
        """The JSON of a row."""
        if value is None:
            return None
        try:
            return self._encode(value)
        except ValueError as error:
            raise unencodable(topic, "JSON", error) from error
        except (TypeError, RecursionError, msgspec.MsgspecError) as error:
            raise cannot_encode(topic, "JSON", str(error)) from error

    def deserialize(self, topic: str, data: bytes | None) -> Row | None:
        """The row of a JSON object."""
        if data is None:
            return None
        try:
            return self._decode(data)
        except ValueError as error:
            raise undecodable(topic, "JSON", error) from error
