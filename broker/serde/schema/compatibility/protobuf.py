"""Differences of Protobuf schemas: why records of an old one cannot be read with a new one.

A record contains field numbers and wire types, no names. So names may change, and types with the
same encoding may replace each other:

    int32 int64 uint32 uint64 bool and enums    sint32 sint64    string bytes
    fixed32 sfixed32    fixed64 sfixed64    float    double

Fields may be added and removed, unless they are required or one of several in a oneof. Fields that
could be set together must not become exclusive. Messages and the package must keep their names.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from broker.serde.schema.protobuf_schema import ProtobufSchema

F = FieldDescriptorProto

_SCALAR_FAMILIES = (
    (F.TYPE_INT32, F.TYPE_INT64, F.TYPE_UINT32, F.TYPE_UINT64, F.TYPE_BOOL, F.TYPE_ENUM),
    (F.TYPE_SINT32, F.TYPE_SINT64),
    (F.TYPE_STRING, F.TYPE_BYTES),
    (F.TYPE_FIXED32, F.TYPE_SFIXED32),
    (F.TYPE_FIXED64, F.TYPE_SFIXED64),
    (F.TYPE_FLOAT,),
    (F.TYPE_DOUBLE,),
)
FAMILY_BY_TYPE = {
    scalar: number for number, family in enumerate(_SCALAR_FAMILIES) for scalar in family
}
STRINGS = FAMILY_BY_TYPE[F.TYPE_STRING]

Path = tuple[str, ...]
Pair = tuple[str, str]  # full names of a message in the old and the new schema


class Kind(StrEnum):
    """Changes that are not allowed, by the names that the registry has for them."""

    PACKAGE_CHANGED = "The package of the new schema at '{path}' differs from the old one"
    MESSAGE_REMOVED = "The new schema no longer has the message at '{path}'"
    FIELD_KIND_CHANGED = "The field at '{path}' changed between scalar, map, group and message"
    FIELD_SCALAR_KIND_CHANGED = "The scalar type of the field at '{path}' is written differently"
    FIELD_NAMED_TYPE_CHANGED = "The field at '{path}' has another type of message"
    FIELD_NUMERIC_LABEL_CHANGED = "The numeric field at '{path}' has another label"
    REQUIRED_FIELD_ADDED = "The new schema adds a required field at '{path}'"
    REQUIRED_FIELD_REMOVED = "The new schema no longer has the required field at '{path}'"
    ONEOF_FIELD_REMOVED = "The new schema no longer has the field of the oneof at '{path}'"
    MULTIPLE_FIELDS_MOVED_TO_ONEOF = "Several fields moved into the oneof at '{path}'"
    FIELD_MOVED_TO_EXISTING_ONEOF = "A field moved into the oneof at '{path}' beside older ones"


def differences(new: ProtobufSchema, old: ProtobufSchema) -> list[str]:
    """The reasons why records written with `old` cannot be read with `new`; empty if they can."""
    comparison = _Comparison(_Types(old), _Types(new))
    comparison.compare_files(old.file, new.file)
    comparison.compare_imported()
    return comparison.found


@dataclass(frozen=True, slots=True)
class _Type:
    """A message or enum: its name in its package, and whether the schema declares it."""

    full_name: str
    local_name: str
    declaration: DescriptorProto | EnumDescriptorProto
    is_own: bool


class _Types:
    """All types of a schema and its imports, by their full names in descriptors."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self._by_name: dict[str, _Type] = {}
        for file in schema.dependencies.values():
            self._by_name.update(_types_of(file, is_own=False))
        self._by_name.update(_types_of(schema.file, is_own=True))

    def of_field(self, field: FieldDescriptorProto) -> _Type:
        """The message of a field."""
        return self._by_name[field.type_name]

    def is_map(self, field: FieldDescriptorProto) -> bool:
        """Whether a field is a map."""
        return field.type == F.TYPE_MESSAGE and bool(
            self._by_name[field.type_name].declaration.options.map_entry
        )


