"""avro_tree: refuses Avro schemas whose types do not form a finite tree.

Recursive schemas do not, and the number of types in a tree is limited, because a short text with
names that refer to each other can expand to a very large one.
"""

from broker.errors import SchemaError
from broker.serde.schema.avro_types import AvroType, branch_name, children, is_map_entry

NODES_MAX = 20_000
DEPTH_MAX = 100


def avro_tree(root: AvroType) -> AvroType:
    """The same schema; SchemaError if it is not a tree."""
    _Walk().check(root)
    return root


class _Walk:
    """Walks a schema's types; `open` are the records that enclose the current type."""

    def __init__(self) -> None:
        self.open: list[AvroType] = []
        self.nodes = 0
        self.depth = 0

    def check(self, given: AvroType) -> None:
        self.nodes += 1
        if self.nodes > NODES_MAX:
            raise SchemaError(f"the Avro schema expands to more than {NODES_MAX} types")
        if self.depth >= DEPTH_MAX:
            raise SchemaError(f"types of the Avro schema are nested more than {DEPTH_MAX} deep")
        if given in self.open:
            raise SchemaError(
                f'the Avro record "{given.name}" contains itself',
                hint="rows have no recursive types; read it with RegistryAvroSerde",
            )
        if given.kind == "union":
            names = [branch_name(each) for each in given.branches]
            if len(set(names)) < len(names):
                raise SchemaError("two branches of an Avro union have the same name")
        elif given.kind == "array" and given.element is not None and is_map_entry(given.element):
            entry = given.element
            if {each.name for each in entry.fields} != {"key", "value"}:
                raise SchemaError(
                    f'the Avro record "{entry.name}" is the entry of a map but has no key and value'
                )
        self.depth += 1
        self.open.append(given)
        for each in children(given):
            self.check(each)
        self.open.pop()
        self.depth -= 1
