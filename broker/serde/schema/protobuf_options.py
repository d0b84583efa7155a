"""Options of Protobuf files: set from text, and printed as text.

Options that descriptor.proto declares are set immediately. Custom options are extensions, which
only the pool of the finished file knows; until then, and permanently if no import declares them,
they are uninterpreted.
"""

import math
import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from google.protobuf import descriptor_pb2, text_format  # type: ignore[import-untyped]
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from google.protobuf.descriptor_pb2 import UninterpretedOption  # type: ignore[import-untyped]
from google.protobuf.descriptor_pool import DescriptorPool  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]

from broker.errors import SchemaError

CACHED_CHARACTERS_MAX = 200
RESERVED_NAME = "uninterpreted_option"

# A printed option: its name, and the lines of its value.
ShownOption = tuple[str, list[str]]


def set_options(options: Message, uninterpreted: Iterable[UninterpretedOption]) -> None:
    """Set options that descriptor.proto declares; the others stay uninterpreted."""
    known = options.DESCRIPTOR.fields_by_name
    for option in uninterpreted:
        first = option.name[0]
        if first.is_extension or first.name_part not in known:
            options.uninterpreted_option.append(option)
        elif first.name_part == RESERVED_NAME:
            raise SchemaError(f'an option must not be called "{RESERVED_NAME}"')
        else:
            parts = [part.name_part for part in option.name]
            text = _text_format(parts, option)
            known_option = _known_option if len(text) <= CACHED_CHARACTERS_MAX else _uncached
            options.MergeFromString(known_option(options.DESCRIPTOR.name, text))


def _uncached(kind: str, text: str) -> bytes:
    options = getattr(descriptor_pb2, kind)()
    _merge(text, options, None)
    content: bytes = options.SerializePartialToString()
    return content


_known_option = lru_cache(maxsize=1024)(_uncached)


def _merge(text: str, options: Message, pool: DescriptorPool | None) -> None:
    try:
        text_format.Merge(text, options, descriptor_pool=pool)
    except (text_format.ParseError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise SchemaError(f"cannot set option {text[:80]}: {error}") from None


def _text_format(parts: list[str], option: UninterpretedOption) -> str:
    opening = " { ".join(parts)
    closing = " }" * (len(parts) - 1)
    if option.HasField("aggregate_value"):
        return f"{opening} {{ {option.aggregate_value} }}{closing}"
    return f"{opening}: {uninterpreted_value(option)}{closing}"


def uninterpreted_value(option: UninterpretedOption) -> str:
    """The value of an option that is not an aggregate, as in files."""
    if option.HasField("identifier_value"):
        return str(option.identifier_value)
    if option.HasField("string_value"):
        return quoted(option.string_value)
    if option.HasField("double_value"):
        return float_text(option.double_value)
    if option.HasField("negative_int_value"):
        return str(option.negative_int_value)
    return str(option.positive_int_value)


def interpret(options: Message, pool: DescriptorPool, scope: str) -> bool:
    """Set the custom options that the pool knows; returns whether there were any."""
    left = []
    interpreted = None
    for option in options.uninterpreted_option:
        parts = _resolved_parts(option, pool, scope)
        if parts is None:
            left.append(option)
            continue
        if interpreted is None:
            interpreted = _options_class(options, pool)()
        _merge(_text_format(parts, option), interpreted, pool)
    if interpreted is None:
        return False
    del options.uninterpreted_option[:]
    options.uninterpreted_option.extend(left)
    options.MergeFromString(interpreted.SerializePartialToString())
    return True


def _resolved_parts(
    option: UninterpretedOption, pool: DescriptorPool, scope: str
) -> list[str] | None:
    if not option.name[0].is_extension:
        return None
    parts = []
    for part in option.name:
        if part.is_extension:
            name = _extension_name(part.name_part, pool, scope)
            if name is None:
                return None
            parts.append(f"[{name}]")
        else:
            parts.append(part.name_part)
    return parts


def _extension_name(name: str, pool: DescriptorPool, scope: str) -> str | None:
    if name.startswith("."):
        candidates = [name[1:]]
    else:
        scopes = scope.split(".") if scope else []
        candidates = [".".join([*scopes[:count], name]) for count in range(len(scopes), -1, -1)]
    for candidate in candidates:
        try:
            return str(pool.FindExtensionByName(candidate).full_name)
        except KeyError:
            continue
    return None


def _options_class(options: Message, pool: DescriptorPool) -> Any:  # a class made at run time
    return GetMessageClass(pool.FindMessageTypeByName(options.DESCRIPTOR.full_name))


# Options as text


def shown_options(options: Message, pool: DescriptorPool | None) -> list[ShownOption]:
    """All options of a declaration: known, custom, uninterpreted, each in a fixed order."""
    if not options.ByteSize():
        return []
    shown: list[ShownOption] = []
    for field, value in options.ListFields():
        if not field.is_extension and field.name != RESERVED_NAME:
            shown.extend((field.name, lines) for lines in _values(field, value))
    shown.extend(_custom_options(options, pool))
    for option in options.uninterpreted_option:
        name = ".".join(
            f"({part.name_part})" if part.is_extension else part.name_part for part in option.name
        )
        if option.HasField("aggregate_value"):
            shown.append((name, [f"{{ {option.aggregate_value} }}"]))
        else:
            shown.append((name, [uninterpreted_value(option)]))
    return shown


def _custom_options(options: Message, pool: DescriptorPool | None) -> Iterator[ShownOption]:
    if pool is None:
        return
    try:
        message = _options_class(options, pool)()
    except KeyError:
        return
    try:
        message.MergeFromString(options.SerializePartialToString())
    except DecodeError:
        raise SchemaError("a custom option is not of the type that its import declares") from None
    for field, value in message.ListFields():
        if field.is_extension:
            for lines in _values(field, value):
                yield f"({field.full_name})", lines


def _values(field: FieldDescriptor, value: object) -> Iterator[list[str]]:
    if isinstance(value, bool | int | float | str | bytes | Message):
        yield _value(field, value)
        return
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        yield from _map_values(field, value)
        return
    for element in value:  # type: ignore[attr-defined]
        yield _value(field, element)


def _map_values(field: FieldDescriptor, value: Any) -> Iterator[list[str]]:  # a map of any types
    key_field, value_field = field.message_type.fields
    for key in sorted(value):
        key_lines = _value(key_field, key)
        value_lines = _value(value_field, value[key])
        yield _braces([("key", key_lines), ("value", value_lines)])


def _value(field: FieldDescriptor, value: Any) -> list[str]:  # the Python value of any type
    if isinstance(value, Message):
        members = []
        for member, content in value.ListFields():
            name = f"[{member.full_name}]" if member.is_extension else member.name
            elements = list(_values(member, content))
            members.append((name, elements[0] if len(elements) == 1 else _brackets(elements)))
        return _braces(members)
    if field.type == FieldDescriptor.TYPE_ENUM:
        known = field.enum_type.values_by_number.get(value)
        return [known.name if known else str(value)]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, float):
        return [float_text(value, single=field.type == FieldDescriptor.TYPE_FLOAT)]
    if isinstance(value, str | bytes):
        return [quoted(value.encode() if isinstance(value, str) else value)]
    return [str(value)]


