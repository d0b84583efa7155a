"""build_file: the descriptor of a parsed .proto file.

Names of types are not resolved, and it is not yet known whether a named type is a message or an
enum: the pool determines that.
"""

from collections.abc import Iterable

from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
    UninterpretedOption,
)
from google.protobuf.message import Message  # type: ignore[import-untyped]

from broker.errors import SchemaError
from broker.serde.schema.protobuf_options import (
    escaped_bytes,
    float_text,
    set_options,
    uninterpreted_value,
)
from broker.serde.schema.protobuf_text import (
    FIELD_NUMBER_MAX,
    INT32_MAX,
    NESTING_MAX,
    EnumNode,
    EnumValueNode,
    ExtendNode,
    Extensions,
    FieldNode,
    FileNode,
    ImportNode,
    Item,
    MessageNode,
    MethodNode,
    OneofNode,
    PackageNode,
    Reserved,
    ServiceNode,
)

IMPORTS_MAX = 1000
PACKAGE_PARTS_MAX = 100

SCALARS = {
    "double": FieldDescriptorProto.TYPE_DOUBLE,
    "float": FieldDescriptorProto.TYPE_FLOAT,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "fixed64": FieldDescriptorProto.TYPE_FIXED64,
    "fixed32": FieldDescriptorProto.TYPE_FIXED32,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
    "sfixed32": FieldDescriptorProto.TYPE_SFIXED32,
    "sfixed64": FieldDescriptorProto.TYPE_SFIXED64,
    "sint32": FieldDescriptorProto.TYPE_SINT32,
    "sint64": FieldDescriptorProto.TYPE_SINT64,
}
LABELS: dict[str, int] = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}
KEY_TYPES = frozenset(SCALARS) - {"double", "float", "bytes"}
FLOATS = frozenset({FieldDescriptorProto.TYPE_DOUBLE, FieldDescriptorProto.TYPE_FLOAT})


def build_file(node: FileNode, name: str) -> FileDescriptorProto:
    """The descriptor of a file; SchemaError for anything that its syntax does not allow."""
    file = FileDescriptorProto(name=name)
    if node.syntax:
        file.syntax = node.syntax
    builder = _Builder(proto3=node.syntax == "proto3")
    options = []
    for statement in node.statements:
        match statement:
            case ImportNode():
                _add_import(file, statement)
            case PackageNode():
                _set_package(file, statement)
            case MessageNode():
                builder.message(file.message_type.add(), statement, depth=1)
            case EnumNode():
                builder.enumeration(file.enum_type.add(), statement)
            case ExtendNode():
                builder.extend(file.extension, statement)
            case ServiceNode():
                builder.service(file.service.add(), statement)
            case _:
                options.append(statement)
    _set_options_of(file, options)
    return file


def _set_package(file: FileDescriptorProto, node: PackageNode) -> None:
    if file.HasField("package"):
        raise SchemaError("the file has more than one package")
    # Names are looked up in every enclosing part of the package.
    if node.name.count(".") >= PACKAGE_PARTS_MAX:
        raise SchemaError(f"the package has more than {PACKAGE_PARTS_MAX} parts")
    file.package = node.name


def _add_import(file: FileDescriptorProto, node: ImportNode) -> None:
    if len(file.dependency) >= IMPORTS_MAX:
        raise SchemaError(f"the file has more than {IMPORTS_MAX} imports")
    if node.path in file.dependency:
        raise SchemaError(f'import "{node.path}" appears twice')
    if node.modifier == "public":
        file.public_dependency.append(len(file.dependency))
    elif node.modifier == "weak":
        file.weak_dependency.append(len(file.dependency))
    file.dependency.append(node.path)


