"""Long arrays of numbers: fastavro's loop in C takes half the time of generated Python."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

import fastavro

from broker.serde.avro_codec.wire import INT_END

LONG_FROM = 24  # items; a call of fastavro takes as long as reading this number

# From bytes, and the start of an array in them, to its items and its end.
ReadArray = Callable[[bytes, int], tuple[list[Any], int]]


def _reader(kind: str) -> ReadArray:
    schema = fastavro.parse_schema({"type": "array", "items": kind})
    read_array = fastavro.schemaless_reader

    def read(data: bytes, start: int) -> tuple[list[Any], int]:
        source = BytesIO(data)
        source.seek(start)
        items = read_array(source, schema, None)
        assert isinstance(items, list), "it is an array"
        # fastavro reads an int like a long.
        if kind == "int" and not -INT_END <= min(items) <= max(items) < INT_END:
            raise ValueError("the bytes do not match their Avro schema: invalid number")
        return items, source.tell()

    return read


LONG_ARRAYS: dict[str, ReadArray] = {
    kind: _reader(kind) for kind in ("int", "long", "float", "double")
}