def _braces(members: list[ShownOption]) -> list[str]:
    lines = ["{"]
    for position, (name, value) in enumerate(members):
        comma = "," if position < len(members) - 1 else ""
        lines.extend(indented([f"{name}: {value[0]}", *value[1:]]))
        lines[-1] += comma
    return [*lines, "}"]


def _brackets(elements: list[list[str]]) -> list[str]:
    lines = ["["]
    for position, element in enumerate(elements):
        comma = "," if position < len(elements) - 1 else ""
        lines.extend(indented(element))
        lines[-1] += comma
    return [*lines, "]"]


def indented(lines: Iterable[str]) -> list[str]:
    """Lines, indented by one level."""
    return [f"  {line}" if line else line for line in lines]


_ESCAPED = {
    ord("\a"): "\\a",
    ord("\b"): "\\b",
    ord("\f"): "\\f",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    ord("\v"): "\\v",
    ord("\\"): "\\\\",
    ord("'"): "\\'",
    ord('"'): '\\"',
}


def quoted(content: bytes) -> str:
    """A string literal; bytes that are not UTF-8 are octal escapes."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f'"{escaped_bytes(content)}"'
    if text.isprintable():
        return f'"{text.translate(_ESCAPED)}"'
    return '"' + "".join(_escaped_character(character) for character in text) + '"'


def _escaped_character(character: str) -> str:
    known = _ESCAPED.get(ord(character))
    if known is not None:
        return known
    if character.isprintable():
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def escaped_bytes(content: bytes) -> str:
    """Bytes in the form of a bytes field's default in descriptors."""
    named = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}
    return "".join(
        named.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in content
    )


def float_text(value: float, *, single: bool = False) -> str:
    """A number with the fewest digits that identify it."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    for digits in (6, 9) if single else (15, 17):
        text = f"{value:.{digits}g}"
        if _rounded(float(text), single=single) == _rounded(value, single=single):
            break
    return text


def _rounded(value: float, *, single: bool) -> float:
    if not single:
        return value
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded
