"""Schema: the columns of a stream or table."""

from dataclasses import dataclass

from sql.datatypes import (
    BIGINT,
    BYTES,
    INT,
    STRING,
    ArrayType,
    Column,
    DataType,
    Field,
    StructType,
)

# Columns that every row has; windowed rows have the bounds of their window, too.
ROWTIME = Column("ROWTIME", BIGINT)
ROWPARTITION = Column("ROWPARTITION", INT)
ROWOFFSET = Column("ROWOFFSET", BIGINT)
WINDOWSTART = Column("WINDOWSTART", BIGINT)
WINDOWEND = Column("WINDOWEND", BIGINT)
PSEUDO_COLUMNS = (ROWTIME, ROWPARTITION, ROWOFFSET)
WINDOW_BOUNDS = (WINDOWSTART, WINDOWEND)
RESERVED_NAMES = frozenset(each.name for each in (*PSEUDO_COLUMNS, *WINDOW_BOUNDS))

# All headers of a record, in their order.
HEADERS_TYPE = ArrayType(StructType((Field("KEY", STRING), Field("VALUE", BYTES))))


@dataclass(frozen=True, slots=True)
class HeaderColumn:
    """A column that holds a record's headers: all of them, or the last one of a key."""

    name: str
    type: DataType
    key: str | None = None
    # Where it was declared among the other columns; at the end by default.
    place: int | None = None

    @property
    def role(self) -> str:
        """As SQL writes it after the type."""
        return "HEADERS" if self.key is None else f"HEADER('{self.key}')"


@dataclass(frozen=True, slots=True)
class Schema:
    """Key columns, value columns and columns of headers."""

    key: tuple[Column, ...]
    value: tuple[Column, ...]
    headers: tuple[HeaderColumn, ...] = ()

    def __str__(self) -> str:
        """As SQL shows it: `K` STRING KEY, `V` INTEGER."""
        shown = [
            *(f"`{each.name}` {each.type} KEY" for each in self.key),
            *(f"`{each.name}` {each.type}" for each in self.value),
        ]
        for each in self.headers:
            place = len(shown) if each.place is None else each.place
            shown.insert(place, f"`{each.name}` {each.type} {each.role}")
        return ", ".join(shown)

    @property
    def declared(self) -> tuple[Column, ...]:
        """All columns, in the order of the statement; key columns come first."""
        found = [*self.key, *self.value]
        for each in self.headers:
            place = len(found) if each.place is None else each.place
            found.insert(place, Column(each.name, each.type))
        return tuple(found)

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, in the order of SELECT *."""
        headers = (Column(each.name, each.type) for each in self.headers)
        return (*self.key, *self.value, *headers)
