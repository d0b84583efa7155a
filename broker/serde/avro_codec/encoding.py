"""Generates functions that write Avro, for one schema and one representation of values.

The walk over the schema and the bytes are here. An `Accessor` defines how values are read: columns
of rows, attributes of models, fields of Connect's structs, items of dicts. For a record of a
nullable string and a long, which are the first and second column of a row, the function is

    def record_1(x):
        v0, v1 = x
        return join((
            head,
            b'\0' if v0 is None else b'\2' + write_string(v0),
            (small[v1] if type(v1) is int and -64 <= v1 < 64 else write_long(v1)),
        ))
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from broker.errors import MillstreamError
from broker.serde.avro_codec.wire import (
    SMALL,
    Other,
    Write,
    number,
    pack_double,
    pack_float,
    primitive_writers,
    write_block,
)
from broker.serde.program import Program
from broker.serde.schema.avro_types import RECORDS, AvroType

T = TypeVar("T")

# Inline code for values that have exactly the expected type.
_INLINE = {
    "boolean": "(b'\\1' if {x} is True else b'\\0' if {x} is False else write_boolean({x}))",
    "int": "(small[{x}] if type({x}) is int and -64 <= {x} < 64 else write_int({x}))",
    "long": "(small[{x}] if type({x}) is int and -64 <= {x} < 64 else write_long({x}))",
    "float": "(pack_float({x}) if type({x}) is float else write_float({x}))",
    "double": "(pack_double({x}) if type({x}) is float else write_double({x}))",
}
_JOINED_FROM = 4  # fewer parts are concatenated with +


@dataclass(frozen=True, slots=True)
class Parts(Generic[T]):
    """The parts of a record's value.

    `lines` validate the value named x and assign names to its parts. For each field of the schema
    there are either its bytes, or the name of the value and its description. `explain` names a
    function that returns the error to raise, given the value and the original error.
    """

    lines: Sequence[str]
    fields: Sequence[bytes | tuple[str, T]]
    explain: str = ""


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """A branch of a union: the sources of a test and of the value, and its description."""

    test: str
    branch: int
    value: str
    type: T


@dataclass(frozen=True, slots=True)
class Choice(Generic[T]):
    """The branches for the value named x, in the order of tests; the last line is the default."""

    lines: Sequence[str]
    options: Sequence[Option[T]]
    otherwise: str


class Accessor(Protocol[T]):
    """Defines how values are read; T describes a value, in addition to the schema's type.

    `x` is always the name of a variable.
    """

    def null(self, node: AvroType, wanted: T) -> str | None:
        """The source of the bytes of None; None if values are not compared with it."""
        ...

    def leaf(self, node: AvroType, wanted: T, x: str) -> str:
        """The source of the value to encode, for a scalar type; x itself if it is unchanged."""
        ...

    def record(self, node: AvroType, wanted: T) -> Parts[T]:
        """The parts of the value named x."""
        ...

    def items(self, node: AvroType, wanted: T, x: str) -> tuple[str, T]:
        """The source of an array's items, and their description."""
        ...

    def entries(self, node: AvroType, wanted: T, x: str) -> tuple[str, T]:
        """The source of a map's pairs of key and value, and the description of the values."""
        ...

    def union(self, node: AvroType, wanted: T, fits: Callable[[AvroType, T], bool]) -> Choice[T]:
        """The branches for the value named x; `fits` is whether values can be written as a type."""
        ...


