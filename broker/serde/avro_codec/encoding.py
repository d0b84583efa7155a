"""Functions that write Avro, generated for one schema and one kind of values.

The walk over the schema and the bytes are here. What the values are is known to an `Accessor`:
columns of rows, attributes of models, fields of Connect's structs, items of dicts. For a record of
a nullable string and a long, which a row has as its first and second column, the function is

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

# Shorter than a call, where a value is exactly of its type.
_INLINE = {
    "boolean": "(b'\\1' if {x} is True else b'\\0' if {x} is False else write_boolean({x}))",
    "int": "(small[{x}] if type({x}) is int and -64 <= {x} < 64 else write_int({x}))",
    "long": "(small[{x}] if type({x}) is int and -64 <= {x} < 64 else write_long({x}))",
    "float": "(pack_float({x}) if type({x}) is float else write_float({x}))",
    "double": "(pack_double({x}) if type({x}) is float else write_double({x}))",
}
_JOINED_FROM = 4  # fewer parts are added


@dataclass(frozen=True, slots=True)
class Parts(Generic[T]):
    """A record's value taken apart.

    `lines` check what is named x and give names to its parts. Of each field of the schema there are
    the bytes, or the name of the value and what it is. `explain` names a function that gives the
    error to raise, of the value and the error that occurred.
    """

    lines: Sequence[str]
    fields: Sequence[bytes | tuple[str, T]]
    explain: str = ""


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """A branch of a union: the source of a test, and the source of the value and what it is."""

    test: str
    branch: int
    value: str
    type: T


@dataclass(frozen=True, slots=True)
class Choice(Generic[T]):
    """Branches for what is named x, in the order of their tests; the last line is for the rest."""

    lines: Sequence[str]
    options: Sequence[Option[T]]
    otherwise: str


class Accessor(Protocol[T]):
    """How values are taken apart; T describes a value, beside the type that the schema has for it.

    `x` is always the name of a variable.
    """

    def null(self, node: AvroType, wanted: T) -> str | None:
        """The source of the bytes of None; None where values are not compared with it."""
        ...

    def leaf(self, node: AvroType, wanted: T, x: str) -> str:
        """The source of what is written of a value without parts; x itself as it is."""
        ...

    def record(self, node: AvroType, wanted: T) -> Parts[T]:
        """The parts of what is named x."""
        ...

    def items(self, node: AvroType, wanted: T, x: str) -> tuple[str, T]:
        """The source of an array's items, and what they are."""
        ...

    def entries(self, node: AvroType, wanted: T, x: str) -> tuple[str, T]:
        """The source of a map's pairs of key and value, and what the values are."""
        ...

    def union(self, node: AvroType, wanted: T, fits: Callable[[AvroType, T], bool]) -> Choice[T]:
        """The branches for what is named x; `fits` says whether values can be written as a type."""
        ...


class Encoding(Generic[T]):
    """Writes the sources of one schema's functions; recursive records call themselves."""

    def __init__(self, program: Program, accessor: Accessor[T], other: Other) -> None:
        """`other` gets values that are not exactly of the type that is to be written."""
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
        """The function for values of a type; `head` comes before what it writes."""
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
        """The bytes of what is named x, as an expression."""
        null, present = self._accessor.null(node, wanted), self._present(node, wanted, x)
        return present if null is None else f"{null} if {x} is None else {present}"

    def _present(self, node: AvroType, wanted: T, x: str) -> str:
        """The same of what is not None."""
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
        # Named before it is written, for it may call itself.
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
            self._records = known  # others would call functions that were not written
            return False
        return True


def branch_of(node: AvroType) -> bytes:
    """The bytes before a value that may be null."""
    return b"" if node.present is None or node.null_at is None else number(1 - node.null_at)


def _sum(sources: Sequence[str]) -> str:
    if len(sources) < _JOINED_FROM:
        return " + ".join(f"({each})" for each in sources) or repr(b"")
    return f"join(({', '.join(sources)}))"
