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

# The columns of every row; windowed rows also have the bounds of their window.
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
    """A column with a record's headers: all of them, or the last one with a key."""

    name: str
    type: DataType
    key: str | None = None
    # Its position in the declaration of columns; by default at the end.
    place: int | None = None

    @property
    def role(self) -> str:
        """The keyword after the type."""
        return "HEADERS" if self.key is None else f"HEADER('{self.key}')"


@dataclass(frozen=True, slots=True)
class Schema:
    """Key columns, value columns and columns of headers."""

    key: tuple[Column, ...]
    value: tuple[Column, ...]
    headers: tuple[HeaderColumn, ...] = ()

    def __str__(self) -> str:
        """The SQL form: `K` STRING KEY, `V` INTEGER."""
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