class _Builder:
    """Fills descriptors; differences between proto2 and proto3 are handled here."""

    def __init__(self, *, proto3: bool) -> None:
        self._proto3 = proto3

    def message(self, message: DescriptorProto, node: MessageNode, *, depth: int) -> None:
        """Fill a message from its statements."""
        message.name = node.name
        self._body(message, node.items, depth)

    def _body(self, message: DescriptorProto, items: Iterable[Item], depth: int) -> None:
        _check_depth(depth)
        options = []
        for item in items:
            match item:
                case FieldNode():
                    self._field(message, item, depth)
                case OneofNode():
                    self._oneof(message, item, depth)
                case MessageNode():
                    self.message(message.nested_type.add(), item, depth=depth + 1)
                case EnumNode():
                    self.enumeration(message.enum_type.add(), item)
                case ExtendNode():
                    self.extend(message.extension, item)
                case Reserved():
                    self._reserved(message, item)
                case Extensions():
                    _add_extension_ranges(message, item)
                case _:
                    options.append(item)
        _set_options_of(message, options)
        check_map_entry(message)
        self._make_optionals_oneofs(message)

    def _oneof(self, message: DescriptorProto, node: OneofNode, depth: int) -> None:
        index = len(message.oneof_decl)
        oneof = message.oneof_decl.add(name=node.name)
        options = []
        for item in node.items:
            if not isinstance(item, FieldNode):
                options.append(item)
                continue
            self._field(message, item, depth, in_oneof=True)
            message.field[-1].oneof_index = index
        _set_options_of(oneof, options)
        if len(options) == len(node.items):
            raise SchemaError(f'oneof "{node.name}" has no fields')

    def _field(
        self, message: DescriptorProto, node: FieldNode, depth: int, *, in_oneof: bool = False
    ) -> None:
        field = message.field.add()
        if node.key is not None:
            self._map(message, field, node)
        elif node.body is not None:
            self._group(message, field, node, depth)
        self._fill(field, node, in_oneof=in_oneof)

    def _map(self, message: DescriptorProto, field: FieldDescriptorProto, node: FieldNode) -> None:
        if node.key not in KEY_TYPES:
            raise SchemaError(f'"{node.key}" cannot be the type of keys of map "{node.name}"')
        entry = message.nested_type.add(name=map_entry_name(node.name))
        entry.options.map_entry = True
        optional = FieldDescriptorProto.LABEL_OPTIONAL
        entry.field.add(name="key", number=1, label=optional, type=SCALARS[node.key])
        value = entry.field.add(name="value", number=2, label=optional)
        _set_type(value, node.type_name)
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = entry.name

    def _group(
        self, message: DescriptorProto, field: FieldDescriptorProto, node: FieldNode, depth: int
    ) -> None:
        if self._proto3:
            raise SchemaError(f'group "{node.name}": groups are not allowed in proto3')
        group = message.nested_type.add(name=node.name)
        self._body(group, node.body or (), depth + 1)
        field.type = FieldDescriptorProto.TYPE_GROUP
        field.type_name = node.name

    def _fill(self, field: FieldDescriptorProto, node: FieldNode, *, in_oneof: bool) -> None:
        field.name = node.name if node.body is None else node.name.lower()
        field.number = node.number
        if not 1 <= node.number <= FIELD_NUMBER_MAX:
            raise SchemaError(f'field "{node.name}" cannot have the number {node.number}')
        field.label = self._label(node, in_oneof=in_oneof)
        if not field.type_name:
            _set_type(field, node.type_name)
        if node.label == "optional" and self._proto3:
            field.proto3_optional = True
        if node.options:
            self._field_options(field, node)

    def _label(self, node: FieldNode, *, in_oneof: bool) -> int:
        if node.key is not None:
            return LABELS["repeated"]
        if node.label == "required" and self._proto3:
            raise SchemaError(f'field "{node.name}": proto3 has no required fields')
        if node.label is None and not in_oneof and not self._proto3:
            raise SchemaError(
                f'field "{node.name}" must be optional, required or repeated in proto2',
                hint='write syntax = "proto3"; in the first line if it is proto3',
            )
        return LABELS[node.label or "optional"]

    def _field_options(self, field: FieldDescriptorProto, node: FieldNode) -> None:
        others = []
        for option in node.options:
            name = option.name[0].name_part if len(option.name) == 1 else ""
            if option.name[0].is_extension or name not in ("default", "json_name"):
                others.append(option)
            elif name == "json_name":
                field.json_name = _text_value(option, f'json_name of field "{node.name}"')
            else:
                self._default(field, option)
        _set_options_of(field, others)

    def _default(self, field: FieldDescriptorProto, option: UninterpretedOption) -> None:
        if self._proto3:
            raise SchemaError(f'field "{field.name}": proto3 has no default values')
        where = f'default of field "{field.name}"'
        kind = field.type if field.HasField("type") else FieldDescriptorProto.TYPE_ENUM
        if kind == FieldDescriptorProto.TYPE_STRING:
            field.default_value = _text_value(option, where)
        elif kind == FieldDescriptorProto.TYPE_BYTES:
            _text_value(option, where, utf8=False)
            field.default_value = escaped_bytes(option.string_value)
        elif option.HasField("string_value") or option.HasField("aggregate_value"):
            raise SchemaError(f"{where} has a different type than the field")
        elif kind in FLOATS:
            field.default_value = _float_value(option, where, kind)
        else:
            field.default_value = uninterpreted_value(option)

    def _make_optionals_oneofs(self, message: DescriptorProto) -> None:
        if not self._proto3:
            return
        taken = None
        for field in message.field:
            if field.proto3_optional:
                if taken is None:
                    taken = {other.name for other in message.field}
                    taken.update(oneof.name for oneof in message.oneof_decl)
                name = field.name if field.name.startswith("_") else f"_{field.name}"
                while name in taken:
                    name = f"X{name}"
                taken.add(name)
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=name)

    def extend(self, extensions: "list[FieldDescriptorProto]", node: ExtendNode) -> None:
        """Add the fields that extend another message."""
        for item in node.fields:
            if item.body is not None:
                raise SchemaError(f'group "{item.name}": groups in extend are not supported')
            field = extensions.add()  # type: ignore[attr-defined]
            field.extendee = node.extendee
            self._fill(field, item, in_oneof=False)

    def enumeration(self, enumeration: EnumDescriptorProto, node: EnumNode) -> None:
        """Fill an enum from its statements."""
        enumeration.name = node.name
        options = []
        for item in node.items:
            match item:
                case EnumValueNode():
                    value = enumeration.value.add(name=item.name, number=item.number)
                    _set_options_of(value, item.options)
                case Reserved():
                    for numbers in item.ranges:
                        last = INT32_MAX if numbers.last is None else numbers.last
                        enumeration.reserved_range.add(start=numbers.first, end=last)
                    enumeration.reserved_name.extend(item.names)
                case _:
                    options.append(item)
        _set_options_of(enumeration, options)

    def _reserved(self, message: DescriptorProto, node: Reserved) -> None:
        for numbers in node.ranges:
            last = FIELD_NUMBER_MAX if numbers.last is None else numbers.last
            message.reserved_range.add(start=numbers.first, end=_after(last))
        message.reserved_name.extend(node.names)

    def service(self, service: ServiceDescriptorProto, node: ServiceNode) -> None:
        """Fill a service from its statements."""
        service.name = node.name
        options = []
        for item in node.items:
            if not isinstance(item, MethodNode):
                options.append(item)
                continue
            method = service.method.add(
                name=item.name, input_type=item.input_type, output_type=item.output_type
            )
            if item.input_streams:
                method.client_streaming = True
            if item.output_streams:
                method.server_streaming = True
            _set_options_of(method, item.options)
        _set_options_of(service, options)


