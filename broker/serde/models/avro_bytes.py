"""Models straight to Avro's bytes, without the dict that fastavro would need.

The functions are generated for one model and the schema that was derived from it. They take half
the time, for fastavro asks of every value what its schema says. Models that contain themselves are
left to fastavro, whose values are measured for their depth first.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any

from broker.serde.models import values
from broker.serde.models.avro_conversion import BASE, branch_name, written_test
from broker.serde.models.conversion import class_check, derived_first, reading_fields
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
from broker.serde.models.values import INT32, INT64
from broker.serde.schema.avro_types import AvroType

DOUBLE = Struct("<d").pack
FLOAT = Struct("<f").pack
GROUP_BITS = 14  # two bytes of a varint
GROUP = (1 << GROUP_BITS) - 1
SMALL = 64  # numbers from -64 on have one byte

TEMPLATES: dict[Scalar, str] = {
    Scalar.BOOLEAN: "(b'\\1' if {x} is True else b'\\0' if {x} is False else refuse({x}))",
    Scalar.INT: "(small[{x}] if type({x}) is int and -64 <= {x} < 64 else write_int({x}))",
    Scalar.LONG: "(small[{x}] if type({x}) is int and -64 <= {x} < 64 else write_long({x}))",
    Scalar.FLOAT: "pack_float({x} if type({x}) is float else number({x}))",
    Scalar.DOUBLE: "pack_double({x} if type({x}) is float else number({x}))",
    Scalar.STRING: "write_text({x})",
    Scalar.BYTES: "write_bytes({x} if type({x}) is bytes else refuse({x}))",
    Scalar.UUID: "(b'H' + uuid_text({x}).encode())",  # 36 bytes: H is 72
    Scalar.DATE: "write_long(days({x}))",
    Scalar.TIME: "write_long(day_micros({x}))",
    Scalar.TIMESTAMP: "write_long(micros({x}))",
    Scalar.LOCAL_TIMESTAMP: "write_long(local_micros({x}))",
    Scalar.DURATION: "write_long(micros_of({x}))",
}


# Any: what goes in is known to the shape alone.
def bytes_writer(title: str, shape: Shape, kind: AvroType) -> Callable[[Any], bytes]:
    """A function from values of a shape to the bytes of its schema."""
    writing = _BytesWriting(title)
    name = writing.program.name("write")
    writing.program.define(name, "x", f"return {writing.source(shape, kind, 'x')}")
    return writing.program.function(name)


class _BytesWriting:
    """Writes sources of functions; shapes and their types in the schema are walked together."""

    def __init__(self, title: str) -> None:
        self.program = Program(title)
        self.program.shared(
            **{name: each for name, each in vars(values).items() if callable(each)},
            **_WRITERS,
        )
        self._models: dict[ModelShape, str] = {}

    def source(self, shape: Shape, kind: AvroType, x: str) -> str:
        """The bytes of what is named x, as an expression."""
        match shape:
            case Scalar():
                return TEMPLATES[shape].format(x=x)
            case ModelShape():
                return f"{self._model(shape, kind)}({x})"
            case OptionalShape(inner=inner):
                null = _index([branch.kind for branch in kind.branches].index("null"))
                return f"({null} if {x} is None else {self._branch(inner, kind, x)})"
            case UnionShape():
                return self._branch(shape, kind, x)
            case ArrayShape(element=element):
                each = self.program.name("e")
                items = (
                    f"[{self.source(element, _element(kind), each)} for {each} in elements({x})]"
                )
                return f"write_items({items})"
            case MapShape(value=value):
                each, key = self.program.name("v"), self.program.name("k")
                item = f"write_text({key}) + {self.source(value, _element(kind), each)}"
                return f"write_items([{item} for {key}, {each} in {x}.items()])"
            case DecimalShape():
                digits = self.program.constant("decimal", values.decimal_writer(shape))
                return f"write_bytes({digits}({x}))"
            case EnumShape():
                indexes = {name: _number(index) for index, name in enumerate(shape.symbols)}
                found = self.program.constant("indexes", indexes)
                cls = self.program.constant("cls", shape.cls)
                return f"({found}[{x}._name_] if isinstance({x}, {cls}) else refuse({x}))"
            case LiteralShape():
                known = self.program.constant("known", frozenset(shape.values))
                name = "write_text" if BASE[shape.scalar] == "string" else "write_long"
                return f"{name}({x} if {x} in {known} else refuse({x}))"

    def _branch(self, shape: Shape, kind: AvroType, x: str) -> str:
        """The index of the branch and its bytes."""
        options = shape.options if isinstance(shape, UnionShape) else (shape,)
        names = [branch.name or branch.kind for branch in kind.branches]
        found = [(each, names.index(branch_name(each))) for each in derived_first(options)]
        if len(found) == 1:
            (option, index), *_ = found
            return f"{_index(index)} + {self.source(option, kind.branches[index], x)}"
        name, lines = self.program.name("union"), []
        for option, index in found:
            source = self.source(option, kind.branches[index], "x")
            test = written_test(self.program, option)
            lines.append(f"if {test}: return {_index(index)} + {source}")
        self.program.define(name, "x", *lines, "return refuse(x)")
        return f"{name}({x})"

    def _model(self, shape: ModelShape, kind: AvroType) -> str:
        if shape not in self._models:
            name = self._models[shape] = self.program.name("model")
            fields = reading_fields(shape)
            parts = [
                self.source(field.shape, declared.type, local)
                for (field, local, _), declared in zip(fields, kind.fields, strict=True)
            ]
            self.program.define(
                name,
                "m",
                class_check(self.program, shape),
                *(f"{local} = {where}" for _, local, where in fields),
                f"return {' + '.join(parts) or repr(b'')}",
            )
        return self._models[shape]


def _element(kind: AvroType) -> AvroType:
    assert kind.element is not None, "arrays and maps have one"
    return kind.element


def _number(number: int) -> bytes:
    """Zigzag and varint, the slow way."""
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _index(index: int) -> str:
    return repr(_number(index))


# A number from -64 to 63 is its own index, from the end if it is negative.
_SMALL = tuple(map(_number, (*range(SMALL), *range(-SMALL, 0))))
# Varints two bytes at a time: those that end a number, and those that others follow.
_LAST = [_number(~(rest >> 1) if rest & 1 else rest >> 1) for rest in range(GROUP + 1)]
_MORE = [bytes((rest & 0x7F | 0x80, rest >> 7 | 0x80)) for rest in range(GROUP + 1)]


def _varint(rest: int) -> bytes:
    out = b""
    while rest > GROUP:
        out += _MORE[rest & GROUP]
        rest >>= GROUP_BITS
    return out + _LAST[rest]


def _write_long(value: int) -> bytes:
    if type(value) is not int or not -INT64 <= value < INT64:
        value = values.whole(value)
    return _varint((value << 1) ^ (value >> 63))


def _write_int(value: int) -> bytes:
    if type(value) is not int or not -INT32 <= value < INT32:
        value = values.whole32(value)
    return _varint((value << 1) ^ (value >> 63))


def _write_bytes(value: bytes) -> bytes:
    size = len(value) << 1
    return (_LAST[size] if size <= GROUP else _varint(size)) + value


def _write_text(value: str) -> bytes:
    return _write_bytes((value if type(value) is str else values.text(value)).encode())


def _write_items(items: list[bytes]) -> bytes:
    """An array or map in one block, and the empty block that ends it."""
    return _varint(len(items) << 1) + b"".join(items) + b"\0" if items else b"\0"


_WRITERS = {
    "small": _SMALL,
    "pack_double": DOUBLE,
    "pack_float": FLOAT,
    "write_long": _write_long,
    "write_int": _write_int,
    "write_bytes": _write_bytes,
    "write_text": _write_text,
    "write_items": _write_items,
}
