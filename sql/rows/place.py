"""Place: the type and path of a column's values in a schema."""

from dataclasses import dataclass

from sql.datatypes import Column, DataType


@dataclass(frozen=True, slots=True)
class Place:
    """A column's type, or the columns of a row; the path is for errors.

    In Avro, `default` is the encoded default of a field; `is_entry` is an entry of a map, which
    Connect writes as an array.
    """

    type: DataType | tuple[Column, ...]
    path: str
    default: bytes | None = None
    is_entry: bool = False