class Encoding(Generic[T]):
    """Generates the sources of one schema's functions; recursive records call themselves."""

    def __init__(self, program: Program, accessor: Accessor[T], other: Other) -> None:
        """`other` is called for values that do not have exactly the expected type."""
        self._program = program
        self._accessor = accessor
        self._records: dict[tuple[int, T, bytes], str] = {}
        program.shared(
            small=SMALL,
            join=b"".join,
            pack_float=pack_float,
            pack_double=pack_double,
            write_block=write_block,
            **{f"write_{kind}": write for kind, write in primitive_writers(other).items()},
        )

    def function(self, node: AvroType, wanted: T, head: bytes = b"") -> Write:
        """The function for values of a type; `head` is written before each."""
        name = self._program.name("write")
        before = f"{head!r} + " if head else ""
        self._program.define(name, "x", f"return {before}({self._source(node, wanted, 'x')})")
        return self._program.function(name)

    def present_function(self, node: AvroType, wanted: T, head: bytes = b"") -> Write:
        """The same for values that are not None."""
        inner = node if node.present is None else node.present
        if inner.kind in RECORDS:
            return self._program.function(self._record(inner, wanted, head + branch_of(node)))
        name = self._program.name("write")
        self._program.define(name, "x", f"return {head!r} + {self._present(node, wanted, 'x')}")
        return self._program.function(name)

    def _source(self, node: AvroType, wanted: T, x: str) -> str:
        """The bytes of the value named x, as an expression."""
        null, present = self._accessor.null(node, wanted), self._present(node, wanted, x)
        return present if null is None else f"{null} if {x} is None else {present}"

    def _present(self, node: AvroType, wanted: T, x: str) -> str:
        """The same for a value that is not None."""
        if node.kind != "union":
            return self._plain(node, wanted, x)
        if node.present is None:
            return self._union(node, wanted, x)
        return f"{branch_of(node)!r} + {self._plain(node.present, wanted, x)}"

    def _plain(self, node: AvroType, wanted: T, x: str) -> str:
        kind = node.kind
        if kind in RECORDS:
            return f"{self._record(node, wanted)}({x})"
        if kind in ("array", "map"):
            return self._block(node, wanted, x)
        found = self._accessor.leaf(node, wanted, x)
        if kind == "fixed":
            return found
        if kind == "enum":
            symbols = {each: number(at) for at, each in enumerate(node.symbols)}
            return f"{self._program.constant('symbols', symbols)}[{found}]"
        if found == x and kind in _INLINE:
            return _INLINE[kind].format(x=x)
        return f"write_{kind}({found})"

    def _record(self, node: AvroType, wanted: T, head: bytes = b"") -> str:
        key = (id(node), wanted, head)
        if key in self._records:
            return self._records[key]
        # The name is assigned first, because the function may call itself.
        name = self._records[key] = self._program.name("record")
        parts = self._accessor.record(node, wanted)
        sources = [repr(head)] if head else []
        for part, field in zip(parts.fields, node.fields, strict=True):
            if isinstance(part, bytes):
                sources.append(repr(part))
            else:
                sources.append(self._source(field.type, part[1], part[0]))
        lines = [f"return {_sum(sources)}"]
        if parts.explain:
            lines = ["try:", f"    {lines[0]}", "except Exception as error:"]
            lines.append(f"    raise {parts.explain}(x, error)")
        self._program.define(name, "x", *parts.lines, *lines)
        return name

    def _block(self, node: AvroType, wanted: T, x: str) -> str:
        assert node.element is not None, "arrays and maps have one"
        name, each = self._program.name("block"), self._program.name("e")
        if node.kind == "array":
            items, inner = self._accessor.items(node, wanted, "x")
            one = self._source(node.element, inner, each)
            line = f"return write_block([{one} for {each} in {items}])"
        else:
            items, inner = self._accessor.entries(node, wanted, "x")
            one = f"write_string(k) + ({self._source(node.element, inner, each)})"
            line = f"return write_block([{one} for k, {each} in {items}])"
        self._program.define(name, "x", line)
        return f"{name}({x})"

    def _union(self, node: AvroType, wanted: T, x: str) -> str:
        name = self._program.name("union")
        choice = self._accessor.union(node, wanted, self._fits)
        lines = list(choice.lines)
        for each in choice.options:
            written = self._present(node.branches[each.branch], each.type, "y")
            lines += [
                f"if {each.test}:",
                f"    y = {each.value}",
                f"    return {number(each.branch)!r} + {written}",
            ]
        self._program.define(name, "x", *lines, choice.otherwise)
        return f"{name}({x})"

    def _fits(self, node: AvroType, wanted: T) -> bool:
        known = dict(self._records)
        try:
            self._present(node, wanted, "x")
        except MillstreamError:
            self._records = known  # discards functions that were not written
            return False
        return True


def branch_of(node: AvroType) -> bytes:
    """The bytes before a nullable value that is not null."""
    return b"" if node.present is None or node.null_at is None else number(1 - node.null_at)


def _sum(sources: Sequence[str]) -> str:
    if len(sources) < _JOINED_FROM:
        return " + ".join(f"({each})" for each in sources) or repr(b"")
    return f"join(({', '.join(sources)}))"
