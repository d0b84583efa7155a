"""print_file: a Protobuf descriptor as the text of a .proto file, in the registry's layout.

Two spaces per level; the parts of a declaration are in a fixed order (reserved, options, fields,
oneofs, extensions, nested types), each kind after an empty line. The order of nested messages is
never changed, because records refer to messages by index.
"""

from collections.abc import Iterable, Sequence
from operator import attrgetter, itemgetter

from google.protobuf import text_encoding  # type: ignore[import-untyped]
from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool  # type: ignore[import-untyped]
from google.protobuf.message import Message  # type: ignore[import-untyped]

from broker.errors import SchemaError
from broker.serde.schema.protobuf_builder import LABELS, SCALARS, map_entry_name
from broker.serde.schema.protobuf_options import (
    ShownOption,
    escaped_bytes,
    indented,
    quoted,
    shown_options,
)
from broker.serde.schema.protobuf_text import FIELD_NUMBER_MAX, INT32_MAX

SCALAR_NAMES = {number: name for name, number in SCALARS.items()}
LABEL_NAMES = {number: name for name, number in LABELS.items()}


def print_file(
    file: FileDescriptorProto, pool: DescriptorPool, *, sort_options: bool = False
) -> str:
    """The text of a file; the pool knows the names of its custom options."""
    printer = _Printer(pool, proto3=file.syntax == "proto3", sort_options=sort_options)
    lines = _separated(
        [
            _header(file),
            _imports(file),
            printer.option_statements(file.options),
            [
                *(line for message in file.message_type for line in printer.message(message)),
                *(line for enumeration in file.enum_type for line in printer.enum(enumeration)),
            ],
            printer.extends(file.extension),
            [line for service in file.service for line in printer.service(service)],
        ]
    )
    return "".join(f"{line}\n" for line in lines)


def _header(file: FileDescriptorProto) -> list[str]:
    lines = []
    if file.syntax:
        lines.append(f"syntax = {quoted(file.syntax.encode())};")
    if file.package:
        lines.append(f"package {file.package};")
    return lines


def _imports(file: FileDescriptorProto) -> list[str]:
    plain, public = [], []
    for index, name in enumerate(file.dependency):
        path = quoted(name.encode())
        if index in file.public_dependency:
            public.append(f"import public {path};")
        elif index in file.weak_dependency:
            plain.append(f"import weak {path};")
        else:
            plain.append(f"import {path};")
    return plain + public


def _separated(blocks: Iterable[Sequence[str]]) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        if block and lines:
            lines.append("")
        lines.extend(block)
    return lines


def _declaration(opening: str, body: Sequence[str]) -> list[str]:
    if not body:
        return [f"{opening} {{}}"]
    return [f"{opening} {{", *indented(body), "}"]


