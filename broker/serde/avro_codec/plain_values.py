"""Dicts and lists, the values of fastavro, written faster than by fastavro.

Only values that have exactly the expected types are written. Anything else raises: a missing field
with a default, a subclass, a number for a string. The caller then uses fastavro, which handles it
or raises a better error.
"""

from collections.abc import Callable
from typing import Any

from fastavro.write import LOGICAL_WRITERS

from broker.serde.avro_codec.encoding import Choice, Encoding, Parts
from broker.serde.avro_codec.wire import Write, number
from broker.serde.program import Program
from broker.serde.schema.avro_types import AvroType


class NotWritten(Exception):
    """A type or a value that only fastavro writes."""


def writer_of(root: AvroType) -> Write | None:
    """A function for values of a type; None if only fastavro can write it."""
    program = Program("generated Avro encoder")
    try:
        return Encoding(program, _PlainValues(program), _exactly).function(root, None)
    except NotWritten:
        return None


def _exactly(kind: str, value: Any) -> Any:
    # Python converts integers to floats, and so does fastavro.
    if kind in ("float", "double") and type(value) is int:
        return value
    raise NotWritten


class _PlainValues:
    """Dicts, lists, and the values of fastavro's logical types."""

    def __init__(self, program: Program) -> None:
        self._program = program
        program.shared(NotWritten=NotWritten, fixed=_fixed, items=_items, pairs=_pairs)

    def null(self, node: AvroType, wanted: None) -> str | None:
        """Only with one other type: fastavro decides which of several types is meant."""
        if node.kind != "union":
            return None
        if node.present is None or node.null_at is None:
            raise NotWritten
        return repr(number(node.null_at))

    def leaf(self, node: AvroType, wanted: None, x: str) -> str:
        """Converted, if it has a logical type."""
        logical = node.properties.get("logicalType")
        if logical == "decimal" and node.decimal is None:
            raise NotWritten
        prepare = LOGICAL_WRITERS.get(f"{node.kind}-{logical}")
        if prepare is not None:
            schema = {**node.properties, "type": node.kind, "name": node.name, "size": node.size}
            x = f"{self._program.constant('prepare', prepare)}({x}, {schema!r})"
        return f"fixed({x}, {node.size})" if node.kind == "fixed" else x

    def record(self, node: AvroType, wanted: None) -> Parts[None]:
        """A dict; an item "-type" names the branch of a union."""
        lines = ["if type(x) is not dict or '-type' in x: raise NotWritten"]
        names = [f"v{at}" for at in range(len(node.fields))]
        lines += [
            f"{name} = x[{each.name!r}]" for name, each in zip(names, node.fields, strict=True)
        ]
        return Parts(lines, [(name, None) for name in names])

    def items(self, node: AvroType, wanted: None, x: str) -> tuple[str, None]:
        """Of a list."""
        return f"items({x})", None

    def entries(self, node: AvroType, wanted: None, x: str) -> tuple[str, None]:
        """Of a dict."""
        return f"pairs({x})", None

    def union(
        self, node: AvroType, wanted: None, fits: Callable[[AvroType, None], bool]
    ) -> Choice[None]:
        """See `null`, which comes first."""
        raise NotWritten


def _fixed(value: Any, size: int) -> bytes:
    if type(value) is not bytes or len(value) != size:
        raise NotWritten
    return value


def _items(value: Any) -> list[Any]:
    if type(value) is not list:
        raise NotWritten
    return value


def _pairs(value: Any) -> Any:
    if type(value) is not dict or "-type" in value:
        raise NotWritten
    return value.items()
