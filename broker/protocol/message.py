"""Generates the encode and decode functions of declared messages, once per class and version.

The generated code is plain straight-line Python: runs of fixed-size fields become one struct call,
other fields one call into broker.protocol.primitives. Record bytes are not copied: decoding returns
views of the frame, encoding omits them from the buffer and returns their positions (attachments).
"""

from collections.abc import Callable
from dataclasses import MISSING, fields
from struct import Struct
from struct import error as StructError
from typing import Any, Protocol, TypeVar, cast

from broker.errors import MalformedMessage
from broker.protocol import primitives
from broker.protocol.wire import SPECS, VERSION_MAX, Wire

T = TypeVar("T")

FIXED = {
    "bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i",
    "uint32": "I", "int64": "q", "float64": "d",
}  # fmt: skip


class Attachment(Protocol):
    """Bytes that are not in the encoded buffer: a view, or a slice of a file."""

    def __len__(self) -> int:
        """Size in bytes."""
        ...


Attachments = list[tuple[int, Attachment]]
# Any: each decoder returns messages of one class.
Decoder = Callable[[memoryview, int], tuple[Any, int]]
Encoder = Callable[[object, bytearray, Attachments], None]

_DECODERS: dict[tuple[type[object], int, bool], Decoder] = {}
_ENCODERS: dict[tuple[type[object], int, bool], Encoder] = {}

# Whole messages define whether they are flexible; parts are like their message.
_TOP_DECODERS: dict[tuple[type[object], int], Decoder] = {}
_TOP_ENCODERS: dict[tuple[type[object], int], Encoder] = {}


def is_flexible(cls: type[object], version: int) -> bool:
    """Whether this version of the message has compact types and tagged fields."""
    spec = SPECS.get(cls)
    return version >= (VERSION_MAX if spec is None else spec.flexible_first)


def decode(cls: type[T], buffer: memoryview, version: int, position: int = 0) -> tuple[T, int]:
    """Decode one message; returns it and the position after it."""
    decoder = _TOP_DECODERS.get((cls, version)) or _top_decoder(cls, version)
    try:
        message, position = decoder(buffer, position)
    except (StructError, IndexError) as error:
        raise MalformedMessage(f"{cls.__name__} v{version} ends too early") from error
    return message, position


def encode(message: object, version: int, out: bytearray, attachments: Attachments) -> None:
    """Append the message to `out`; record bytes go to `attachments` with their position."""
    cls = type(message)
    encoder = _TOP_ENCODERS.get((cls, version)) or _top_encoder(cls, version)
    encoder(message, out, attachments)


def _top_decoder(cls: type[object], version: int) -> Decoder:
    flexible = is_flexible(cls, version)
    found = _DECODERS.get((cls, version, flexible)) or _decoder(cls, version, flexible)
    _TOP_DECODERS[(cls, version)] = found
    return found


def _top_encoder(cls: type[object], version: int) -> Encoder:
    flexible = is_flexible(cls, version)
    found = _ENCODERS.get((cls, version, flexible)) or _encoder(cls, version, flexible)
    _TOP_ENCODERS[(cls, version)] = found
    return found


def to_bytes(message: object, version: int) -> bytes:
    """The whole message as bytes, including attachments."""
    out = bytearray()
    attachments: Attachments = []
    encode(message, version, out, attachments)
    parts: list[bytes] = []
    start = 0
    for position, attachment in attachments:
        parts += (bytes(out[start:position]), bytes(cast(bytes, attachment)))
        start = position
    return b"".join((*parts, bytes(out[start:])))


def from_bytes(cls: type[T], data: bytes | memoryview, version: int) -> T:
    """Decode bytes that contain exactly one message; extra bytes are refused."""
    message, position = decode(cls, memoryview(data), version)
    if position != len(data):
        raise MalformedMessage(
            f"{cls.__name__} v{version} has {len(data) - position} bytes too many"
        )
    return message


def _wires(cls: type[object], version: int, *, tagged: bool) -> list[tuple[str, Wire]]:
    found = []
    for item in fields(cls):  # type: ignore[arg-type]  # every message class is a dataclass
        wire: Wire = item.metadata["wire"]
        if version in wire.versions and (version in wire.tagged) == tagged:
            found.append((item.name, wire))
    return sorted(found, key=lambda pair: pair[1].tag or 0) if tagged else found


