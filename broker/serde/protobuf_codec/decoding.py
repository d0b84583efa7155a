"""Generates functions that read Protobuf messages, for one representation of values.

Google's library (upb) parses the bytes. The walk over the message's fields is here; an `Accessor`
defines how values are created: rows of columns, models, Connect's structs. For a message with a
string that may be missing and a repeated date, which are both in a row, the function is

    def read_1(m):
        return ((m.name if m.HasField('name') else None), [date_2(e_3) for e_3 in m.days],)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any, Generic, Protocol, TypeVar

from google.protobuf.descriptor import (  # type: ignore[import-untyped]
    Descriptor,
    EnumDescriptor,
    FieldDescriptor,
    OneofDescriptor,
)

from broker.serde.program import Program
from broker.serde.schema.protobuf_fields import Member, entry_of, is_repeated

T = TypeVar("T")

_UNSIGNED_64 = frozenset({FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64})
_LONG_END = 1 << 63


@dataclass(frozen=True, slots=True)
class Made(Generic[T]):
    """A message: the members to read and their values, and the source that combines them."""

    wanted: Sequence[tuple[Member, T]]
    source: Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class Chosen(Generic[T]):
    """A union: the values of the fields to read, and the source of the union.

    `other` is the source if another field is set, `absent` if none is.
    """

    options: Sequence[tuple[FieldDescriptor, T, Callable[[str], str]]]
    other: str
    absent: str


class Accessor(Protocol[T]):
    """Defines how values are created; T describes a value, in addition to its field.

    `x` is always a source that must be used once.
    """

    def leaf(self, field: FieldDescriptor, wanted: T, x: str) -> str | None:
        """The source of a single value from upb's value; None for a message with fields."""
        ...

    def record(self, message: Descriptor, wanted: T) -> Made[T]:
        """A message's value, from its members."""
        ...

    def union(self, union: OneofDescriptor, wanted: T) -> Chosen[T]:
        """A union's value, from the field that is set."""
        ...

    def absent(self, field: FieldDescriptor, wanted: T) -> str | None:
        """The source if a field is not set; None if it then has a default."""
        ...

    def items(self, field: FieldDescriptor, wanted: T, x: str) -> tuple[T, str]:
        """The value of the items of a repeated field, and the source of the list from them."""
        ...

    def entries(self, field: FieldDescriptor, wanted: T) -> tuple[T, T] | None:
        """The values of a map's keys and values; None for a list."""
        ...


class Decoding(Generic[T]):
    """Generates the sources of one message's functions."""

    def __init__(self, program: Program, accessor: Accessor[T]) -> None:
        self._program = program
        self._accessor = accessor
        self._records: dict[tuple[str, T], str] = {}

    # Any: messages, whose classes are created from descriptors, and values of the accessor.
    def function(self, message: Descriptor, wanted: T) -> Callable[[Any], Any]:
        """The function from messages to values."""
        return self._program.function(self._record(message, wanted))

    def _record(self, message: Descriptor, wanted: T) -> str:
        key = (message.full_name, wanted)
        if key not in self._records:
            # The name is assigned first, because the function may call itself.
            name = self._records[key] = self._program.name("read")
            made = self._accessor.record(message, wanted)
            sources = [
                f"{self._union(member, each)}(m)"
                if isinstance(member, OneofDescriptor)
                else self._field(member, each, "m")
                for member, each in made.wanted
            ]
            self._program.define(name, "m", f"return {made.source(sources)}")
        return self._records[key]

    def _field(self, field: FieldDescriptor, wanted: T, m: str) -> str:
        """The value of a field of the message m."""
        found = self._present(field, wanted, attribute(m, field.name))
        absent = self._accessor.absent(field, wanted)
        if absent is None or is_repeated(field):
            return found
        return f"({found} if {m}.HasField({field.name!r}) else {absent})"

    def _present(self, field: FieldDescriptor, wanted: T, x: str) -> str:
        entry = entry_of(field)
        found = None if entry is None else self._accessor.entries(field, wanted)
        if entry is not None and found is not None:
            return self._entries(entry, found, x)
        if not is_repeated(field):
            return self._single(field, wanted, x)
        each = self._program.name("e")
        part, whole = self._accessor.items(field, wanted, "{}")
        inner = self._single(field, part, each)
        items = f"list({x})" if inner == each else f"[{inner} for {each} in {x}]"
        return whole.replace("{}", items)

    def _entries(self, entry: Descriptor, found: tuple[T, T], x: str) -> str:
        """A dict from a map, or from a list of keys and values, as Connect writes maps."""
        key_field, value_field = entry.fields_by_name["key"], entry.fields_by_name["value"]
        keys, values = found
        k, e = self._program.name("k"), self._program.name("e")
        if entry.GetOptions().map_entry:
            key, value = self._single(key_field, keys, k), self._single(value_field, values, e)
            return f"{{{key}: {value} for {k}, {e} in {x}.items()}}"
        key = self._single(key_field, keys, f"{e}.key")
        return f"{{{key}: {self._field(value_field, values, e)} for {e} in {x}}}"

    def _single(self, field: FieldDescriptor, wanted: T, x: str) -> str:
        """One value of a field."""
        found = self._accessor.leaf(field, wanted, x)
        return f"{self._record(field.message_type, wanted)}({x})" if found is None else found

    def _union(self, union: OneofDescriptor, wanted: T) -> str:
        name, chosen = self._program.name("union"), self._accessor.union(union, wanted)
        lines = [f"w = m.WhichOneof({union.name!r})", f"if w is None: return {chosen.absent}"]
        for field, each, whole in chosen.options:
            value = self._present(field, each, attribute("m", field.name))
            lines.append(f"if w == {field.name!r}: return {whole(value)}")
        self._program.define(name, "m", *lines, f"return {chosen.other}")
        return name


def attribute(m: str, name: str) -> str:
    """The source of a field of the message m."""
    plain = name.isidentifier() and not iskeyword(name)
    return f"{m}.{name}" if plain else f"getattr({m}, {name!r})"


def symbol_of(enum: EnumDescriptor) -> Callable[[int], str]:
    """The name of an enum value; an unknown number has the name that Java gives it."""
    names: dict[int, str] = {}
    for each in enum.values:
        names.setdefault(each.number, each.name)
    unknown = f"UNKNOWN_ENUM_VALUE_{enum.name}_"
    return lambda number: names.get(number) or f"{unknown}{number}"


def signed(value: int) -> int:
    """An unsigned 64-bit number as Java's long."""
    return value - 2 * _LONG_END if value >= _LONG_END else value


def is_unsigned_64(field: FieldDescriptor) -> bool:
    """Whether values may be larger than Java's long."""
    return field.type in _UNSIGNED_64