class _Printer:
    """Prints the declarations of one file."""

    def __init__(self, pool: DescriptorPool, *, proto3: bool, sort_options: bool) -> None:
        self._pool = pool
        self._proto3 = proto3
        self._sort_options = sort_options

    def _shown(self, options: Message, *others: ShownOption) -> list[ShownOption]:
        shown = [*shown_options(options, self._pool), *others]
        return sorted(shown, key=itemgetter(0)) if self._sort_options else shown

    def option_statements(self, options: Message) -> list[str]:
        """One statement for each option."""
        lines = []
        for name, value in self._shown(options):
            lines.extend([f"option {name} = {value[0]}", *value[1:]])
            lines[-1] += ";"
        return lines

    def message(self, message: DescriptorProto) -> list[str]:
        """A message with its content."""
        return _declaration(f"message {message.name}", self._body(message))

    def _body(self, message: DescriptorProto) -> list[str]:
        members = _Members(message)
        fields, oneofs = self._fields(message, members)
        nested = self._nested_until(message, members, len(message.nested_type))
        for enumeration in message.enum_type:
            nested.extend(self.enum(enumeration))
        return _separated(
            [
                _reserved(message, FIELD_NUMBER_MAX + 1, past_end=1),
                self.option_statements(message.options),
                fields,
                oneofs,
                self._extension_ranges(message),
                self.extends(message.extension),
                nested,
            ]
        )

    def _fields(self, message: DescriptorProto, members: "_Members") -> tuple[list[str], list[str]]:
        fields: list[str] = []
        oneofs: list[str] = []
        seen = set()
        for field in message.field:
            index = members.oneof_of(field)
            if index is None:
                fields.extend(self._member(message, members, field))
            elif index not in seen:
                seen.add(index)
                # The message of a group is printed at its position among the nested ones.
                lines = fields if members.has_group(index) else oneofs
                lines.extend(self._oneof(message, members, index))
        return fields, oneofs

    def _member(
        self, message: DescriptorProto, members: "_Members", field: FieldDescriptorProto
    ) -> list[str]:
        own_type = members.own_type(field)
        if own_type is None:
            return self.field(field, self._type(field))
        lines = self._nested_until(message, members, own_type)
        members.printed = max(members.printed, own_type + 1)
        nested = message.nested_type[own_type]
        if field.type == FieldDescriptorProto.TYPE_GROUP:
            opening = f"{self._label(field)}group {nested.name} = {field.number}"
            return [*lines, *_declaration(opening + self._options(field), self._body(nested))]
        key, value = sorted(nested.field, key=attrgetter("number"))
        return [*lines, *self.field(field, f"map<{self._type(key)}, {self._type(value)}>")]

    def _nested_until(self, message: DescriptorProto, members: "_Members", end: int) -> list[str]:
        lines: list[str] = []
        while members.printed < end:
            if members.printed not in members.own_types:
                lines.extend(self.message(message.nested_type[members.printed]))
            members.printed += 1
        return lines

    def _oneof(self, message: DescriptorProto, members: "_Members", index: int) -> list[str]:
        oneof = message.oneof_decl[index]
        fields = []
        for field in members.fields_of_oneof(index):
            fields.extend(self._member(message, members, field))
        options = self.option_statements(oneof.options)
        return _declaration(f"oneof {oneof.name}", _separated([options, fields]))

    def field(self, field: FieldDescriptorProto, type_name: str) -> list[str]:
        """A field of a message or an extension; its options may need several lines."""
        label = "" if type_name.startswith("map<") else self._label(field)
        line = f"{label}{type_name} {field.name} = {field.number}{self._options(field)};"
        return line.split("\n")

    def _type(self, field: FieldDescriptorProto) -> str:
        if field.HasField("type") and field.type == FieldDescriptorProto.TYPE_GROUP:
            raise SchemaError(f'group "{field.name}" has a type that is declared elsewhere')
        if field.type_name:
            return str(field.type_name)
        return SCALAR_NAMES[field.type]

    def _label(self, field: FieldDescriptorProto) -> str:
        if field.HasField("oneof_index") and not field.proto3_optional:
            return ""
        if field.label == FieldDescriptorProto.LABEL_OPTIONAL and self._proto3:
            return "optional " if field.proto3_optional else ""
        return f"{LABEL_NAMES[field.label]} "

    def _options(self, field: FieldDescriptorProto) -> str:
        others: list[ShownOption] = []
        if field.HasField("default_value"):
            others.append(("default", [_default(field)]))
        if field.HasField("json_name") and field.json_name != default_json_name(field.name):
            others.append(("json_name", [quoted(field.json_name.encode())]))
        return _bracketed(self._shown(field.options, *others))

    def _extension_ranges(self, message: DescriptorProto) -> list[str]:
        lines = []
        for numbers in message.extension_range:
            text = _range(numbers.start, numbers.end - 1, FIELD_NUMBER_MAX)
            options = _bracketed(self._shown(numbers.options))
            lines.extend(f"extensions {text}{options};".split("\n"))
        return lines

    def extends(self, extensions: Iterable[FieldDescriptorProto]) -> list[str]:
        """Extensions; consecutive ones of the same message share a block."""
        lines: list[str] = []
        extendee = None
        for field in extensions:
            if field.extendee != extendee:
                if extendee is not None:
                    lines.append("}")
                extendee = field.extendee
                lines.append(f"extend {extendee} {{")
            lines.extend(indented(self.field(field, self._type(field))))
        return [*lines, "}"] if lines else lines

    def enum(self, enumeration: EnumDescriptorProto) -> list[str]:
        """An enum."""
        lines = _reserved(enumeration, INT32_MAX, past_end=0)
        lines.extend(self.option_statements(enumeration.options))
        for value in enumeration.value:
            options = _bracketed(self._shown(value.options))
            lines.extend(f"{value.name} = {value.number}{options};".split("\n"))
        return _declaration(f"enum {enumeration.name}", lines)

    def service(self, service: ServiceDescriptorProto) -> list[str]:
        """A service."""
        methods = [line for method in service.method for line in self._method(method)]
        body = _separated([self.option_statements(service.options), methods])
        return _declaration(f"service {service.name}", body)

    def _method(self, method: MethodDescriptorProto) -> list[str]:
        takes = "stream " if method.client_streaming else ""
        gives = "stream " if method.server_streaming else ""
        line = f"rpc {method.name} ({takes}{method.input_type})"
        line += f" returns ({gives}{method.output_type})"
        options = self.option_statements(method.options)
        if not options:
            return [f"{line};"]
        return [f"{line} {{", *indented(options), "};"]


