"""AvroNode: an Avro schema as rows need it; unions with null are flags, Connect's maps are maps.

Recursive schemas have no such tree, and a tree is bounded in nodes, as a short text of names that
name each other can stand for a very large one.
"""

from dataclasses import dataclass, replace

from broker.errors import SchemaError
from broker.serde.schema.avro_types import MISSING, RECORDS, AvroType

NODES_MAX = 20_000
DEPTH_MAX = 100
CONNECT_ENTRY = "io.confluent.connect.avro.MapEntry"


@dataclass(frozen=True, slots=True)
class NodeField:
    """A record's field; `default` is a JSON value or MISSING."""

    name: str
    type: "AvroNode"
    default: object = MISSING


@dataclass(frozen=True, slots=True)
class AvroNode:
    """One type: `kind` is Avro's own, or "entries": a map as an array of records.

    `item` is an array's, or the value of a map or entry; `key` is of an entry. A union has one
    field for each branch that is not null.
    """

    kind: str
    null_at: int | None = None  # the place of null in a union
    logical: str = ""
    precision: object = None
    scale: object = None
    size: int = 0
    name: str = ""
    symbols: tuple[str, ...] = ()
    item: "AvroNode | None" = None
    key: "AvroNode | None" = None
    fields: tuple[NodeField, ...] = ()


def avro_tree(root: AvroType) -> AvroNode:
    """The tree of a schema; SchemaError when it has none."""
    return _Walk().node(root)


class _Walk:
    """Follows a schema's types; `open` are the records that are being followed."""

    def __init__(self) -> None:
        self.open: list[AvroType] = []
        self.nodes = 0
        self.depth = 0

    def node(self, given: AvroType) -> AvroNode:
        self.nodes += 1
        if self.nodes > NODES_MAX:
            raise SchemaError(f"the Avro schema expands to more than {NODES_MAX} types")
        if self.depth >= DEPTH_MAX:
            raise SchemaError(f"types of the Avro schema are nested more than {DEPTH_MAX} deep")
        self.depth += 1
        found = self._node(given)
        self.depth -= 1
        return found

    def _node(self, given: AvroType) -> AvroNode:
        if given.kind == "union":
            return self._union(given)
        if given.kind in RECORDS:
            return self._record(given)
        if given.element is not None:
            item = self.node(given.element)
            if given.kind == "array" and _is_entry(given.element):
                return _entries(item)
            return AvroNode(given.kind, item=item)
        logical = given.properties.get("logicalType")
        return AvroNode(
            given.kind,
            logical=logical if isinstance(logical, str) else "",
            precision=given.properties.get("precision"),
            scale=given.properties.get("scale"),
            size=given.size,
            name=given.name,
            symbols=given.symbols,
        )

    def _record(self, given: AvroType) -> AvroNode:
        if given in self.open:
            raise SchemaError(
                f'the Avro record "{given.name}" contains itself',
                hint="rows have no recursive types; read it with RegistryAvroSerde",
            )
        self.open.append(given)
        fields = tuple(
            NodeField(each.name, self.node(each.type), each.default) for each in given.fields
        )
        self.open.pop()
        return AvroNode("record", name=given.name, fields=fields)

    def _union(self, given: AvroType) -> AvroNode:
        present = [self.node(each) for each in given.branches if each.kind != "null"]
        nulls = [index for index, each in enumerate(given.branches) if each.kind == "null"]
        null_at = nulls[0] if nulls else None
        if nulls and len(present) == 1:
            return replace(present[0], null_at=null_at)
        names = [_branch_name(each) for each in present]
        if len(set(names)) < len(names):
            raise SchemaError("two branches of an Avro union have the same name")
        fields = tuple(map(NodeField, names, present))
        return AvroNode("union", null_at=null_at, fields=fields)


def _is_entry(given: AvroType) -> bool:
    return given.kind == "record" and (
        given.properties.get("connect.internal.type") == "MapEntry" or given.name == CONNECT_ENTRY
    )


def _entries(item: AvroNode) -> AvroNode:
    parts = {each.name: each.type for each in item.fields}
    if set(parts) != {"key", "value"}:
        raise SchemaError(
            f'the Avro record "{item.name}" is the entry of a map but has no key and value'
        )
    return AvroNode("entries", item=parts["value"], key=parts["key"], fields=item.fields)


def _branch_name(node: AvroNode) -> str:
    if node.kind == "entries":
        return "array"
    return node.name.rpartition(".")[2] or node.kind
