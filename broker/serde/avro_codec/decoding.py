"""Generates functions that read Avro, for one schema and one representation of values.

The walk over the schema and the bytes are here. An `Accessor` defines how values are created: rows
of columns, models, Connect's structs. For a record with a nullable long that is read and a string
that is skipped, the function is

    def read(d):
        n = len(d)
        i = 5
        b = d[i]
        i += 1
        if b == 2:
            (a varint at i, as v1)
            v1 = v1 >> 1 ^ -(v1 & 1)
        elif b == 0:
            v1 = None
        else:
            raise wrong('branch of a union')
        (a varint at i, as v2)
        e = i + (v2 >> 1)
        if v2 & 1 or e > n: raise wrong('length')
        i = e
        if i != n: raise left_over(n - i)
        return (v1,)

Reading past the end raises IndexError, or is detected by comparing sizes. Every length and count is
compared with the number of remaining bytes, since each item of an array takes at least one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from struct import Struct
from typing import Any, Generic, Protocol, TypeVar

from broker.serde.avro_codec.limits import check_items
from broker.serde.avro_codec.number_arrays import LONG_ARRAYS, LONG_FROM
from broker.serde.program import Program
from broker.serde.schema.avro_types import RECORDS, AvroType

T = TypeVar("T")
Lines = Iterable[str]

INLINE_MAX = 500  # varints; functions with more are slow to compile
LOOPS_MAX = 4  # Python allows at most 20 nested blocks

_ENDS = {"int": 1 << 32, "long": 1 << 64}
_FLOATS = {"float": 4, "double": 8}


@dataclass(frozen=True, slots=True)
class Made(Generic[T]):
    """A record: the fields to read and their values, and the source that combines them.

    A field may be read more than once; the source uses the names of the values.
    """

    wanted: Sequence[tuple[str, T]]
    source: Callable[[Sequence[str]], str]


class Accessor(Protocol[T]):
    """Defines how values are created; T describes a value, in addition to the schema's type.

    `x` is always the name of a variable; null is read as None.
    """

    def leaf(self, node: AvroType, wanted: T, x: str) -> str:
        """The source of a scalar value, from the decoded value x; x itself if it is unchanged."""
        ...

    def record(self, node: AvroType, wanted: T) -> Made[T]:
        """A record's value, from its fields."""
        ...

    def items(self, node: AvroType, wanted: T, x: str) -> tuple[T, str]:
        """The value of the items of an array, and the source of the array from their list."""
        ...

    def entries(self, node: AvroType, wanted: T, x: str) -> tuple[T, str]:
        """The values of a map, and the source of the map from their dict."""
        ...

    def branches(self, node: AvroType, wanted: T, x: str) -> Sequence[tuple[T | None, str]]:
        """The value of each branch, None to skip it, and the source of the union; without null."""
        ...