class _Members:
    """The groups of a message: fields of oneofs, and types that a field declares."""

    def __init__(self, message: DescriptorProto) -> None:
        self._by_oneof: dict[int, list[FieldDescriptorProto]] = {}
        places = {nested.name: index for index, nested in enumerate(message.nested_type)}
        self._own: dict[int, int] = {}
        for field in message.field:
            index = places.get(field.type_name.rpartition(".")[2])
            if index is not None and _declares(field, message.nested_type[index]):
                self._own[field.number] = index
            oneof = self.oneof_of(field)
            if oneof is not None:
                self._by_oneof.setdefault(oneof, []).append(field)
        self.own_types = frozenset(self._own.values())
        self.printed = 0

    def own_type(self, field: FieldDescriptorProto) -> int | None:
        """The index of the nested type that is part of the field's declaration."""
        return self._own.get(field.number)

    def oneof_of(self, field: FieldDescriptorProto) -> int | None:
        """The index of the oneof in which the field must be printed."""
        if field.HasField("oneof_index") and not field.proto3_optional:
            return int(field.oneof_index)
        return None

    def fields_of_oneof(self, index: int) -> list[FieldDescriptorProto]:
        """The fields of a oneof."""
        return self._by_oneof[index]

    def has_group(self, index: int) -> bool:
        """Whether one of the fields of a oneof is a group."""
        return any(
            field.type == FieldDescriptorProto.TYPE_GROUP for field in self.fields_of_oneof(index)
        )


def _declares(field: FieldDescriptorProto, nested: DescriptorProto) -> bool:
    if field.HasField("type") and field.type == FieldDescriptorProto.TYPE_GROUP:
        return bool(field.name == nested.name.lower())
    repeated = field.label == FieldDescriptorProto.LABEL_REPEATED
    is_entry = nested.options.map_entry and map_entry_name(field.name) == nested.name
    return bool(repeated and is_entry)


def _bracketed(shown: list[ShownOption]) -> str:
    if not shown:
        return ""
    lines = ["\n".join([f"{name} = {value[0]}", *value[1:]]) for name, value in shown]
    if len(lines) == 1:
        return f" [{lines[0]}]"
    return " [\n" + "\n".join(indented(",\n".join(lines).split("\n"))) + "\n]"


def _default(field: FieldDescriptorProto) -> str:
    if field.type == FieldDescriptorProto.TYPE_STRING:
        return quoted(field.default_value.encode())
    if field.type == FieldDescriptorProto.TYPE_BYTES:
        # Descriptors contain escaped bytes, but not always in the same form.
        return f'"{escaped_bytes(text_encoding.CUnescape(field.default_value))}"'
    return str(field.default_value)


def _reserved(
    declaration: DescriptorProto | EnumDescriptorProto, end_of_all: int, *, past_end: int
) -> list[str]:
    lines = [
        f"reserved {_range(numbers.start, numbers.end - past_end, end_of_all - past_end)};"
        for numbers in declaration.reserved_range
    ]
    lines.extend(f"reserved {quoted(name.encode())};" for name in declaration.reserved_name)
    return lines


def _range(first: int, last: int, last_of_all: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last == last_of_all else last}"


def default_json_name(name: str) -> str:
    """The default JSON name of a field: camel case."""
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)
