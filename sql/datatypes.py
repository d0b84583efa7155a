"""Types of columns, with their SQL names, and the Python values of each type.

    BOOLEAN bool    INT, BIGINT int    DOUBLE float    DECIMAL(p, s) Decimal    STRING str
    BYTES bytes     TIME int, ms of the day    DATE int, days since 1970
    TIMESTAMP int, ms since 1970
    ARRAY<T> list   MAP<K, V> dict     STRUCT<name T, ...> dict by field name

Times are integers, because their range is Java's and not that of datetime. None is null for all
types.
"""

from dataclasses import dataclass
from enum import Enum

PRECISION_MAX = 2**31 - 1


class Primitive(Enum):
    """Types without parameters."""

    BOOLEAN = "BOOLEAN"
    INT = "INTEGER"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BYTES = "BYTES"
    TIME = "TIME"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"

    def __str__(self) -> str:
        """The SQL name."""
        return self.value


@dataclass(frozen=True, slots=True)
class DecimalType:
    """Numbers with an exact number of digits."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        """Refuse invalid precisions and scales."""
        if not 1 <= self.precision <= PRECISION_MAX or not 0 <= self.scale <= self.precision:
            raise ValueError(
                f"DECIMAL({self.precision}, {self.scale}) has an invalid precision or scale"
            )

    def __str__(self) -> str:
        """The SQL name."""
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Lists of values of one type."""

    element: "DataType"

    def __str__(self) -> str:
        """The SQL name."""
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """Values of one type by keys of another."""

    key: "DataType"
    value: "DataType"

    def __str__(self) -> str:
        """The SQL name."""
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Field:
    """A named value of a struct."""

    name: str
    type: "DataType"

    def __str__(self) -> str:
        """The SQL name."""
        quoted = self.name.replace("`", "``")
        return f"`{quoted}` {self.type}"


@dataclass(frozen=True, slots=True)
class StructType:
    """Named values of several types."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        """The SQL name."""
        return f"STRUCT<{', '.join(map(str, self.fields))}>"


DataType = Primitive | DecimalType | ArrayType | MapType | StructType

BOOLEAN = Primitive.BOOLEAN
INT = Primitive.INT
BIGINT = Primitive.BIGINT
DOUBLE = Primitive.DOUBLE
STRING = Primitive.STRING
BYTES = Primitive.BYTES
TIME = Primitive.TIME
DATE = Primitive.DATE
TIMESTAMP = Primitive.TIMESTAMP


@dataclass(frozen=True, slots=True)
class Column:
    """A named value of a row."""

    name: str
    type: DataType


def is_numeric(type_: DataType) -> bool:
    """Whether it supports arithmetic."""
    return type_ in (INT, BIGINT, DOUBLE) or isinstance(type_, DecimalType)


def decimal_of(type_: DataType) -> DecimalType:
    """The decimal type that holds every value of an integer type."""
    if isinstance(type_, DecimalType):
        return type_
    assert type_ in (INT, BIGINT), f"{type_} is not an exact number"
    return DecimalType(10, 0) if type_ is INT else DecimalType(19, 0)
