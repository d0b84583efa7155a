"""normal_form: a Protobuf descriptor in which everything is sorted whose order has no meaning.

Messages are not sorted, because records refer to them by index. The first value of an enum stays
first, because it is the default.
"""

from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)


def normal_form(file: FileDescriptorProto) -> FileDescriptorProto:
    """A sorted copy of a file with full names of types."""
    result = FileDescriptorProto()
    result.CopyFrom(file)
    if result.syntax == "proto2":
        result.ClearField("syntax")
    _sort_imports(result)
    for message in result.message_type:
        _sort_message(message)
    for enumeration in result.enum_type:
        _sort_enum(enumeration)
    _sort_extensions(result)
    return result


def _sort_imports(file: FileDescriptorProto) -> None:
    public = {file.dependency[index] for index in file.public_dependency}
    weak = {file.dependency[index] for index in file.weak_dependency}
    names = sorted(set(file.dependency))
    file.ClearField("dependency")
    file.ClearField("public_dependency")
    file.ClearField("weak_dependency")
    file.dependency.extend(names)
    file.public_dependency.extend(index for index, name in enumerate(names) if name in public)
    file.weak_dependency.extend(index for index, name in enumerate(names) if name in weak)


def _sort_message(message: DescriptorProto) -> None:
    message.field.sort(key=_number)
    message.reserved_range.sort(key=_start)
    message.extension_range.sort(key=_start)
    _sort_names(message)
    _sort_extensions(message)
    for nested in message.nested_type:
        _sort_message(nested)
    for enumeration in message.enum_type:
        _sort_enum(enumeration)


def _sort_enum(enumeration: EnumDescriptorProto) -> None:
    first = enumeration.value[0].name
    enumeration.value.sort(key=lambda value: (value.name != first, value.number, value.name))
    enumeration.reserved_range.sort(key=_start)
    _sort_names(enumeration)


def _sort_names(declaration: DescriptorProto | EnumDescriptorProto) -> None:
    names = sorted(declaration.reserved_name)
    declaration.ClearField("reserved_name")
    declaration.reserved_name.extend(names)


def _sort_extensions(declaration: DescriptorProto | FileDescriptorProto) -> None:
    first_seen: dict[str, int] = {}
    for field in declaration.extension:
        first_seen.setdefault(field.extendee, len(first_seen))
    declaration.extension.sort(key=lambda field: (first_seen[field.extendee], field.number))


def _number(field: FieldDescriptorProto) -> int:
    return int(field.number)


def _start(numbers: DescriptorProto.ReservedRange) -> int:
    return int(numbers.start)
