"""Place: where values of a column are in a schema."""

from dataclasses import dataclass

from sql.datatypes import Column, DataType


@dataclass(frozen=True, slots=True)
class Place:
    """A column's type, or columns, which are a row; the path is for errors.

    In Avro, `default` is the bytes of a field's default; an entry is one of a map, which Connect
    writes as an array.
    """

    type: DataType | tuple[Column, ...]
    path: str
    default: bytes | None = None
    is_entry: bool = False
