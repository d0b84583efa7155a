"""Generates functions that create Protobuf messages, for one representation of values.

They create dicts, from which Google's library (upb) creates a whole message in one call. The walk
over the message's fields is here; an `Accessor` defines how values are read. For a message with a
string and a repeated date, which are both in a row, the function is

    def fields_1(x):
        v0, v1, = x
        return {'name': None if v0 is None else v0, 'days': None if v1 is None else list_2(v1)}
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from google.protobuf.descriptor import (  # type: ignore[import-untyped]
    Descriptor,
    FieldDescriptor,
    OneofDescriptor,
)

from broker.serde.program import Program
from broker.serde.schema.protobuf_fields import Member, entry_of, is_repeated

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parts(Generic[T]):
    """The parts of a message's value.

    `lines` validate the value named x and assign names to its parts; for each member with a part
    there are the name and its description. `explain` names a function that returns the error to
    raise, given the value and the original error.
    """

    lines: Sequence[str]
    members: Sequence[tuple[Member, str, T]]
    explain: str = ""


@dataclass(frozen=True, slots=True)
class Choice(Generic[T]):
    """The options for the value named x: the source of a test, the field, the source of its value.

    The last line is the default.
    """

    lines: Sequence[str]
    options: Sequence[tuple[str, FieldDescriptor, str, T]]
    otherwise: str


class Accessor(Protocol[T]):
    """Defines how values are read; T describes a value, in addition to its field.

    `x` is always the name of a variable.
    """

    def leaf(self, field: FieldDescriptor, wanted: T, x: str) -> str | None:
        """The source of upb's argument for a single value; None for a message with fields."""
        ...

    def null(self, field: FieldDescriptor, wanted: T) -> str | None:
        """The source for None; None if values are not compared with it."""
        ...

    def null_item(self, field: FieldDescriptor, wanted: T) -> str | None:
        """The same for an item of a list or a value of a map."""
        ...

    def record(self, message: Descriptor, wanted: T) -> Parts[T]:
        """The parts of the value named x."""
        ...

    def union(self, union: OneofDescriptor, wanted: T) -> Choice[T]:
        """The options of a union."""
        ...

    def items(self, field: FieldDescriptor, wanted: T, x: str) -> tuple[str, T, str]:
        """The source of a list's items, their description, and the `explain` function or ""."""
        ...

    def entries(self, field: FieldDescriptor, wanted: T, x: str) -> tuple[str, T, T] | None:
        """The source of a map's pairs, and the description of keys and values; None for a list."""
        ...


class Encoding(Generic[T]):
    """Generates the sources of one message's functions."""

    def __init__(self, program: Program, accessor: Accessor[T]) -> None:
        self._program = program
        self._accessor = accessor
        self._records: dict[tuple[str, T], str] = {}

    # Any: only the accessor knows the type of the values, and only upb that of the results.
    def function(self, message: Descriptor, wanted: T) -> Callable[[Any], dict[str, Any]]:
        """The function from values to the fields of messages."""
        return self._program.function(self._record(message, wanted))

    def member_function(self, member: Member, wanted: T) -> Callable[[Any], Any]:
        """The function for the values of one member."""
        if isinstance(member, OneofDescriptor):
            return self._program.function(self._union(member, wanted))
        return self._defined("value", self._value(member, wanted, "x"))

    def present_function(self, field: FieldDescriptor, wanted: T) -> Callable[[Any], Any]:
        """The same for values of a field that are not None."""
        return self._defined("value", self._present(field, wanted, "x"))

    def item_function(self, field: FieldDescriptor, wanted: T) -> Callable[[Any], Any]:
        """The same for items of a repeated field."""
        return self._defined("item", self._item(field, wanted, "x"))

    def _defined(self, stem: str, source: str) -> Callable[[Any], Any]:
        name = self._program.name(stem)
        self._program.define(name, "x", f"return {source}")
        return self._program.function(name)

    def _record(self, message: Descriptor, wanted: T) -> str:
        key = (message.full_name, wanted)
        if key not in self._records:
            # The name is assigned first, because the function may call itself.
            name = self._records[key] = self._program.name("fields")
            parts = self._accessor.record(message, wanted)
            sources = [
                f"**{self._union(member, each)}({x})"
                if isinstance(member, OneofDescriptor)
                else f"{member.name!r}: {self._value(member, each, x)}"
                for member, x, each in parts.members
            ]
            lines = _explained(f"return {{{', '.join(sources)}}}", parts.explain)
            self._program.define(name, "x", *parts.lines, *lines)
        return self._records[key]

    def _value(self, field: FieldDescriptor, wanted: T, x: str) -> str:
        null, present = self._accessor.null(field, wanted), self._present(field, wanted, x)
        return present if null is None else f"{null} if {x} is None else {present}"

    def _present(self, field: FieldDescriptor, wanted: T, x: str) -> str:
        if entry_of(field) is None and not is_repeated(field):
            return self._single(field, wanted, x)
        # A separate function, so that errors of its items can be explained.
        name, entry = self._program.name("list"), entry_of(field)
        found = None if entry is None else self._accessor.entries(field, wanted, "x")
        if entry is not None and found is not None:
            lines = [f"return {self._entries(entry, found)}"]
        else:
            each = self._program.name("e")
            items, part, explain = self._accessor.items(field, wanted, "x")
            one = self._item(field, part, each)
            lines = _explained(f"return [{one} for {each} in {items}]", explain)
        self._program.define(name, "x", *lines)
        return f"{name}({x})"

    def _item(self, field: FieldDescriptor, wanted: T, x: str) -> str:
        null, present = self._accessor.null_item(field, wanted), self._single(field, wanted, x)
        return present if null is None else f"{null} if {x} is None else {present}"

    def _entries(self, entry: Descriptor, found: tuple[str, T, T]) -> str:
        """A map, or a list of keys and values, as Connect writes maps."""
        key_field, value_field = entry.fields_by_name["key"], entry.fields_by_name["value"]
        pairs, keys, values = found
        k, e = self._program.name("k"), self._program.name("e")
        key = self._value(key_field, keys, k)
        if entry.GetOptions().map_entry:
            return f"{{({key}): ({self._item(value_field, values, e)}) for {k}, {e} in {pairs}}}"
        value = self._value(value_field, values, e)
        return f"[{{'key': {key}, 'value': {value}}} for {k}, {e} in {pairs}]"

    def _single(self, field: FieldDescriptor, wanted: T, x: str) -> str:
        found = self._accessor.leaf(field, wanted, x)
        return f"{self._record(field.message_type, wanted)}({x})" if found is None else found

    def _union(self, union: OneofDescriptor, wanted: T) -> str:
        name, choice = self._program.name("union"), self._accessor.union(union, wanted)
        lines = list(choice.lines)
        for test, field, value, each in choice.options:
            source = self._present(field, each, "y")
            lines += [f"if {test}:", f"    y = {value}", f"    return {{{field.name!r}: {source}}}"]
        self._program.define(name, "x", *lines, choice.otherwise)
        return name


def _explained(line: str, explain: str) -> list[str]:
    if not explain:
        return [line]
    return ["try:", f"    {line}", "except Exception as error:", f"    raise {explain}(x, error)"]
