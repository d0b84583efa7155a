"""Schema: the columns of a stream or table."""

from dataclasses import dataclass

from sql.datatypes import BIGINT, INT, Column, DataType

# Columns that every row has; windowed rows have the bounds of their window, too.
ROWTIME = Column("ROWTIME", BIGINT)
ROWPARTITION = Column("ROWPARTITION", INT)
ROWOFFSET = Column("ROWOFFSET", BIGINT)
WINDOWSTART = Column("WINDOWSTART", BIGINT)
WINDOWEND = Column("WINDOWEND", BIGINT)
PSEUDO_COLUMNS = (ROWTIME, ROWPARTITION, ROWOFFSET)
WINDOW_BOUNDS = (WINDOWSTART, WINDOWEND)
RESERVED_NAMES = frozenset(each.name for each in (*PSEUDO_COLUMNS, *WINDOW_BOUNDS))


@dataclass(frozen=True, slots=True)
class HeaderColumn:
    """A column that holds a record's headers: all of them, or the last one of a key."""

    name: str
    type: DataType
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """Key columns, value columns and columns of headers."""

    key: tuple[Column, ...]
    value: tuple[Column, ...]
    headers: tuple[HeaderColumn, ...] = ()

    def __str__(self) -> str:
        """As SQL shows it: `K` STRING KEY, `V` INTEGER."""
        return ", ".join(
            [
                *(f"`{each.name}` {each.type} KEY" for each in self.key),
                *(f"`{each.name}` {each.type}" for each in self.value),
            ]
        )