class _Source:
    """Lines of one generated function and the names it uses."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, object] = {"MalformedMessage": MalformedMessage}

    def add(self, line: str, indent: int = 1) -> None:
        self.lines.append("    " * indent + line)

    def name(self, prefix: str, value: object) -> str:
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def primitive(self, name: str) -> str:
        self.names[name] = getattr(primitives, name)
        return name

    def compile(self, signature: str) -> object:
        text = "\n".join((f"def generated({signature}):", *self.lines))
        exec(compile(text, "<generated codec>", "exec"), self.names)
        return self.names["generated"]


def _runs(wires: list[tuple[str, Wire]]) -> list[list[tuple[str, Wire]]]:
    """Group adjacent fixed-size fields; every other field is a group of its own."""
    runs: list[list[tuple[str, Wire]]] = []
    for name, wire in wires:
        fixed = wire.kind in FIXED
        if fixed and runs and runs[-1][-1][1].kind in FIXED:
            runs[-1].append((name, wire))
        else:
            runs.append([(name, wire)])
    return runs


# --- decoding ---------------------------------------------------------------------------------


def _decoder(cls: type[object], version: int, flexible: bool) -> Decoder:
    source = _Source()
    for run in _runs(_wires(cls, version, tagged=False)):
        if run[0][1].kind in FIXED:
            _decode_fixed(source, run)
        else:
            _decode_field(source, run[0], (version, flexible), indent=1)
    if flexible:
        _decode_tagged(source, cls, version)
    arguments = ", ".join(_argument(source, cls, version))
    source.add(f"return {source.name('cls', cls)}({arguments}), position")
    decoder = cast(Decoder, source.compile("buffer, position"))
    _DECODERS[(cls, version, flexible)] = decoder
    return decoder


def _argument(source: _Source, cls: type[object], version: int) -> list[str]:
    """Constructor arguments: decoded fields by name, the others by their default."""
    present = {name for name, _ in _wires(cls, version, tagged=False)}
    arguments = []
    for item in fields(cls):  # type: ignore[arg-type]
        if item.name in present:
            arguments.append(f"v_{item.name}")
            continue
        default = item.default_factory if item.default is MISSING else item.default
        name = source.name("default", default)
        absent = f"{name}()" if item.default is MISSING else name
        if version in item.metadata["wire"].versions:
            source.add(f"if v_{item.name} is ABSENT: v_{item.name} = {absent}")
            arguments.append(f"v_{item.name}")
        else:
            arguments.append(absent)
    return arguments


def _decode_fixed(source: _Source, run: list[tuple[str, Wire]], indent: int = 1) -> None:
    layout = Struct(">" + "".join(FIXED[wire.kind] for _, wire in run))
    unpack = source.name("unpack", layout.unpack_from)
    targets = "".join(f"v_{name}, " for name, _ in run)
    source.add(f"{targets}= {unpack}(buffer, position)", indent)
    source.add(f"position += {layout.size}", indent)


def _reader(wire_kind: str, *, nullable: bool, compact: bool) -> str:
    if wire_kind == "uuid":
        return "read_uuid"
    kind = "nullable_records" if wire_kind == "records" else wire_kind
    middle = "nullable_" if nullable and wire_kind != "records" else ""
    return f"read_{'compact_' if compact else ''}{middle}{kind}"


def _decode_field(
    source: _Source, field: tuple[str, Wire], how: tuple[int, bool], indent: int
) -> None:
    name, wire = field
    version, flexible = how
    nullable = version in wire.nullable
    if wire.kind in FIXED:
        _decode_fixed(source, [field], indent)
    elif wire.kind == "array":
        _decode_array(source, field, how, indent)
    elif wire.kind == "struct":
        decoder = source.name("decode", _late_decoder(cast("type[object]", wire.element), how))
        if nullable:
            source.add("present, position = buffer[position], position + 1", indent)
            source.add("if present > 127: " + f"v_{name} = None", indent)
            source.add(f"else: v_{name}, position = {decoder}(buffer, position)", indent)
        else:
            source.add(f"v_{name}, position = {decoder}(buffer, position)", indent)
    else:
        reader = _reader(wire.kind, nullable=nullable, compact=flexible and wire.compact)
        source.add(f"v_{name}, position = {source.primitive(reader)}(buffer, position)", indent)


def _decode_array(
    source: _Source, field: tuple[str, Wire], how: tuple[int, bool], indent: int
) -> None:
    name, wire = field
    version, flexible = how
    counter = source.primitive("read_compact_count" if flexible else "read_count")
    if flexible:
        # A count below 127 is one byte; the common case is one element, without a call.
        source.add("if buffer[position] == 2: size = 1; position += 1", indent)
        source.add(f"else: size, position = {counter}(buffer, position)", indent)
    else:
        source.add(f"size, position = {counter}(buffer, position)", indent)
    if version in wire.nullable:
        source.add(f"v_{name} = None if size < 0 else []", indent)
    else:
        source.add(f"if size < 0: raise MalformedMessage('array \"{name}\" is null')", indent)
        source.add(f"v_{name} = []", indent)
    if isinstance(wire.element, str) and wire.element in FIXED:
        item = Struct(f">{FIXED[wire.element]}")
        unpack = source.name("unpack", item.unpack_from)
        source.add("for _ in range(size):", indent)
        source.add(f"v_{name} += {unpack}(buffer, position)", indent + 1)
        source.add(f"position += {item.size}", indent + 1)
        return
    if isinstance(wire.element, str):
        reader = source.primitive(_reader(wire.element, nullable=False, compact=flexible))
    else:
        element = cast("type[object]", wire.element)
        reader = source.name("decode", _late_decoder(element, how))
    source.add("for _ in range(size):", indent)
    source.add(f"item, position = {reader}(buffer, position)", indent + 1)
    source.add(f"v_{name}.append(item)", indent + 1)


def _decode_tagged(source: _Source, cls: type[object], version: int) -> None:
    wires = _wires(cls, version, tagged=True)
    if not wires:
        # Usually there are none: one byte, 0.
        skip = source.primitive("skip_tagged_fields")
        source.add(f"position = {skip}(buffer, position) if buffer[position] else position + 1")
        return
    source.names["ABSENT"] = object()
    for name, _ in wires:
        source.add(f"v_{name} = ABSENT")
    varint = source.primitive("read_unsigned_varint")
    source.add(f"tags, position = {varint}(buffer, position)")
    source.add("for _ in range(tags):")
    source.add(f"tag, position = {varint}(buffer, position)", 2)
    source.add(f"size, position = {varint}(buffer, position)", 2)
    source.add("end = position + size", 2)
    source.add("if end > len(buffer): raise MalformedMessage('tagged field runs past the end')", 2)
    for name, wire in wires:
        source.add(f"if tag == {wire.tag}:", 2)
        _decode_field(source, (name, wire), (version, True), indent=3)
        source.add("if position != end: raise MalformedMessage('tagged field has a wrong size')", 3)
    source.add("position = end", 2)


def _late_decoder(cls: type[object], how: tuple[int, bool]) -> Decoder:
    """The decoder of a nested struct, generated now so that the outer one calls it directly."""
    return _DECODERS.get((cls, *how)) or _decoder(cls, *how)


# --- encoding ---------------------------------------------------------------------------------


def _encoder(cls: type[object], version: int, flexible: bool) -> Encoder:
    source = _Source()
    for run in _runs(_wires(cls, version, tagged=False)):
        if run[0][1].kind in FIXED:
            _encode_fixed(source, run)
        else:
            _encode_field(source, run[0], (version, flexible), indent=1)
    if flexible:
        _encode_tagged(source, cls, version)
    if not source.lines:
        source.add("pass")
    encoder = cast(Encoder, source.compile("message, out, attachments"))
    _ENCODERS[(cls, version, flexible)] = encoder
    return encoder


def _encode_fixed(source: _Source, run: list[tuple[str, Wire]], indent: int = 1) -> None:
    layout = Struct(">" + "".join(FIXED[wire.kind] for _, wire in run))
    pack = source.name("pack", layout.pack)
    values = ", ".join(f"message.{name}" for name, _ in run)
    source.add(f"out += {pack}({values})", indent)


def _encode_field(
    source: _Source, field: tuple[str, Wire], how: tuple[int, bool], indent: int
) -> None:
    name, wire = field
    version, flexible = how
    prefix = "compact_" if flexible and wire.compact else ""
    nullable = version in wire.nullable
    if wire.kind in FIXED:
        _encode_fixed(source, [field], indent)
    elif wire.kind == "uuid":
        source.add(f"out += message.{name}", indent)
    elif wire.kind == "string":
        # Handlers use None for "no text"; versions without null get the empty string.
        value = f"message.{name}" if nullable else f"message.{name} or ''"
        source.add(f"out += {source.primitive(prefix + 'string')}({value})", indent)
    elif wire.kind == "bytes":
        value = f"message.{name}" if nullable else f"message.{name} or b''"
        source.add(f"out += {source.primitive(prefix + 'sized')}({value})", indent)
    elif wire.kind == "records":
        _encode_records(source, name, prefix, indent)
    elif wire.kind == "array":
        _encode_array(source, field, how, indent)
    else:
        encoder = source.name("encode", _late_encoder(cast("type[object]", wire.element), how))
        call = f"{encoder}(message.{name}, out, attachments)"
        if nullable:
            source.add(f"if message.{name} is None: out += b'\\xff'", indent)
            source.add("else:", indent)
            source.add("out += b'\\x01'", indent + 1)
            source.add(call, indent + 1)
        else:
            source.add(call, indent)


def _encode_records(source: _Source, name: str, prefix: str, indent: int) -> None:
    counter = source.primitive(prefix + "count")
    source.add(f"value = message.{name}", indent)
    source.add(f"if value is None: out += {counter}(-1)", indent)
    source.add("else:", indent)
    source.add(f"out += {counter}(len(value))", indent + 1)
    source.add("if len(value): attachments.append((len(out), value))", indent + 1)


def _encode_array(
    source: _Source, field: tuple[str, Wire], how: tuple[int, bool], indent: int
) -> None:
    name, wire = field
    version, flexible = how
    prefix = "compact_" if flexible else ""
    counter = source.primitive(prefix + "count")
    source.add(f"items = message.{name}", indent)
    if version in wire.nullable:
        source.add(f"if items is None: out += {counter}(-1); items = ()", indent)
        source.add(f"else: out += {counter}(len(items))", indent)
    else:
        source.add("if items is None: items = ()", indent)
        source.add(f"out += {counter}(len(items))", indent)
    if isinstance(wire.element, str) and wire.element in FIXED:
        pack = source.name("pack", Struct(f">{FIXED[wire.element]}").pack)
        source.add(f"for item in items: out += {pack}(item)", indent)
    elif wire.element == "uuid":
        source.add("for item in items: out += item", indent)
    elif isinstance(wire.element, str):
        kind = {"string": "string", "bytes": "sized"}[wire.element]
        source.add(f"for item in items: out += {source.primitive(prefix + kind)}(item)", indent)
    else:
        element = cast("type[object]", wire.element)
        encoder = source.name("encode", _late_encoder(element, how))
        source.add(f"for item in items: {encoder}(item, out, attachments)", indent)


def _encode_tagged(source: _Source, cls: type[object], version: int) -> None:
    wires = _wires(cls, version, tagged=True)
    if not wires:
        source.add("out += b'\\0'")
        return
    varint = source.primitive("unsigned_varint")
    source.add("whole, tagged = out, []")
    for name, wire in wires:
        default = wire.default
        if wire.kind == "struct" and default is not None:
            default = cast("type[object]", wire.element)()
        source.add(f"if message.{name} != {source.name('default', default)}:")
        source.add("out = bytearray()", 2)
        _encode_field(source, (name, wire), (version, True), indent=2)
        tag = cast(int, wire.tag)
        source.add(f"tagged += ({varint}({tag}), {varint}(len(out)), out)", 2)
    source.add("out = whole")
    source.add(f"out += {varint}(len(tagged) // 3)")
    source.add("for item in tagged: out += item")


def _late_encoder(cls: type[object], how: tuple[int, bool]) -> Encoder:
    return _ENCODERS.get((cls, *how)) or _encoder(cls, *how)