def _check_depth(depth: int) -> None:
    if depth > NESTING_MAX:
        raise SchemaError(f"messages are nested more than {NESTING_MAX} deep")


def _set_options_of(declaration: Message, options: list[UninterpretedOption]) -> None:
    # A descriptor with empty options is not equal to one without options.
    if options:
        set_options(declaration.options, options)


def check_map_entry(message: DescriptorProto) -> None:
    """Refuse a map entry with fields other than key and value."""
    if message.options.map_entry:
        fields = {(field.number, field.name, field.label) for field in message.field}
        optional = LABELS["optional"]
        if len(message.field) != 2 or fields != {(1, "key", optional), (2, "value", optional)}:
            raise SchemaError(f'map entry "{message.name}" has other fields than key and value')


def map_entry_name(field_name: str) -> str:
    """The name of the message for a map's entries."""
    return "".join(part[:1].upper() + part[1:] for part in field_name.split("_")) + "Entry"


def _after(last: int) -> int:
    if last >= INT32_MAX:
        raise SchemaError(f"the number {last} is too large")
    return last + 1


def _add_extension_ranges(message: DescriptorProto, node: Extensions) -> None:
    for numbers in node.ranges:
        last = FIELD_NUMBER_MAX if numbers.last is None else numbers.last
        added = message.extension_range.add(start=numbers.first, end=_after(last))
        _set_options_of(added, node.options)


def _set_type(field: FieldDescriptorProto, name: str) -> None:
    scalar = SCALARS.get(name)
    if scalar is None:
        field.type_name = name
    else:
        field.type = scalar


def _text_value(option: UninterpretedOption, where: str, *, utf8: bool = True) -> str:
    if not option.HasField("string_value"):
        raise SchemaError(f"{where} is not a string")
    try:
        return str(option.string_value.decode("utf-8" if utf8 else "latin-1"))
    except UnicodeDecodeError:
        raise SchemaError(f"{where} is not valid UTF-8") from None


def _float_value(option: UninterpretedOption, where: str, kind: int) -> str:
    try:
        value = float(uninterpreted_value(option))
    except (ValueError, OverflowError):
        raise SchemaError(f"{where} is not a number") from None
    return float_text(value, single=kind == FieldDescriptorProto.TYPE_FLOAT)
