"""Functions that make Protobuf messages, generated for one message and one kind of values.

They make dicts, of which Google's library (upb) makes messages, all of them at once. The walk over
the message's fields is here; what the values are is known to an `Accessor`. For a message with a
string and a repeated date, of which a row has both, the function is

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
    """A message's value taken apart.

    `lines` check what is named x and give names to its parts; of each member that has a part there
    are the name and what it is. `explain` names a function that gives the error to raise, of the
    value and the error that occurred.
    """

    lines: Sequence[str]
    members: Sequence[tuple[Member, str, T]]
    explain: str = ""


@dataclass(frozen=True, slots=True)
class Choice(Generic[T]):
    """The options for what is named x: the source of a test, the field, the source of its value.

    The last line is for values of no option.
    """

    lines: Sequence[str]
    options: Sequence[tuple[str, FieldDescriptor, str, T]]
    otherwise: str


class Accessor(Protocol[T]):
    """How values are taken apart; T describes a value, beside the field for it.

    `x` is always the name of a variable.
    """

    def leaf(self, field: FieldDescriptor, wanted: T, x: str) -> str | None:
        """The source of what upb takes of one value; None for a message that has parts."""
        ...

    def null(self, field: FieldDescriptor, wanted: T) -> str | None:
        """The source of what stands for None; None where values are not compared with it."""
        ...

    def null_item(self, field: FieldDescriptor, wanted: T) -> str | None:
        """The same for an item of a list or a value of a map."""
        ...

    def record(self, message: Descriptor, wanted: T) -> Parts[T]:
        """The parts of what is named x."""
        ...

    def union(self, union: OneofDescriptor, wanted: T) -> Choice[T]:
        """The options of a union."""
        ...

    def items(self, field: FieldDescriptor, wanted: T, x: str) -> tuple[str, T, str]:
        """The source of a list's items, what they are, and what explains errors, or ""."""
        ...

    def entries(self, field: FieldDescriptor, wanted: T, x: str) -> tuple[str, T, T] | None:
        """The source of a map's pairs of key and value, and what the two are; None for a list."""
        ...


class Encoding(Generic[T]):
    """Writes the sources of one message's functions."""

    def __init__(self, program: Program, accessor: Accessor[T]) -> None:
        self._program = program
        self._accessor = accessor
        self._records: dict[tuple[str, T], str] = {}

    # Any: what goes in is known to the accessor alone, and what comes out to upb.
    def function(self, message: Descriptor, wanted: T) -> Callable[[Any], dict[str, Any]]:
        """The function from values to the fields of messages."""
        return self._program.function(self._record(message, wanted))

    def member_function(self, member: Member, wanted: T) -> Callable[[Any], Any]:
        """The function from the values of one member."""
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
            # Named before it is written, for it may call itself.
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
        # A function of its own, so that errors of its items can be explained.
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
