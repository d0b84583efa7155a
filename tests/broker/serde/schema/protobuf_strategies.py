"""Random Protobuf files: descriptors in the order in which texts declare things."""

from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileOptions,
)
from hypothesis import strategies as st

from broker.serde.schema.protobuf_builder import map_entry_name
from broker.serde.schema.protobuf_options import escaped_bytes, float_text

F = FieldDescriptorProto
NAMES = st.from_regex(r"[a-z][a-z0-9]{0,3}(_[a-z][a-z0-9]{0,2}){0,2}", fullmatch=True)
KEYWORDS = ("message", "enum", "option", "map", "optional", "reserved", "to", "max", "group")
FIELD_NAMES = NAMES | st.sampled_from(KEYWORDS)
TYPE_NAMES = st.from_regex(r"[A-Z][A-Za-z0-9]{0,4}", fullmatch=True)
TEXTS = st.text(max_size=6)
# Google's library takes defaults that are too small for all their digits for wrong ones.
FLOATS = st.floats(allow_subnormal=False)
SINGLE_FLOATS = st.floats(width=32, allow_subnormal=False)
INTEGERS = {
    F.TYPE_INT32: (-(2**31), 2**31 - 1),
    F.TYPE_SINT64: (-(2**63), 2**63 - 1),
    F.TYPE_UINT32: (0, 2**32 - 1),
    F.TYPE_FIXED64: (0, 2**64 - 1),
}
Named = tuple[int, str]  # a named type: message or enum, and its full name
SCALARS = [number for number in range(1, 19) if number not in (10, 11, 14)]
KEYS = [F.TYPE_STRING, F.TYPE_INT32, F.TYPE_BOOL, F.TYPE_SFIXED64]


@st.composite
def files(draw: st.DrawFn) -> FileDescriptorProto:
    """A valid file; its types refer to each other by full names."""
    proto3 = draw(st.booleans())
    file = FileDescriptorProto(name="default.proto")
    if proto3:
        file.syntax = "proto3"
    if draw(st.booleans()):
        file.package = ".".join(draw(st.lists(NAMES, min_size=1, max_size=3)))
    if draw(st.booleans()):
        file.dependency.append("google/protobuf/timestamp.proto")
    if draw(st.booleans()):
        file.options.java_package = draw(TEXTS)
        file.options.deprecated = True
        file.options.optimize_for = FileOptions.CODE_SIZE
    names = draw(st.lists(TYPE_NAMES, min_size=1, max_size=4, unique=True))
    prefix = f".{file.package}" if file.package else ""
    count = draw(st.integers(0, len(names)))
    known = [(F.TYPE_MESSAGE, f"{prefix}.{name}") for name in names[:count]]
    known += [(F.TYPE_ENUM, f"{prefix}.{name}") for name in names[count:]]
    for name in names[count:]:
        _fill_enum(draw, file.enum_type.add(name=name), proto3=proto3)
    for name in names[:count]:
        message = file.message_type.add(name=name)
        _fill_message(draw, message, known, proto3=proto3, scope=f"{prefix}.{name}", depth=1)
    has_service = draw(st.booleans())
    if count and has_service:
        service = file.service.add(name="Service")
        method = service.method.add(name="Call", input_type=known[0][1])
        method.output_type = known[count - 1][1]
        if draw(st.booleans()):
            method.server_streaming = True
        if draw(st.booleans()):
            method.options.deprecated = True
    return file


def _fill_enum(draw: st.DrawFn, enumeration: EnumDescriptorProto, *, proto3: bool) -> None:
    numbers = draw(st.lists(st.integers(-(2**31), 2**31 - 1), unique=True, max_size=3))
    numbers = [0, *(number for number in numbers if number)]
    for number in numbers:
        suffix = f"N{-number}" if number < 0 else f"P{number}"
        value = enumeration.value.add(name=f"{enumeration.name}_{suffix}", number=number)
        if draw(st.booleans()):
            value.options.deprecated = draw(st.booleans())
    if draw(st.booleans()):
        enumeration.options.deprecated = True
    if draw(st.booleans()):
        enumeration.reserved_name.append(f"{enumeration.name}_GONE")