def _types_of(file: FileDescriptorProto, *, is_own: bool) -> Iterator[tuple[str, _Type]]:
    prefix = f".{file.package}." if file.package else "."

    def walk(message: DescriptorProto, scope: str) -> Iterator[tuple[str, _Type]]:
        name = f"{scope}{message.name}"
        yield f"{prefix}{name}", _Type(f"{prefix}{name}", name, message, is_own)
        for nested in message.nested_type:
            yield from walk(nested, f"{name}.")
        for enumeration in message.enum_type:
            full = f"{name}.{enumeration.name}"
            yield f"{prefix}{full}", _Type(f"{prefix}{full}", full, enumeration, is_own)

    for message in file.message_type:
        yield from walk(message, "")
    for enumeration in file.enum_type:
        name = str(enumeration.name)
        yield f"{prefix}{name}", _Type(f"{prefix}{name}", name, enumeration, is_own)


class _Comparison:
    """Collects the differences of two schemas; paths are "#/" with names and numbers of fields."""

    def __init__(self, old: _Types, new: _Types) -> None:
        self.found: list[str] = []
        self._old = old
        self._new = new
        # Imported messages may refer to each other in cycles and long chains, so they are queued
        # here; each use is stored with its user, its path and the used type.
        self._imported: set[Pair] = set()
        self._waiting: list[tuple[_Type, _Type]] = []
        self._changed: set[Pair] = set()
        self._uses: list[tuple[Pair, Path, Pair]] = []
        self._inside: Pair = ("", "")

    def compare_files(self, old: FileDescriptorProto, new: FileDescriptorProto) -> None:
        """Compare all declarations of two files."""
        if old.package != new.package:
            self._add(Kind.PACKAGE_CHANGED, ())
        self._compare_messages(old.message_type, new.message_type, ())

    def compare_imported(self) -> None:
        """Compare the imported messages of fields, and report their changes for the fields."""
        while self._waiting:
            old, new = self._waiting.pop()
            self._inside = (old.full_name, new.full_name)
            path = tuple(old.local_name.split("."))
            self._compare_message(old.declaration, new.declaration, path)
        self._spread_changes()
        for _, path, used in self._uses:
            if used in self._changed:
                self._add(Kind.FIELD_NAMED_TYPE_CHANGED, path)

    def _spread_changes(self) -> None:
        users: dict[Pair, set[Pair]] = {}
        for user, _, used in self._uses:
            users.setdefault(used, set()).add(user)
        waiting = list(self._changed)
        while waiting:
            more = users.get(waiting.pop(), set()) - self._changed
            self._changed |= more
            waiting.extend(more)

    def _add(self, kind: Kind, path: Path) -> None:
        self._changed.add(self._inside)
        description = kind.value.format(path="#/" + "/".join(path))
        self.found.append(f'{{errorType:"{kind.name}", description:"{description}"}}')

    def _compare_messages(
        self, old: Sequence[DescriptorProto], new: Sequence[DescriptorProto], path: Path
    ) -> None:
        by_name = {message.name: message for message in new}
        for message in old:
            if message.options.map_entry:
                continue
            other = by_name.get(message.name)
            if other is None:
                self._add(Kind.MESSAGE_REMOVED, (*path, message.name))
            else:
                self._compare_message(message, other, (*path, message.name))

    def _compare_message(self, old: DescriptorProto, new: DescriptorProto, path: Path) -> None:
        old_fields = {field.number: field for field in old.field}
        new_fields = {field.number: field for field in new.field}
        old_oneofs = _oneofs(old)
        self._compare_oneofs(old_oneofs, _oneofs(new), old_fields, path)
        self._report_removed(old_fields, new_fields, old_oneofs, path)
        for number, field in sorted(new_fields.items()):
            before = old_fields.get(number)
            where = _field_path(path, new, field)
            if before is not None:
                self._compare_fields(before, field, where)
            elif field.label == F.LABEL_REQUIRED:
                self._add(Kind.REQUIRED_FIELD_ADDED, where)
        self._compare_messages(old.nested_type, new.nested_type, path)

    def _compare_oneofs(
        self,
        old: Mapping[int, str],
        new: Mapping[int, str],
        old_fields: Mapping[int, FieldDescriptorProto],
        path: Path,
    ) -> None:
        known_by_oneof: dict[str, list[int]] = {}
        for number, name in new.items():
            if number in old_fields:
                known_by_oneof.setdefault(name, []).append(number)
        for name, known in known_by_oneof.items():
            # Fields could only be exclusive before if one oneof contained them all.
            groups = {old.get(number, number) for number in known}
            if len(groups) > 1:
                single = [number for number in known if number not in old]
                kind = (
                    Kind.MULTIPLE_FIELDS_MOVED_TO_ONEOF
                    if len(single) > 1
                    else Kind.FIELD_MOVED_TO_EXISTING_ONEOF
                )
                self._add(kind, (*path, name))

    def _report_removed(
        self,
        old: Mapping[int, FieldDescriptorProto],
        new: Mapping[int, FieldDescriptorProto],
        old_oneofs: Mapping[int, str],
        path: Path,
    ) -> None:
        # A oneof may be removed as a whole: then readers see that none of its fields is set.
        kept_oneofs = {oneof for number, oneof in old_oneofs.items() if number in new}
        for number in sorted(old.keys() - new.keys()):
            oneof = old_oneofs.get(number)
            if oneof is not None:
                if oneof in kept_oneofs:
                    self._add(Kind.ONEOF_FIELD_REMOVED, (*path, oneof, str(number)))
            elif old[number].label == F.LABEL_REQUIRED:
                self._add(Kind.REQUIRED_FIELD_REMOVED, (*path, str(number)))

    def _compare_fields(
        self, old: FieldDescriptorProto, new: FieldDescriptorProto, path: Path
    ) -> None:
        if self._shape(old, self._old) != self._shape(new, self._new):
            self._add(Kind.FIELD_KIND_CHANGED, path)
        elif self._old.is_map(old):
            old_key, old_value = _entry_fields(self._old.of_field(old).declaration)
            new_key, new_value = _entry_fields(self._new.of_field(new).declaration)
            self._compare_fields(old_key, new_key, path)
            self._compare_fields(old_value, new_value, path)
        elif old.type in FAMILY_BY_TYPE:
            self._compare_scalars(old, new, path)
        else:
            self._compare_named_types(self._old.of_field(old), self._new.of_field(new), path)

    def _shape(self, field: FieldDescriptorProto, types: _Types) -> str:
        if field.type in FAMILY_BY_TYPE:
            return "scalar"
        if field.type == F.TYPE_GROUP:
            return "group"
        return "map" if types.is_map(field) else "message"

    def _compare_scalars(
        self, old: FieldDescriptorProto, new: FieldDescriptorProto, path: Path
    ) -> None:
        family = FAMILY_BY_TYPE[old.type]
        if family != FAMILY_BY_TYPE[new.type]:
            self._add(Kind.FIELD_SCALAR_KIND_CHANGED, path)
        elif old.label != new.label and family != STRINGS:
            self._add(Kind.FIELD_NUMERIC_LABEL_CHANGED, path)

    def _compare_named_types(self, old: _Type, new: _Type, path: Path) -> None:
        if old.local_name != new.local_name:
            self._add(Kind.FIELD_NAMED_TYPE_CHANGED, path)
            return
        # Messages of the two files are compared where they are declared.
        if not (old.is_own and new.is_own):
            pair = (old.full_name, new.full_name)
            if pair not in self._imported:
                self._imported.add(pair)
                self._waiting.append((old, new))
            self._uses.append((self._inside, path, pair))


def _oneofs(message: DescriptorProto) -> dict[int, str]:
    """The names of oneofs by the numbers of their fields."""
    return {
        field.number: message.oneof_decl[field.oneof_index].name
        for field in message.field
        if field.HasField("oneof_index") and not field.proto3_optional
    }


def _field_path(path: Path, message: DescriptorProto, field: FieldDescriptorProto) -> Path:
    if field.HasField("oneof_index") and not field.proto3_optional:
        return (*path, message.oneof_decl[field.oneof_index].name, str(field.number))
    return (*path, str(field.number))


def _entry_fields(
    entry: DescriptorProto | EnumDescriptorProto,
) -> tuple[FieldDescriptorProto, FieldDescriptorProto]:
    by_number = {field.number: field for field in entry.field}
    return by_number[1], by_number[2]
