"""Avro's bytes straight to models, when they were written with the model's own schema.

In the sources d is the data, i the position and n the end. Every length and count is compared with
the bytes that are left, of which each item of an array takes one at least.
"""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any

from broker.serde.models import values
from broker.serde.models.avro_conversion import BASE, AvroReading, branch_name
from broker.serde.models.conversion import made
from broker.serde.models.program import Program
from broker.serde.models.shapes import (
    ArrayShape,
    DecimalShape,
    EnumShape,
    LiteralShape,
    MapShape,
    ModelShape,
    OptionalShape,
    Scalar,
    Shape,
    UnionShape,
)
from broker.serde.schema.avro_types import AvroType

VARINT_BYTES_MAX = 10

# Any in this file: what comes out is known to the shape alone.


def bytes_reader(title: str, shape: Shape, kind: AvroType) -> Callable[[bytes, int], Any]:
    """A function from bytes, and where they begin, to a value; bytes left over raise ValueError."""
    parsing = _Parsing(title)
    name = parsing.program.name("read")
    parsing.program.define(
        name, "d, i, n", *parsing.read(shape, kind, "x"), "if i != n: left_over(n - i)", "return x"
    )
    read: Callable[..., Any] = parsing.program.function(name)
    return lambda data, start: read(data, start, len(data))


class _Parsing:
    """Writes lines that read what a shape says into a variable."""

    def __init__(self, title: str) -> None:
        self.program = Program(title)
        self.program.shared(
            **{name: each for name, each in vars(values).items() if callable(each)},
            read_long=_read_long,
            cut_off=_cut_off,
            left_over=_left_over,
            no_branch=_no_branch,
            unpack_double=Struct("<d").unpack_from,
            unpack_float=Struct("<f").unpack_from,
        )
        self._models: dict[ModelShape, str] = {}

    def read(self, shape: Shape, kind: AvroType, x: str) -> Iterator[str]:
        """The lines for one value."""
        match shape:
            case Scalar():
                yield from self._base(BASE[shape], x)
                converted = AvroReading.templates[shape].format(x=x)
                if converted != x:
                    yield f"{x} = {converted}"
            case ModelShape():
                yield f"{x}, i = {self._model(shape, kind)}(d, i, n)"
            case OptionalShape() | UnionShape():
                yield from self._union(shape, kind, x)
            case ArrayShape() | MapShape():
                yield from self._block(shape, kind, x)
            case DecimalShape():
                yield from self._base("bytes", x)
                digits = self.program.constant("decimal", values.decimal_reader(shape))
                yield f"{x} = {digits}({x})"
            case EnumShape():
                yield from self._base("long", x)
                members = dict(enumerate(shape.cls))
                found = values.EnumMembers(shape.cls.__name__, members)
                yield f"{x} = {self.program.constant('members', found)}[{x}]"
            case LiteralShape():
                yield from self._base(BASE[shape.scalar], x)
                known = self.program.constant("known", frozenset(shape.values))
                yield f"if {x} not in {known}: refuse({x})"

    def _base(self, base: str, x: str) -> Iterator[str]:
        """The lines for a primitive type."""
        match base:
            case "boolean":
                yield from (f"{x} = d[i] == 1", "i += 1")
            case "double" | "float":
                yield f"({x},) = unpack_{base}(d, i)"
                yield f"i += {8 if base == 'double' else 4}"
            case _:
                yield from (
                    f"{x} = d[i]",
                    f"if {x} < 128:",
                    f"    {x} = {x} >> 1 ^ -({x} & 1)",
                    "    i += 1",
                    f"else: {x}, i = read_long(d, i)",
                )
        if base in ("string", "bytes"):
            end = self.program.name("end")
            yield f"{end} = i + {x}"
            yield f"if {x} < 0 or {end} > n: cut_off()"
            made_of = f"str(d[i:{end}], 'utf-8')" if base == "string" else f"bytes(d[i:{end}])"
            yield from (f"{x} = {made_of}", f"i = {end}")

    def _union(self, shape: OptionalShape | UnionShape, kind: AvroType, x: str) -> Iterator[str]:
        inner = shape.inner if isinstance(shape, OptionalShape) else shape
        options = inner.options if isinstance(inner, UnionShape) else (inner,)
        by_name = {branch_name(each): each for each in options}
        yield from self._base("long", x)
        word = "if"
        for index, branch in enumerate(kind.branches):
            yield f"{word} {x} == {index}:"
            option = by_name.get(branch.name or branch.kind)
            lines = [f"{x} = None"] if option is None else self.read(option, branch, x)
            yield from (f"    {line}" for line in lines)
            word = "elif"
        yield f"else: no_branch({x})"

    def _block(self, shape: ArrayShape | MapShape, kind: AvroType, x: str) -> Iterator[str]:
        """The lines for blocks of items, of which the last one is empty."""
        count, size, item, key = map(self.program.name, ("count", "size", "item", "key"))
        assert kind.element is not None, "arrays and maps have one"
        is_map = isinstance(shape, MapShape)
        inner = shape.value if isinstance(shape, MapShape) else shape.element
        yield f"{x} = {'{}' if is_map else '[]'}"
        yield "while True:"
        lines = [*self._base("long", count), f"if {count} == 0: break", f"if {count} < 0:"]
        lines += [f"    {line}" for line in (f"{count} = -{count}", *self._base("long", size))]
        lines += [f"if {count} > n - i: cut_off()", f"for _ in range({count}):"]
        body = [*self._base("string", key)] if is_map else []
        body += self.read(inner, kind.element, item)
        body.append(f"{x}[{key}] = {item}" if is_map else f"{x}.append({item})")
        lines += [f"    {line}" for line in body]
        yield from (f"    {line}" for line in lines)
        if isinstance(shape, ArrayShape) and shape.make is not list:
            yield f"{x} = {self.program.constant('make', shape.make)}({x})"

    def _model(self, shape: ModelShape, kind: AvroType) -> str:
        if shape not in self._models:
            name = self._models[shape] = self.program.name("model")
            lines: list[str] = []
            parts: dict[str, str] = {}
            pairs = zip(shape.fields, kind.fields, strict=True)
            for index, (field, declared) in enumerate(pairs):
                parts[field.attribute] = f"a{index}"
                lines += self.read(field.shape, declared.type, f"a{index}")
            *before, last = made(self.program, shape, parts)
            self.program.define(name, "d, i, n", *lines, *before, f"{last}, i")
        return self._models[shape]


def _read_long(data: bytes, position: int) -> tuple[int, int]:
    number = 0
    for index in range(VARINT_BYTES_MAX):
        byte = data[position + index]
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            found = number >> 1 ^ -(number & 1)
            if not -values.INT64 <= found < values.INT64:
                break
            return found, position + index + 1
    raise ValueError("a number has more than 64 bits")


def _cut_off() -> None:
    raise ValueError("the bytes end within the value")


def _left_over(count: int) -> None:
    raise ValueError(f"{count} bytes are left over" if count > 0 else "the bytes end too early")


def _no_branch(index: int) -> None:
    raise ValueError(f"a union has no branch {index}")
