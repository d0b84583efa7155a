"""Annotations of type hints: Annotated[int, Int32], Annotated[Decimal, ...] and so on."""

from dataclasses import dataclass
from enum import Enum

PRECISION_DEFAULT = 38
SCALE_DEFAULT = 9


@dataclass(frozen=True, slots=True)
class DecimalDigits:
    """The number of digits of a Decimal, and how many of them are after the decimal point."""

    precision: int = PRECISION_DEFAULT
    scale: int = SCALE_DEFAULT

    def __post_init__(self) -> None:
        """Refuse impossible numbers of digits."""
        if self.precision < 1 or not 0 <= self.scale <= self.precision:
            raise ValueError(
                f"a decimal cannot have {self.precision} digits, {self.scale} of them after "
                "the decimal point"
            )


@dataclass(frozen=True, slots=True)
class FieldNumber:
    """The number of a field in Protobuf; fields without one continue from the previous one."""

    number: int


class Width(Enum):
    """Numbers of 32 bits instead of 64."""

    INT32 = "int32"
    FLOAT32 = "float32"


class Zone(Enum):
    """A datetime without a time zone."""

    LOCAL = "local"


Int32 = Width.INT32
Float32 = Width.FLOAT32
LocalTime = Zone.LOCAL
