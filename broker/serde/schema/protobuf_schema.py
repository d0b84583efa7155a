"""ProtobufSchema: a parsed .proto file, and the messages that it declares."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    DescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]

from broker.errors import SchemaError
from broker.serde.schema.protobuf_builder import IMPORTS_MAX, build_file, check_map_entry
from broker.serde.schema.protobuf_known import KNOWN_IMPORTS, known_file
from broker.serde.schema.protobuf_normal_form import normal_form
from broker.serde.schema.protobuf_options import interpret
from broker.serde.schema.protobuf_printer import print_file
from broker.serde.schema.protobuf_text import NESTING_MAX, TEXT_CHARACTERS_MAX, parse_text
from broker.serde.schema.schema import Resolved, SchemaKind

# Records refer to messages by index, never by file, so the file's name has no meaning.
FILE_NAME = "default.proto"
IMPORT_DEPTH_MAX = 64

# Only the empty .proto file consists of only these characters.
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")

Indexes = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ProtobufSchema:
    """A validated .proto file.

    `file` has full names; `dependencies` are the files that it imports, directly or indirectly. The
    pool belongs to this schema alone: two schemas may have different messages with one name.
    """

    canonical: str
    file: FileDescriptorProto
    pool: DescriptorPool
    dependencies: Mapping[str, FileDescriptorProto]
    message_names: tuple[str, ...]
    _indexes: Mapping[str, Indexes]
    _names: Mapping[Indexes, str]

    @property
    def kind(self) -> SchemaKind:
        """Its language."""
        return SchemaKind.PROTOBUF

    @property
    def default_message(self) -> str:
        """The full name of the first message, which is the default for records."""
        if not self.message_names:
            raise SchemaError("the Protobuf schema has no messages")
        return self.message_names[0]

    def record_name(self) -> str | None:
        """The full name of the first message."""
        return self.message_names[0] if self.message_names else None

    def normalized(self) -> str:
        """The text with full names, and everything sorted whose order has no meaning."""
        return print_file(normal_form(self.file), self.pool, sort_options=True)

    def formatted(self, form: str) -> str:
        """The text, or as "serialized" the descriptor in base64."""
        if form == "":
            return self.canonical
        if form == "serialized":
            content = self.file.SerializePartialToString(deterministic=True)
            return base64.b64encode(content).decode("ascii")
        raise ValueError(f'Protobuf schemas have no format "{form}"')

    def indexes_of(self, name: str) -> Indexes:
        """The indexes of a message: in the file, then in each enclosing message."""
        indexes = self._indexes.get(name)
        if indexes is None:
            raise _unknown_message(name, self.message_names)
        return indexes

    def name_at(self, indexes: Indexes) -> str:
        """The full name of the message with these indexes."""
        name = self._names.get(indexes)
        if name is None:
            raise SchemaError(f"the Protobuf schema has no message at {list(indexes)}")
        return name

    def message_class(self, message: str | Indexes) -> type[Message]:
        """The class of a message, by its full name or its indexes; imported ones only by name."""
        name = message if isinstance(message, str) else self.name_at(message)
        try:
            descriptor = self.pool.FindMessageTypeByName(name)
        except KeyError:
            raise _unknown_message(name, self.message_names) from None
        found: type[Message] = GetMessageClass(descriptor)
        return found


def _unknown_message(name: str, names: tuple[str, ...]) -> SchemaError:
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return SchemaError(f'the Protobuf schema has no message "{name}"', hint=f"it has {shown}")


def parse_protobuf(text: str, resolved: Resolved) -> ProtobufSchema:
    """Parse a .proto file, or a descriptor in base64; SchemaError if it is invalid."""
    if _BASE64.fullmatch(text):
        # A descriptor is converted to text first, so that both forms are the same schema.
        descriptor = _decoded(text, FILE_NAME)
        files = _Files(resolved)
        files.add(descriptor)
        text = _printed(descriptor, files.pool)
    return _parse(text, resolved)


def _printed(descriptor: FileDescriptorProto, pool: DescriptorPool) -> str:
    try:
        return print_file(descriptor, pool)
    except (LookupError, ValueError) as error:
        # The library accepts some descriptors that have no .proto form.
        raise SchemaError(f"the descriptor cannot be written as text: {error}") from None


def _parse(text: str, resolved: Resolved) -> ProtobufSchema:
    written = build_file(parse_text(text), FILE_NAME)
    files = _Files(resolved)
    file = files.add(written)
    if _interpret_options(written, files.pool):
        files = _Files(resolved)
        file = files.add(written)
    _keep_defaults(written, file)
    names = dict(_places(file))
    return ProtobufSchema(
        canonical=print_file(written, files.pool),
        file=file,
        pool=files.pool,
        dependencies=files.dependencies,
        message_names=tuple(name for name, (_, is_entry) in names.items() if not is_entry),
        _indexes={name: indexes for name, (indexes, _) in names.items()},
        _names={indexes: name for name, (indexes, _) in names.items()},
    )


def _keep_defaults(written: DescriptorProto, found: DescriptorProto) -> None:
    # The pool stores the defaults of floats with more digits than necessary.
    is_file = isinstance(written, FileDescriptorProto)
    for part in ("extension",) if is_file else ("extension", "field"):
        for field, other in zip(getattr(written, part), getattr(found, part), strict=True):
            if field.HasField("default_value"):
                other.default_value = field.default_value
    nested = "message_type" if is_file else "nested_type"
    for message, other in zip(getattr(written, nested), getattr(found, nested), strict=True):
        _keep_defaults(message, other)


def _decoded(text: str, name: str) -> FileDescriptorProto:
    if len(text) > TEXT_CHARACTERS_MAX:
        raise SchemaError(f"the descriptor has more than {TEXT_CHARACTERS_MAX} characters")
    file = FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode("".join(text.split()), validate=True))
    except (binascii.Error, DecodeError, ValueError):
        raise SchemaError("the text is neither a .proto file nor a descriptor in base64") from None
    if file.syntax not in ("", "proto2", "proto3"):
        raise SchemaError(f'syntax "{file.syntax}" is not supported')
    file.ClearField("source_code_info")
    for message in file.message_type:
        _check_message(message, 1)
    _check_texts(file)
    file.name = name
    return file


def _check_message(message: DescriptorProto, depth: int) -> None:
    if depth > NESTING_MAX:
        raise SchemaError(f"messages are nested more than {NESTING_MAX} deep")
    check_map_entry(message)
    for nested in message.nested_type:
        _check_message(nested, depth + 1)


def _check_texts(message: Message) -> None:
    # Google's library accepts strings in descriptors that are not UTF-8, and returns bytes.
    for field, value in message.ListFields():
        single = isinstance(value, str | bytes | int | float | Message)
        for element in (value,) if single else value:
            if isinstance(element, Message):
                _check_texts(element)
            elif isinstance(element, bytes) and field.type == FieldDescriptor.TYPE_STRING:
                raise SchemaError(f'a "{field.name}" of the descriptor is not valid UTF-8')


class _Files:
    """A pool, and the files in it."""

    def __init__(self, resolved: Resolved) -> None:
        """An empty pool; imports are resolved in `resolved` and among the known files."""
        self.pool = DescriptorPool()
        self.dependencies: dict[str, FileDescriptorProto] = {}
        self._resolved = resolved
        self._waiting: list[str] = []

    def add(self, file: FileDescriptorProto) -> FileDescriptorProto:
        """Add a file after its imports, with full names of types."""
        for name in file.dependency:
            if name == FILE_NAME and name not in self._resolved:
                raise SchemaError(f'import "{name}" is the file itself')
            self._add_import(name)
        try:
            # Google's library validates the file and resolves its types here.
            added = self.pool.AddSerializedFile(file.SerializePartialToString())
            complete = FileDescriptorProto()
            added.CopyToProto(complete)
        except (TypeError, ValueError, KeyError, DecodeError) as error:
            reason = str(error).rpartition("descriptor pool: ")[2]
            raise SchemaError(f"invalid Protobuf schema: {reason}") from None
        return complete

    def _add_import(self, name: str) -> None:
        if name in self.dependencies:
            return
        if name in self._waiting:
            raise SchemaError(f'import "{name}" imports itself: {" -> ".join(self._waiting)}')
        if len(self.dependencies) >= IMPORTS_MAX or len(self._waiting) >= IMPORT_DEPTH_MAX:
            raise SchemaError("the Protobuf schema imports too many files")
        self._waiting.append(name)
        self.dependencies[name] = self.add(self._imported(name))
        self._waiting.pop()

    def _imported(self, name: str) -> FileDescriptorProto:
        text = self._resolved.get(name)
        if text is None:
            if name in KNOWN_IMPORTS:
                return known_file(name)
            raise SchemaError(
                f'import "{name}" is not found',
                hint=f'register its schema and refer to it with a reference named "{name}"',
            )
        if _BASE64.fullmatch(text):
            return _decoded(text, name)
        return build_file(parse_text(text), name)


def _interpret_options(file: FileDescriptorProto, pool: DescriptorPool) -> bool:
    package = str(file.package)
    found = [
        interpret(declaration.options, pool, scope)
        for declaration, scope in _declarations(file, package)
        if declaration.options.uninterpreted_option
    ]
    return any(found)


def _declarations(file: FileDescriptorProto, package: str) -> Iterator[tuple[Message, str]]:
    yield file, package
    for message in file.message_type:
        yield from _declarations_in(message, _joined(package, message.name))
    for enumeration in file.enum_type:
        yield from _with_scope([enumeration, *enumeration.value], package)
    for service in file.service:
        yield from _with_scope([service, *service.method], _joined(package, service.name))
    yield from _with_scope(file.extension, package)


def _declarations_in(message: DescriptorProto, scope: str) -> Iterator[tuple[Message, str]]:
    yield message, scope
    for parts in (message.field, message.extension, message.oneof_decl, message.extension_range):
        yield from _with_scope(parts, scope)
    for enumeration in message.enum_type:
        yield from _with_scope([enumeration, *enumeration.value], scope)
    for nested in message.nested_type:
        yield from _declarations_in(nested, _joined(scope, nested.name))


def _with_scope(parts: list[Message], scope: str) -> Iterator[tuple[Message, str]]:
    return ((part, scope) for part in parts)


def _joined(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _places(file: FileDescriptorProto) -> Iterator[tuple[str, tuple[Indexes, bool]]]:
    for index, message in enumerate(file.message_type):
        yield from _places_in(message, _joined(file.package, message.name), (index,))


def _places_in(
    message: DescriptorProto, name: str, indexes: Indexes
) -> Iterator[tuple[str, tuple[Indexes, bool]]]:
    yield name, (indexes, bool(message.options.map_entry))
    for index, nested in enumerate(message.nested_type):
        yield from _places_in(nested, _joined(name, nested.name), (*indexes, index))
