"""Avro values without their logical types, read by fastavro.

It reads the bytes by a schema of the same bytes in which logical types are gone, so that times stay
whole numbers, and in which each branch of a union is a record of one field, so that it is known
which it was.
"""

import io
from collections.abc import Callable, Sequence
from typing import TypeVar

import fastavro

from broker.errors import SchemaError, SerdeError
from broker.serde.schema.avro_tree import AvroNode, NodeField

T = TypeVar("T")


def physical_reader(
    node: AvroNode, project: Callable[[object], T], *, skip: int
) -> Callable[[bytes], T | None]:
    """From bytes to what is made of their values; those have no logical types.

    The value of a union is a dict of one field, whose name is that of the branch.
    """
    try:
        schema = fastavro.parse_schema(_Physical().schema(node))
    except SchemaError:
        raise
    except Exception as error:  # fastavro raises whatever its dictionaries raise
        raise SchemaError(f"fastavro cannot use the schema: {error}") from error
    read, buffer = fastavro.schemaless_reader, io.BytesIO

    def decode(data: bytes) -> T | None:
        source = buffer(data)
        source.seek(skip)
        found = read(source, schema, None)
        if source.tell() != len(data):
            raise SerdeError(f"{len(data) - source.tell()} bytes are left after the Avro value")
        return None if found is None else project(found)

    return decode


class _Physical:
    """The schema of the same bytes for fastavro; each record in it has a name of its own."""

    def __init__(self) -> None:
        self.names = 0

    def schema(self, node: AvroNode) -> object:
        if node.kind == "union":
            branches: list[object] = [self._record((each,)) for each in node.fields]
            if node.null_at is not None:
                branches.insert(node.null_at, "null")
            return branches
        inner = self._present(node)
        if node.null_at is None:
            return inner
        return ["null", inner] if node.null_at == 0 else [inner, "null"]

    def _present(self, node: AvroNode) -> object:
        match node.kind:
            case "record":
                return self._record(node.fields)
            case "array" | "entries":
                item = node.item if node.kind == "array" else AvroNode("record", fields=node.fields)
                if item is None or not _takes_bytes(item):
                    raise SchemaError(
                        "the Avro schema has arrays whose items take no bytes",
                        hint="change the items of the array; a count would hold the same "
                        "information",
                    )
                return {"type": "array", "items": self.schema(item)}
            case "map" if node.item is not None:
                return {"type": "map", "values": self.schema(node.item)}
            case "enum":
                return {"type": "enum", "name": self._name(), "symbols": list(node.symbols)}
            case "fixed":
                return {"type": "fixed", "name": self._name(), "size": node.size}
            case _:
                return node.kind

    def _record(self, fields: Sequence[NodeField]) -> object:
        return {
            "type": "record",
            "name": self._name(),
            "fields": [{"name": each.name, "type": self.schema(each.type)} for each in fields],
        }

    def _name(self) -> str:
        self.names += 1
        return f"n{self.names}"


def _takes_bytes(node: AvroNode) -> bool:
    if node.null_at is not None and node.kind != "null":
        return True
    if node.kind == "record":
        return any(_takes_bytes(each.type) for each in node.fields)
    return node.kind != "null" and not (node.kind == "fixed" and node.size == 0)
