"""AvroType: an Avro schema as a tree with resolved names; a recursive record is a cycle."""

from collections.abc import Iterator
from dataclasses import dataclass, field

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
RECORDS = frozenset(("record", "error"))
NAMED = RECORDS | {"enum", "fixed"}
CONNECT_ENTRY = "io.confluent.connect.avro.MapEntry"


class Missing:
    """A missing default; None would be the default null."""

    def __repr__(self) -> str:
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
    """One type; fields that only other kinds have are empty.

    `kind` is a primitive's name, record, error, enum, fixed, array, map or union; `name` and
    aliases are full names. `properties` are those that Avro does not define, in the order of the
    text, and logical types. `element` is that of arrays and maps.
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
    def logical(self) -> str:
        """The name of the logical type, if there is one."""
        found = self.properties.get("logicalType")
        return found if isinstance(found, str) else ""

    @property
    def null_at(self) -> int | None:
        """The index of null in a union."""
        return next((at for at, each in enumerate(self.branches) if each.kind == "null"), None)

    @property
    def present(self) -> "AvroType | None":
        """The type of a union with null and one other type; None for all other types."""
        rest = [each for each in self.branches if each.kind != "null"]
        return rest[0] if len(rest) == 1 and len(self.branches) == 2 else None

    @property
    def decimal(self) -> tuple[int, int] | None:
        """Precision and scale of a valid decimal; Avro ignores invalid logical types."""
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
    """The number of decimal digits that always fit into this number of bytes."""
    # log10(2) as a fraction: exact for any possible size, and without huge powers.
    return max((8 * size - 1) * 30102999566398 // 10**14, 0)


def children(node: AvroType) -> Iterator[AvroType]:
    """The types directly below a type."""
    if node.element is not None:
        yield node.element
    yield from node.branches
    for each in node.fields:
        yield each.type


def is_map_entry(node: AvroType) -> bool:
    """Whether a record is an entry of a map, which Connect writes as an array of entries."""
    return node.kind in RECORDS and (
        node.properties.get("connect.internal.type") == "MapEntry" or node.name == CONNECT_ENTRY
    )


def branch_name(node: AvroType) -> str:
    """The name of a union's branch as a field: without the namespace."""
    return node.name.rpartition(".")[2] or node.kind
