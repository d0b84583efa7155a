"""AvroType: an Avro schema as a tree whose names are resolved; a recursive record is a circle."""

from collections.abc import Iterator
from dataclasses import dataclass, field

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
RECORDS = frozenset(("record", "error"))
NAMED = RECORDS | {"enum", "fixed"}


class Missing:
    """A default that is not there; None would be the default null."""

    def __repr__(self) -> str:
        """As it shows in failures of tests."""
        return "MISSING"


MISSING = Missing()


@dataclass(slots=True, eq=False)
class AvroField:
    """A field of a record; `default` is a JSON value or MISSING."""

    name: str
    type: "AvroType"
    default: object = MISSING
    doc: str | None = None
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    properties: dict[str, object] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class AvroType:
    """One type; what other kinds have and this one has not is empty.

    `kind` is a primitive's name, record, error, enum, fixed, array, map or union; `name` is full;
    aliases are full too. `properties` are those that Avro does not know, in the text's order, and
    logical types. `element` is of arrays and maps.
    """

    kind: str
    name: str = ""
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    fields: tuple[AvroField, ...] = ()
    symbols: tuple[str, ...] = ()
    symbol_default: str | None = None
    size: int = 0
    element: "AvroType | None" = None
    branches: tuple["AvroType", ...] = ()
    properties: dict[str, object] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """The part of the name before its last dot."""
        return self.name.rpartition(".")[0]

    @property
    def decimal(self) -> tuple[int, int] | None:
        """Precision and scale of a valid decimal; Avro ignores logical types that are wrong."""
        if self.kind not in ("bytes", "fixed") or self.properties.get("logicalType") != "decimal":
            return None
        precision, scale = self.properties.get("precision"), self.properties.get("scale", 0)
        if type(precision) is not int or type(scale) is not int:
            return None
        if precision <= 0 or not 0 <= scale <= precision:
            return None
        if self.kind == "fixed" and precision > digits_max(self.size):
            return None
        return precision, scale


def digits_max(size: int) -> int:
    """How many decimal digits always fit in so many bytes of two's complement."""
    # log10(2) as a fraction: exact beyond any size a fixed can have, and without huge powers.
    return max((8 * size - 1) * 30102999566398 // 10**14, 0)


def children(node: AvroType) -> Iterator[AvroType]:
    """The types right under a type."""
    if node.element is not None:
        yield node.element
    yield from node.branches
    for each in node.fields:
        yield each.type