class Decoding(Generic[T]):
    """Generates the sources of one schema's functions."""

    def __init__(self, program: Program, accessor: Accessor[T]) -> None:
        self._program = program
        self._accessor = accessor
        self._records: dict[tuple[int, T | None], str] = {}
        self._inlined = 0
        program.shared(
            read_rest=_read_rest,
            wrong=_wrong,
            left_over=_left_over,
            unpack_float=Struct("<f").unpack_from,
            unpack_double=Struct("<d").unpack_from,
        )

    # Any: only the accessor knows the type of the results.
    def function(
        self, node: AvroType, wanted: T, *, skip: int, whole: str = "x"
    ) -> Callable[[bytes], Any]:
        """A function from bytes, skipping the first ones; `whole` is the source of its result."""
        name = self._program.name("read")
        if node.kind in RECORDS:
            *lines, last = self._fields(node, wanted)
            lines.append(f"x = {last}")
        else:
            lines = [*self._value(node, wanted, "x", 0)]
        end = "if i != n: raise left_over(n - i)"
        self._program.define(name, "d", "n = len(d)", f"i = {skip}", *lines, end, f"return {whole}")
        return self._program.function(name)

    def _value(self, node: AvroType, wanted: T | None, x: str, loops: int) -> Lines:
        """The lines that read a value into x, or skip it if it is not read."""
        if node.kind != "union":
            yield from self._plain(node, wanted, x, loops)
        elif node.present is not None:
            null, present = (0, 2) if node.null_at == 0 else (2, 0)
            yield from ("b = d[i]", "i += 1", f"if b == {present}:")
            yield from _within(self._plain(node.present, wanted, x, loops))
            yield from (f"elif b == {null}:", f"    {x} = None")
            yield "else: raise wrong('branch of a union')"
        else:
            yield from self._union(node, wanted, x)

    def _plain(self, node: AvroType, wanted: T | None, x: str, loops: int) -> Lines:
        kind = node.kind
        if kind in RECORDS:
            yield f"{x}, i = {self._record(node, wanted)}(d, i, n)"
        elif kind in ("array", "map"):
            if loops < LOOPS_MAX:
                yield from self._blocks(node, wanted, x, loops + 1)
            else:
                name = self._program.name("block")
                lines = self._blocks(node, wanted, "x", 1)
                self._program.define(name, "d, i, n", *lines, "return x, i")
                yield f"{x}, i = {name}(d, i, n)"
        else:
            yield from self._leaf(node, x, is_wanted=wanted is not None)
            if wanted is not None:
                found = self._accessor.leaf(node, wanted, x)
                if found != x:
                    yield f"{x} = {found}"

    def _leaf(self, node: AvroType, x: str, *, is_wanted: bool) -> Lines:
        """The lines for a scalar type."""
        kind = node.kind
        match kind:
            case "null":
                yield f"{x} = None"
            case "boolean":
                yield from ("b = d[i]", "i += 1", "if b > 1: raise wrong('boolean')")
                yield f"{x} = b == 1"
            case "float" | "double":
                yield f"{x}, = unpack_{kind}(d, i)"
                yield f"i += {_FLOATS[kind]}"
            case "string" | "bytes" | "fixed":
                yield from self._bytes(node, x, is_wanted=is_wanted)
            case "enum":
                symbols = self._program.constant("symbols", node.symbols)
                yield from self._number(x, "int")
                yield f"if {x} & 1: raise wrong('symbol')"
                yield f"{x} = {symbols}[{x} >> 1]"
            case _:
                yield from self._number(x, kind)
                if is_wanted:
                    yield f"{x} = {x} >> 1 ^ -({x} & 1)"

    def _bytes(self, node: AvroType, x: str, *, is_wanted: bool) -> Lines:
        """The lines for strings and bytes, with their length, unless it is fixed."""
        if node.kind == "fixed":
            yield from (f"e = i + {node.size}", "if e > n: raise wrong('length')")
        else:
            yield from self._number(x, "long")
            yield from (f"e = i + ({x} >> 1)", f"if {x} & 1 or e > n: raise wrong('length')")
        if node.kind == "string":
            yield f"{x} = d[i:e].decode()"  # also if it is skipped, to validate it
        elif is_wanted:
            yield f"{x} = d[i:e]"
        yield "i = e"

    def _number(self, x: str, kind: str) -> Lines:
        """The lines for an encoded varint; usually it has one byte."""
        self._inlined += 1
        yield from (f"{x} = d[i]", "i += 1", f"if {x} > 127:")
        if self._inlined > INLINE_MAX:
            yield f"    {x}, i = read_rest(d, i, {x}, {_ENDS[kind]})"
            return
        yield from (
            "    b = d[i]",
            "    i += 1",
            f"    {x} += b - 1 << 7",
            "    s = 7",
            "    while b > 127:",
            "        s += 7",
            "        if s > 63: raise wrong('number')",
            "        b = d[i]",
            "        i += 1",
            f"        {x} += b - 1 << s",
            f"    if {x} >= {_ENDS[kind]}: raise wrong('number')",
        )

    def _blocks(self, node: AvroType, wanted: T | None, x: str, loops: int) -> Lines:
        """The lines for blocks of items; the last block is empty."""
        assert node.element is not None, "arrays and maps have one"
        check_items(node)
        begin, count, item, key = map(self._program.name, ("i", "c", "v", "k"))
        inner: T | None = None
        whole, is_map = x, node.kind == "map"
        if wanted is not None:
            access = self._accessor.entries if is_map else self._accessor.items
            inner, whole = access(node, wanted, x)
        yield f"{x} = {'{}' if is_map else '[]'}"
        yield f"{begin} = i"
        yield "while True:"
        lines = [*self._number(count, "long"), f"if not {count}: break", f"if {count} & 1:"]
        # The number of items is negative, and the size of the block follows.
        lines += [f"    {count} += 1", *_within(self._number(item, "long"))]
        lines += [f"{count} >>= 1", f"if {count} > n - i: raise wrong('length')"]
        lines += self._long_array(node, inner, (x, begin, count))
        lines.append(f"for _ in range({count}):")
        body: list[str] = []
        if is_map:
            body += self._leaf(_STRING, key, is_wanted=wanted is not None)
        body += self._value(node.element, inner, item, loops)
        if wanted is not None:
            body.append(f"{x}[{key}] = {item}" if is_map else f"{x}.append({item})")
        yield from _within([*lines, *_within(body)])
        if whole != x:
            yield f"{x} = {whole}"

    def _long_array(self, node: AvroType, inner: T | None, names: tuple[str, str, str]) -> Lines:
        """The lines that read a whole array in one call, if one of its blocks is long."""
        x, begin, count = names
        assert node.element is not None, "arrays have one"
        read = LONG_ARRAYS.get(node.element.kind) if node.kind == "array" else None
        if read is None or inner is None or self._accessor.leaf(node.element, inner, x) != x:
            return
        constant = self._program.constant("read_long_array", read)
        yield from (f"if {count} >= {LONG_FROM}:", f"    {x}, i = {constant}(d, {begin})")
        yield "    break"

    def _record(self, node: AvroType, wanted: T | None) -> str:
        key = (id(node), wanted)
        if key not in self._records:
            # The name is assigned first, because the function may call itself.
            name = self._records[key] = self._program.name("record")
            *lines, last = self._fields(node, wanted)
            self._program.define(name, "d, i, n", *lines, f"return {last}, i")
        return self._records[key]

    def _fields(self, node: AvroType, wanted: T | None) -> list[str]:
        """The lines for all fields, and the source of the record."""
        made = None if wanted is None else self._accessor.record(node, wanted)
        by_field: dict[str, list[tuple[int, T]]] = {}
        for at, (name, each) in enumerate(() if made is None else made.wanted):
            by_field.setdefault(name, []).append((at, each))
        names: dict[int, str] = {}
        lines: list[str] = []
        for field in node.fields:
            uses = by_field.get(field.name, [])
            if len(uses) > 1:
                lines.append("begin = i")
            for number, (at, each) in enumerate(uses):
                names[at] = self._program.name("v")
                lines += ["i = begin"] if number else []
                lines += self._value(field.type, each, names[at], 0)
            if not uses:
                lines += self._value(field.type, None, "v", 0)
        if made is None:
            return [*lines, "None"]
        return [*lines, made.source([names[at] for at in range(len(made.wanted))])]

    def _union(self, node: AvroType, wanted: T | None, x: str) -> Lines:
        """The lines that call one function per branch."""
        present = sum(each.kind != "null" for each in node.branches)
        found: Iterator[tuple[T | None, str]] = (
            repeat((None, "x"), present)
            if wanted is None
            else iter(self._accessor.branches(node, wanted, "x"))
        )
        names = []
        for each in node.branches:
            name, lines, whole = self._program.name("branch"), ["x = None"], "x"
            if each.kind != "null":
                inner, whole = next(found)
                lines = [*self._value(each, inner, "x", 0)]
            self._program.define(name, "d, i, n", *lines, f"return {whole}, i")
            names.append(name)
        branches = self._program.name("branches")
        self._program.add(f"{branches} = ({', '.join(names)},)")
        yield from self._number(x, "long")
        yield f"if {x} & 1: raise wrong('branch of a union')"
        yield f"{x}, i = {branches}[{x} >> 1](d, i, n)"


_STRING = AvroType("string")


def _within(lines: Lines) -> list[str]:
    return [f"    {line}" for line in lines]


def _read_rest(data: bytes, i: int, number: int, end: int) -> tuple[int, int]:
    """The bytes of a varint after the first; the same as the inline code."""
    byte, shift = number, 0
    while byte > 127:
        shift += 7
        if shift > 63:
            raise _wrong("number")
        byte = data[i]
        i += 1
        number += byte - 1 << shift
    if number >= end:
        raise _wrong("number")
    return number, i


def _left_over(count: int) -> ValueError:
    return ValueError(f"{count} bytes are left over" if count > 0 else "the bytes end too early")


def _wrong(what: str) -> ValueError:
    return ValueError(f"the bytes do not match their Avro schema: invalid {what}")
