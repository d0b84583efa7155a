"""Records of scalar fields are read by a function that is written for their schema.

It takes a third of the time of fastavro, which builds a dict by walking the schema each time. For a
record of a nullable long ID, which is wanted, and a string, which is not, the function is

    def decode(data):
        size = len(data)
        position = 5
        byte = data[position]
        position += 1
        if byte == 2:
            (a varint at position)
            value0 = number >> 1 ^ -(number & 1)
        elif byte == 0:
            value0 = None
        else:
            raise wrong("branch")
        (a varint at position)
        position += number >> 1
        ...
        return (value0,)

Reading past the end raises IndexError, or is found by comparing with the size.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from broker.errors import SerdeError
from broker.serde.schema.avro_tree import AvroNode

Convert = Callable[..., object]
Row = tuple[object, ...]

KINDS = frozenset({"boolean", "int", "long", "float", "double", "string", "bytes", "enum"})
FIELDS_MAX = 200  # larger functions take long to compile
_RANGES = {"int": 31, "long": 63, "enum": 31}
_FLOATS = {"float": (struct.Struct("<f"), 4), "double": (struct.Struct("<d"), 8)}


def is_flat(node: AvroNode) -> bool:
    """Whether a record has nothing but scalar fields."""
    return (
        node.kind == "record"
        and node.null_at is None
        and len(node.fields) <= FIELDS_MAX
        and all(each.type.kind in KINDS for each in node.fields)
    )


def flat_reader(
    node: AvroNode, wanted: Sequence[tuple[str | None, Convert | None]], *, skip: int
) -> Callable[[bytes], Row]:
    """From bytes to a row of the fields that are wanted, each with its conversion; None is null."""
    function = _Function()
    function.add(1, "size = len(data)", f"position = {skip}")
    names = {each.name: index for index, each in enumerate(node.fields)}
    for index, each in enumerate(node.fields):
        function.field(f"value{index}", each.type)
    items = []
    for index, (name, convert) in enumerate(wanted):
        value = "None" if name is None else f"value{names[name]}"
        if name is not None and convert is not None:
            function.bound[f"convert{index}"] = convert
            value = f"None if {value} is None else convert{index}({value})"
        items.append(f"{value},")
    function.add(1, "if position != size: raise left_over(size, position)")
    function.add(1, f"return ({' '.join(items)})")
    return function.made()


@dataclass(slots=True)
class _Function:
    """The text of a function while it is written, and what its names stand for."""

    lines: list[str] = field(default_factory=lambda: ["def decode(data):"])
    bound: dict[str, object] = field(
        default_factory=lambda: {"left_over": _left_over, "wrong": _wrong}
    )

    def add(self, level: int, *lines: str) -> None:
        self.lines.extend("    " * level + line for line in lines)

    def field(self, name: str, node: AvroNode) -> None:
        if node.null_at is None:
            self._value(1, name, node)
            return
        present, null = (2, 0) if node.null_at == 0 else (0, 2)
        self.add(1, "byte = data[position]", "position += 1", f"if byte == {present}:")
        self._value(2, name, node)
        self.add(1, f"elif byte == {null}:", f"    {name} = None")
        self.add(1, "else:", '    raise wrong("branch of a union")')

    def _value(self, level: int, name: str, node: AvroNode) -> None:
        match node.kind:
            case "boolean":
                self.add(level, "byte = data[position]", "position += 1")
                self.add(level, 'if byte > 1: raise wrong("boolean")', f"{name} = byte == 1")
            case "float" | "double":
                layout, size = _FLOATS[node.kind]
                self.bound[node.kind] = layout.unpack_from
                self.add(level, f"{name}, = {node.kind}(data, position)", f"position += {size}")
            case "string" | "bytes":
                self._number(level, 63)
                self.add(level, "end = position + (number >> 1)")
                self.add(level, 'if number & 1 or end > size: raise wrong("length")')
                text = ".decode()" if node.kind == "string" else ""
                self.add(level, f"{name} = data[position:end]{text}", "position = end")
            case "enum":
                self._number(level, 31)
                self.bound[f"{name}_symbols"] = node.symbols
                self.add(level, 'if number & 1: raise wrong("symbol")')
                self.add(level, f"{name} = {name}_symbols[number >> 1]")
            case _:
                self._number(level, _RANGES[node.kind])
                self.add(level, f"{name} = number >> 1 ^ -(number & 1)")

    def _number(self, level: int, bits: int) -> None:
        """A varint; almost always its first byte is its last, or a few follow."""
        self.add(
            level,
            "byte = data[position]",
            "position += 1",
            "number = byte & 127",
            "shift = 7",
            "while byte > 127:",
            "    byte = data[position]",
            "    position += 1",
            "    number |= (byte & 127) << shift",
            "    shift += 7",
            '    if shift > 70: raise wrong("number")',
            f'if number >= {1 << bits + 1}: raise wrong("number")',
        )

    def made(self) -> Callable[[bytes], Row]:
        exec(compile("\n".join(self.lines), "<generated Avro decoder>", "exec"), self.bound)
        found: Callable[[bytes], Row] = self.bound["decode"]  # type: ignore[assignment]
        return found


def _left_over(size: int, position: int) -> SerdeError:
    return SerdeError(f"{size - position} bytes are left after the Avro value")


def _wrong(what: str) -> SerdeError:
    return SerdeError(f"the bytes do not match their Avro schema: invalid {what}")
