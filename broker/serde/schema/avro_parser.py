"""AvroParser: parses the JSON of Avro schemas to AvroTypes, with the specification's checks.

Names: a dotted name is a full name, any other is in the given or the enclosing namespace; a name
that is unknown there is looked up without a namespace, as in Avro's Java library.
"""

import re
from collections.abc import Callable

from broker.errors import SchemaError
from broker.serde.schema.avro_defaults import check_default
from broker.serde.schema.avro_types import MISSING, NAMED, PRIMITIVES, RECORDS, AvroField, AvroType
from broker.serde.schema.json_text import write_json

TYPES_MAX = 100_000
SIZE_MAX = 2**31 - 1
SHOWN_MAX = 200

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ORDERS = frozenset(("ascending", "descending", "ignore"))
TYPE_WORDS = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases")
)
ENUM_WORDS = TYPE_WORDS | {"default"}
FIELD_WORDS = frozenset(("default", "doc", "name", "order", "type", "aliases"))

Json = dict[str, object]


class AvroParser:
    """Parses schemas one after the other; later ones may use the names of earlier ones."""

    def __init__(self) -> None:
        self.names: dict[str, AvroType] = {}
        self._types = 0

    def parse(self, value: object) -> AvroType:
        """The type that a JSON value describes."""
        fields: list[tuple[AvroType, AvroField]] = []
        self._with_default = fields
        found = self._type(value, "")
        # All records are complete only now; defaults of recursive records need that.
        for record, each in fields:
            check_default(record.name, each)
        return found

    def _type(self, value: object, namespace: str) -> AvroType:
        self._types += 1
        if self._types > TYPES_MAX:
            raise SchemaError(f"the schema has more than {TYPES_MAX} types")
        if isinstance(value, str):
            return self._by_name(value, namespace)
        if isinstance(value, list):
            return self._union(value, namespace)
        if isinstance(value, dict):
            return self._object(value, namespace)
        raise SchemaError(f"no type: {shown(value)}")

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self.names.get(full) or self.names.get(name)
        if found is None:
            raise SchemaError(f'undefined name: "{name}"')
        return found

    def _union(self, values: list[object], namespace: str) -> AvroType:
        branches = tuple(self._type(each, namespace) for each in values)
        seen = set()
        for each in branches:
            if each.kind == "union":
                raise SchemaError(f"nested union: {shown(values)}")
            key = each.name or each.kind
            if key in seen:
                raise SchemaError(f"duplicate in union: {key}")
            seen.add(key)
        return AvroType("union", branches=branches)

    def _object(self, value: Json, namespace: str) -> AvroType:
        kind = value.get("type")
        if not isinstance(kind, str):
            raise SchemaError(f"no type: {shown(value)}")
        if kind in PRIMITIVES:
            return AvroType(kind, properties=properties(value, TYPE_WORDS))
        if kind in NAMED:
            return self._named(kind, value, namespace)
        if kind in ("array", "map"):
            word = "items" if kind == "array" else "values"
            if word not in value:
                raise SchemaError(f'{kind} has no "{word}": {shown(value)}')
            element = self._type(value[word], namespace)
            return AvroType(kind, element=element, properties=properties(value, TYPE_WORDS))
        return self._by_name(kind, namespace)

    def _named(self, kind: str, value: Json, namespace: str) -> AvroType:
        name = full_name(value, namespace)
        if name in self.names:
            raise SchemaError(f'cannot redefine: "{name}"')
        reserved = ENUM_WORDS if kind == "enum" else TYPE_WORDS
        space = name.rpartition(".")[0]
        node = AvroType(
            kind,
            name=name,
            doc=text_or_none(value.get("doc")),
            aliases=aliases(value, space),
            properties=properties(value, reserved),
        )
        self.names[name] = node
        if kind in RECORDS:
            node.fields = self._fields(node, value)
        elif kind == "enum":
            node.symbols, node.symbol_default = symbols(name, value)
        else:
            size = value.get("size")
            if type(size) is not int or not 0 <= size <= SIZE_MAX:
                raise SchemaError(f'fixed "{name}": size {shown(size)} is not a whole number')
            node.size = size
        return node

    def _fields(self, record: AvroType, value: Json) -> tuple[AvroField, ...]:
        given = value.get("fields")
        if not isinstance(given, list):
            raise SchemaError(f'record "{record.name}" has no fields: {shown(value)}')
        found: dict[str, AvroField] = {}
        for each in given:
            if not isinstance(each, dict):
                raise SchemaError(f'record "{record.name}": no field: {shown(each)}')
            name = checked_name(each.get("name"), f'field of record "{record.name}"')
            if name in found:
                raise SchemaError(f'duplicate field "{name}" in record "{record.name}"')
            found[name] = self._field(record, name, each)
        return tuple(found.values())

    def _field(self, record: AvroType, name: str, value: Json) -> AvroField:
        where = f'field "{name}" of record "{record.name}"'
        if "type" not in value:
            raise SchemaError(f"{where} has no type")
        node = within(where, lambda: self._type(value["type"], record.namespace))
        order = value.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in ORDERS:
            raise SchemaError(f"{where}: order {shown(order)} is not one of {sorted(ORDERS)}")
        found = AvroField(
            name,
            node,
            default=value.get("default", MISSING),
            doc=text_or_none(value.get("doc")),
            order=order.lower(),
            aliases=field_aliases(value, where),
            properties=properties(value, FIELD_WORDS),
        )
        if found.default is not MISSING:
            self._with_default.append((record, found))
        return found