def _fill_message(
    draw: st.DrawFn,
    message: DescriptorProto,
    known: list[Named],
    *,
    proto3: bool,
    scope: str,
    depth: int,
) -> None:
    names = draw(st.lists(FIELD_NAMES, max_size=6, unique_by=lambda name: map_entry_name(name)))
    in_oneof = [proto3 and draw(st.integers(0, 3)) == 0 for _ in names]
    order = sorted(range(len(names)), key=lambda index: in_oneof[index])
    if any(in_oneof):
        message.oneof_decl.add(name="choice_of")
    numbers = draw(st.permutations(range(1, len(names) + 1)))
    for index in order:
        field = message.field.add(name=names[index], number=numbers[index] * 7)
        field.label = F.LABEL_OPTIONAL
        if in_oneof[index]:
            field.oneof_index = 0
            _set_type(draw, field, known)
        elif draw(st.integers(0, 4)) == 0:
            _add_map(draw, message, field, known, scope)
        else:
            _set_type(draw, field, known)
            _set_label(draw, field, proto3=proto3)
        if draw(st.integers(0, 4)) == 0:
            field.options.deprecated = draw(st.booleans())
        if depth < 3 and draw(st.integers(0, 5)) == 0:
            _add_nested(draw, message, known, proto3=proto3, scope=scope, depth=depth)
    _add_synthetic_oneofs(message)
    if draw(st.booleans()):
        message.reserved_range.add(start=1000, end=draw(st.integers(1001, 2**29)))
        message.reserved_name.append("gone")
    if not proto3 and draw(st.booleans()):
        message.extension_range.add(start=100, end=200)


def _add_synthetic_oneofs(message: DescriptorProto) -> None:
    for field in message.field:
        if field.proto3_optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


def _add_nested(
    draw: st.DrawFn,
    message: DescriptorProto,
    known: list[Named],
    *,
    proto3: bool,
    scope: str,
    depth: int,
) -> None:
    name = f"Nested{len(message.nested_type)}"
    nested = message.nested_type.add(name=name)
    inner = f"{scope}.{name}"
    _fill_message(draw, nested, known, proto3=proto3, scope=inner, depth=depth + 1)


def _add_map(
    draw: st.DrawFn,
    message: DescriptorProto,
    field: FieldDescriptorProto,
    known: list[Named],
    scope: str,
) -> None:
    entry = message.nested_type.add(name=map_entry_name(field.name))
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL, type=draw(st.sampled_from(KEYS)))
    value = entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL)
    _set_type(draw, value, known)
    field.label = F.LABEL_REPEATED
    field.type = F.TYPE_MESSAGE
    field.type_name = f"{scope}.{entry.name}"


def _set_type(draw: st.DrawFn, field: FieldDescriptorProto, known: list[Named]) -> None:
    if known and draw(st.integers(0, 3)) == 0:
        field.type, field.type_name = draw(st.sampled_from(known))
    else:
        field.type = draw(st.sampled_from(SCALARS))


def _set_label(draw: st.DrawFn, field: FieldDescriptorProto, *, proto3: bool) -> None:
    labels = ["optional", "repeated", "plain" if proto3 else "required"]
    match draw(st.sampled_from(labels)):
        case "repeated":
            field.label = F.LABEL_REPEATED
        case "required":
            field.label = F.LABEL_REQUIRED
        case "optional" if proto3:
            field.proto3_optional = True
        case "optional" if draw(st.booleans()):
            _set_default(draw, field)
    if draw(st.integers(0, 4)) == 0:
        field.json_name = "json" + field.name.upper()


def _set_default(draw: st.DrawFn, field: FieldDescriptorProto) -> None:
    if field.type == F.TYPE_STRING:
        field.default_value = draw(TEXTS)
    elif field.type == F.TYPE_BYTES:
        field.default_value = escaped_bytes(draw(st.binary(max_size=5)))
    elif field.type == F.TYPE_ENUM:
        field.default_value = field.type_name.rpartition(".")[2] + "_P0"
    elif field.type == F.TYPE_BOOL:
        field.default_value = draw(st.sampled_from(["true", "false"]))
    elif field.type == F.TYPE_DOUBLE:
        field.default_value = float_text(draw(FLOATS))
    elif field.type == F.TYPE_FLOAT:
        field.default_value = float_text(draw(SINGLE_FLOATS), single=True)
    elif field.type in INTEGERS:
        field.default_value = str(draw(st.integers(*INTEGERS[field.type])))
