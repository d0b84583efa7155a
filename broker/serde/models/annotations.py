"""What a hint can say beyond its type: Annotated[int, Int32], Annotated[Decimal, ...] and so on."""

from dataclasses import dataclass
from enum import Enum

PRECISION_DEFAULT = 38
SCALE_DEFAULT = 9


@dataclass(frozen=True, slots=True)
class DecimalDigits:
    """How many digits a Decimal has in all, and how many of them after the point."""

    precision: int = PRECISION_DEFAULT
    scale: int = SCALE_DEFAULT

    def __post_init__(self) -> None:
        """Refuse what no decimal has."""
        if self.precision < 1 or not 0 <= self.scale <= self.precision:
            raise ValueError(
                f"a decimal cannot have {self.precision} digits, {self.scale} of them after "
                "the decimal point"
            )


@dataclass(frozen=True, slots=True)
class FieldNumber:
    """The number of a field in Protobuf; fields without one are counted on from the one before."""

    number: int


class Width(Enum):
    """Numbers of 32 bits instead of 64."""

    INT32 = "int32"
    FLOAT32 = "float32"


class Zone(Enum):
    """A datetime without a time zone, instead of one with it."""

    LOCAL = "local"


Int32 = Width.INT32
Float32 = Width.FLOAT32
LocalTime = Zone.LOCAL