def within(where: str, action: Callable[[], AvroType]) -> AvroType:
    """Add a location to errors, unless they have one."""
    try:
        return action()
    except SchemaError as error:
        if error.at:
            raise
        raise SchemaError(error.message, at=where, hint=error.hint) from error


def full_name(value: Json, namespace: str) -> str:
    """The name of a named type with its namespace."""
    name, given = value.get("name"), value.get("namespace")
    if not isinstance(name, str):
        raise SchemaError(f"no name in schema: {shown(value)}")
    if isinstance(given, str):
        namespace = given
    full = name if "." in name or not namespace else f"{namespace}.{name}"
    check_full_name(full, "name")
    if full in PRIMITIVES:
        raise SchemaError(f'types may not be named after primitives: "{full}"')
    return full


def check_full_name(full: str, what: str) -> None:
    """Namespaces may have any characters, as in Avro's Java library: hyphens are common there."""
    *namespace, name = full.split(".")
    checked_name(name, f'{what} "{clipped(full)}"')
    if "" in namespace:
        raise SchemaError(f'{what} "{clipped(full)}": empty part of the namespace')


def checked_name(name: object, what: str) -> str:
    """A name of letters, digits and underscores that does not start with a digit."""
    if not isinstance(name, str):
        raise SchemaError(f"{what} has no name")
    if not name:
        raise SchemaError(f"{what}: empty name")
    if NAME.fullmatch(name) is None:
        first = NAME.match(name[0]) is None
        problem = "illegal initial character" if first else "illegal character"
        raise SchemaError(f'{what}: {problem} in "{clipped(name)}"')
    return name


def symbols(name: str, value: Json) -> tuple[tuple[str, ...], str | None]:
    """The symbols of an enum, and the default for unknown ones."""
    given = value.get("symbols")
    if not isinstance(given, list):
        raise SchemaError(f'enum "{name}" has no symbols: {shown(value)}')
    found = tuple(checked_name(each, f'symbol of enum "{name}"') for each in given)
    if len(set(found)) != len(found):
        raise SchemaError(f'duplicate symbol in enum "{name}"')
    default = value.get("default")
    if default is None:
        return found, None
    if default not in found:
        raise SchemaError(f'default {shown(default)} of enum "{name}" is not one of its symbols')
    return found, str(default)


def aliases(value: Json, namespace: str) -> tuple[str, ...]:
    """Other full names of a type, in the type's own namespace unless they contain one."""
    found: dict[str, None] = {}
    for each in text_list(value.get("aliases"), "aliases"):
        full = each if "." in each or not namespace else f"{namespace}.{each}"
        check_full_name(full, "alias")
        found[full] = None
    return tuple(found)


def field_aliases(value: Json, where: str) -> tuple[str, ...]:
    """Other names of a field."""
    given = text_list(value.get("aliases"), f"{where}: aliases")
    return tuple(dict.fromkeys(checked_name(each, f"alias of {where}") for each in given))


def text_list(value: object, what: str) -> list[str]:
    """A list of strings; empty if it is missing."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise SchemaError(f"{what} are not a list of names: {shown(value)}")
    return value


def text_or_none(value: object) -> str | None:
    """A string; None for anything else."""
    return value if isinstance(value, str) else None


def properties(value: Json, reserved: frozenset[str]) -> Json:
    """The properties of a schema that are not Avro's own."""
    return {key: each for key, each in value.items() if key not in reserved}


def shown(value: object) -> str:
    """A part of the schema, short enough for a message."""
    return clipped(write_json(value))


def clipped(text: str) -> str:
    """The beginning of a string."""
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
