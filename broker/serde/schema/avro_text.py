"""AvroPrinter: AvroTypes as JSON, with keys in the order of Avro's Java library.

    record  type name namespace? doc? fields properties aliases?
    enum    type name namespace? doc? symbols default? properties aliases?
    fixed   type name namespace? doc? size properties aliases?
    field   name type doc? default? order? aliases? properties

A namespace is printed only if it differs from the enclosing one, a type only at its first use.
"""

from broker.errors import SchemaError
from broker.serde.schema.avro_types import MISSING, NAMED, PRIMITIVES, RECORDS, AvroField, AvroType
from broker.serde.schema.json_text import DEPTH_MAX

# The placeholder for the empty namespace in fastavro's schemas, which cannot reset a namespace.
NOWHERE = "millstream_without_namespace"


class AvroPrinter:
    """Prints one schema; types in `known` are only referred to by name."""

    def __init__(self, known: frozenset[str] = frozenset(), *, sort: bool = False) -> None:
        """With `sort`, parts whose order has no meaning are sorted."""
        self._named = set(known)
        self._sort = sort

    def json(self, node: AvroType, namespace: str = "", depth: int = 0) -> object:
        """The JSON value of a type that is used inside a namespace."""
        if depth > DEPTH_MAX:
            raise SchemaError(f"the schema is nested deeper than {DEPTH_MAX} levels")
        if node.kind in NAMED:
            return self._named_json(node, namespace, depth)
        if node.kind == "union":
            return [self.json(each, namespace, depth + 1) for each in node.branches]
        if node.element is not None:
            word = "items" if node.kind == "array" else "values"
            element = self.json(node.element, namespace, depth + 1)
            return {"type": node.kind, word: element, **self._properties(node)}
        if not node.properties:
            return node.kind
        return {"type": node.kind, **self._properties(node)}

    def _named_json(self, node: AvroType, namespace: str, depth: int) -> object:
        if node.name in self._named:
            return self.reference(node, namespace)
        self._named.add(node.name)
        found: dict[str, object] = {"type": node.kind, **self.name(node, namespace)}
        if node.doc is not None and (node.doc or not self._sort):
            found["doc"] = node.doc
        if node.kind in RECORDS:
            found["fields"] = [self._field(each, node, depth + 2) for each in node.fields]
        elif node.kind == "enum":
            found["symbols"] = list(node.symbols)
            if node.symbol_default is not None:
                found["default"] = node.symbol_default
        else:
            found["size"] = node.size
        found.update(self._properties(node))
        if node.aliases:
            found["aliases"] = self.aliases(node)
        return found

    def name(self, node: AvroType, namespace: str) -> dict[str, object]:
        """The keys with the name of a type at its first use."""
        space, _, name = node.name.rpartition(".")
        if space == namespace:
            return {"name": name}
        return {"name": name, "namespace": space}

    def reference(self, node: AvroType, namespace: str) -> str:
        """The reference to a type at later uses."""
        space, _, name = node.name.rpartition(".")
        return name if space == namespace and name not in PRIMITIVES else node.name

    def aliases(self, node: AvroType) -> list[str]:
        """Aliases of a type, without the namespace if it is the same."""
        start = f"{node.namespace}."
        found = [
            each.removeprefix(start) if _parent(each, start) else each for each in node.aliases
        ]
        return sorted(found) if self._sort else found

    def _field(self, field: AvroField, record: AvroType, depth: int) -> dict[str, object]:
        found: dict[str, object] = {"name": field.name}
        found["type"] = self.json(field.type, record.namespace, depth + 1)
        if field.doc is not None:
            found["doc"] = field.doc
        if field.default is not MISSING:
            found["default"] = sorted_keys(field.default) if self._sort else field.default
        if field.order != "ascending":
            found["order"] = field.order
        if field.aliases:
            found["aliases"] = sorted(field.aliases) if self._sort else list(field.aliases)
        found.update(self._in_order(field.properties, ()))
        return found

    def _properties(self, node: AvroType) -> dict[str, object]:
        decimal = node.decimal
        first: tuple[str, ...] = ()
        if decimal is not None:
            first = ("logicalType", "precision", "scale") if decimal[1] else FIRST_WITHOUT_SCALE
        elif "logicalType" in node.properties:
            first = ("logicalType",)
        return self._in_order(node.properties, first)

    def _in_order(self, given: dict[str, object], first: tuple[str, ...]) -> dict[str, object]:
        if not self._sort:
            return given
        keys = [*first, *(key for key in sorted(given) if key not in first)]
        return {key: sorted_keys(given[key]) for key in keys}


FIRST_WITHOUT_SCALE = ("logicalType", "precision")


class FastavroPrinter(AvroPrinter):
    """Prints full names everywhere, without logical types that fastavro would refuse."""

    def name(self, node: AvroType, namespace: str) -> dict[str, object]:
        """The full name."""
        return {"name": self.reference(node, namespace)}

    def reference(self, node: AvroType, namespace: str) -> str:
        """The full name."""
        return node.name if "." in node.name else f"{NOWHERE}.{node.name}"

    def aliases(self, node: AvroType) -> list[str]:
        """Full names."""
        return list(node.aliases)

    def _properties(self, node: AvroType) -> dict[str, object]:
        if node.properties.get("logicalType") == "decimal" and node.decimal is None:
            return {key: each for key, each in node.properties.items() if key != "logicalType"}
        return node.properties


def sorted_keys(value: object) -> object:
    """A JSON value whose objects are sorted by key."""
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [sorted_keys(each) for each in value]
    return value


def _parent(name: str, start: str) -> bool:
    return name.startswith(start) and "." not in name[len(start) :]
