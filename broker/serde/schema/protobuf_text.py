"""parse_text: parses a .proto file to a tree of its statements.

The grammar is in protobuf.lark; no other module uses the parser library. Options stay uninterpreted
here, in the form of descriptor.proto.
"""

import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

from google.protobuf.descriptor_pb2 import UninterpretedOption  # type: ignore[import-untyped]
from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from broker.errors import SchemaError

TEXT_CHARACTERS_MAX = 1_000_000
NESTING_MAX = 32
INTEGER_DIGITS_MAX = 24
FIELD_NUMBER_MAX = 2**29 - 1
INT32_MAX = 2**31 - 1


@dataclass(slots=True)
class Range:
    """Numbers from first to last, inclusive; `last` is None for "max"."""

    first: int
    last: int | None


@dataclass(slots=True)
class Reserved:
    """Numbers and names that must not be used."""

    ranges: list[Range] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Extensions:
    """Numbers that other files may use."""

    ranges: list[Range]
    options: list[UninterpretedOption]


@dataclass(slots=True)
class FieldNode:
    """A field; `key` is the key type of a map, `body` the content of a group."""

    label: str | None
    type_name: str
    name: str
    number: int
    options: list[UninterpretedOption]
    key: str | None = None
    body: "list[Item] | None" = None


@dataclass(slots=True)
class OneofNode:
    """Fields of which at most one is set."""

    name: str
    items: list[FieldNode | UninterpretedOption]


@dataclass(slots=True)
class EnumValueNode:
    """A value of an enum."""

    name: str
    number: int
    options: list[UninterpretedOption]


@dataclass(slots=True)
class EnumNode:
    """An enum."""

    name: str
    items: list[EnumValueNode | UninterpretedOption | Reserved]


@dataclass(slots=True)
class ExtendNode:
    """Fields that are added to a message of another file."""

    extendee: str
    fields: list[FieldNode]


@dataclass(slots=True)
class MessageNode:
    """A message."""

    name: str
    items: "list[Item]"


@dataclass(slots=True)
class MethodNode:
    """A method of a service; inputs and outputs may be streams."""

    name: str
    input_type: str
    output_type: str
    input_streams: bool
    output_streams: bool
    options: list[UninterpretedOption]


@dataclass(slots=True)
class ServiceNode:
    """A service."""

    name: str
    items: list[MethodNode | UninterpretedOption]


@dataclass(slots=True)
class ImportNode:
    """Another file whose types are used; `modifier` is "public", "weak" or empty."""

    path: str
    modifier: str


@dataclass(slots=True)
class PackageNode:
    """The package of everything in the file."""

    name: str


Item: TypeAlias = (
    FieldNode
    | OneofNode
    | MessageNode
    | EnumNode
    | ExtendNode
    | UninterpretedOption
    | Reserved
    | Extensions
)
Statement: TypeAlias = (
    ImportNode
    | PackageNode
    | UninterpretedOption
    | MessageNode
    | EnumNode
    | ExtendNode
    | ServiceNode
)


@dataclass(slots=True)
class FileNode:
    """A whole file; `syntax` is empty if the file does not declare it."""

    syntax: str
    statements: list[Statement]


class AggregateValue(NamedTuple):
    """An option's value in braces: its original text, and its depth."""

    text: str
    depth: int


def parse_text(text: str) -> FileNode:
    """The statements of a file; SchemaError contains the position of an error."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise SchemaError(
            f"the text has {len(text)} characters, more than {TEXT_CHARACTERS_MAX}",
            hint="split it into several files that import each other",
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SchemaError("the text has characters that are not valid Unicode") from None
    text = text.removeprefix("\ufeff")
    try:
        return _parser().parse(text)  # type: ignore[return-value]
    except UnexpectedInput as error:
        raise _unexpected(error, text) from None


def _unexpected(error: UnexpectedInput, text: str) -> SchemaError:
    if isinstance(error, UnexpectedCharacters):
        found = f'"{error.char}"'
    elif isinstance(error, UnexpectedToken) and error.token.type != "$END":
        found = f'"{error.token[:40]}"'
    else:
        return SchemaError("the text ends in the middle of a statement")
    line = text.split("\n")[error.line - 1]
    start = max(error.column - 40, 0)
    return SchemaError(
        f"unexpected {found} in Protobuf text",
        at=f"line {error.line}, column {error.column}: {line[start : start + 80].strip()}",
    )


@cache
def _parser() -> Lark:
    grammar = files("broker.serde.schema").joinpath("protobuf.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", transformer=_Statements(), maybe_placeholders=True)


def _where(token: Token) -> str:
    return f"line {token.line}, column {token.column}"


def _integer(token: Token) -> int:
    if len(token) > INTEGER_DIGITS_MAX:
        raise SchemaError("the number is too large", at=_where(token))
    try:
        if token[:2] in ("0x", "0X"):
            return int(token, 16)
        return int(token, 8 if token[0] == "0" else 10)
    except ValueError:
        raise SchemaError(f'"{token}" is not an octal number', at=_where(token)) from None


def _number(token: Token) -> int:
    number = _integer(token)
    if number > INT32_MAX:
        raise SchemaError(f"the number {number} is too large", at=_where(token))
    return number


_ESCAPE = re.compile(
    rb"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))",
    re.DOTALL,
)
_LETTER_ESCAPES = dict(zip(b"abfnrtv\\'\"?", b"\a\b\f\n\r\t\v\\'\"?", strict=True))


def _unescaped(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, short, long, letter = match.groups()
    if letter is not None:
        if letter[0] not in _LETTER_ESCAPES:
            raise ValueError("unknown escape in a string")
        return bytes((_LETTER_ESCAPES[letter[0]],))
    if octal is not None:
        return bytes((int(octal, 8),))
    if hexadecimal is not None:
        return bytes((int(hexadecimal, 16),))
    return chr(int(short or long, 16)).encode()


def _string_bytes(token: Token) -> bytes:
    content = token[1:-1].encode()
    if b"\\" not in content:
        return content
    try:
        return _ESCAPE.sub(_unescaped, content)
    except (ValueError, OverflowError):
        raise SchemaError("unknown escape in a string", at=_where(token)) from None


# The arguments that lark passes to the method of a rule, in the grammar's order: tokens, results of
# other methods, and None for omitted optional parts. They depend on the rule, so they are Any.
Children = list[Any]


class _Statements(Transformer[Token, FileNode]):
    """Builds the tree while the text is parsed; each method has the name of a grammar rule."""

    def start(self, children: Children) -> FileNode:
        return FileNode(children[0] or "", [item for item in children[1:] if item is not None])

    def nothing(self, _: Children) -> None:
        return None

    def syntax(self, children: Children) -> str:
        syntax = self._utf8(children[-1])
        if len(children) == 2 or syntax not in ("proto2", "proto3"):
            raise SchemaError(
                f'syntax or edition "{syntax}" is not supported',
                hint='write syntax = "proto3"; or syntax = "proto2";',
            )
        return syntax

    def _utf8(self, content: bytes) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise SchemaError("a string is not valid UTF-8") from None

    def import_file(self, children: Children) -> ImportNode:
        return ImportNode(self._utf8(children[1]), str(children[0] or ""))

    def package(self, children: Children) -> PackageNode:
        return PackageNode(str(children[0]))

    # Options

    def option_statement(self, children: Children) -> UninterpretedOption:
        option: UninterpretedOption = children[0]
        return option

    def option(self, children: Children) -> UninterpretedOption:
        option = UninterpretedOption(name=children[0])
        value = children[1]
        match value:
            case bytes():
                option.string_value = value
            case AggregateValue():
                option.aggregate_value = value.text
            case str():
                option.identifier_value = value
            case float():
                option.double_value = value
            case _ if not -(2**63) <= value < 2**64:
                raise SchemaError(f"the number {value} is too large")
            case _ if value < 0:
                option.negative_int_value = value
            case _:
                option.positive_int_value = value
        return option

    def option_name(self, children: Children) -> list[UninterpretedOption.NamePart]:
        part = UninterpretedOption.NamePart
        return [
            child if isinstance(child, part) else part(name_part=str(child), is_extension=False)
            for child in children
        ]

    def extension_name(self, children: Children) -> UninterpretedOption.NamePart:
        return UninterpretedOption.NamePart(name_part=str(children[0]), is_extension=True)

    def number(self, children: Children) -> int | float:
        sign, token = children
        value = float(token) if token.type == "FLOAT" else _integer(token)
        return -value if sign == "-" else value

    def identifier(self, children: Children) -> str | float:
        sign, token = children
        if sign is None:
            return str(token)
        if token not in ("inf", "nan"):
            raise SchemaError(f'"{sign}{token}" is not a number', at=_where(token))
        return float(f"{sign}{token}")

    def text(self, children: Children) -> bytes:
        return b"".join(map(_string_bytes, children))

    def aggregate(self, children: Children) -> AggregateValue:
        depth = 1
        parts = []
        for child in children:
            if isinstance(child, AggregateValue):
                depth = max(depth, child.depth + 1)
                parts.append(f"{{ {child.text} }}")
            else:
                parts.append(str(child))
        if depth > NESTING_MAX or parts.count("<") > NESTING_MAX:
            raise SchemaError(f"an option's value is nested more than {NESTING_MAX} deep")
        return AggregateValue(" ".join(parts), depth)

    def nested_aggregate(self, children: Children) -> AggregateValue:
        return self.aggregate(children)

    def options(self, children: Children) -> list[UninterpretedOption]:
        return children

    # Messages

    def message(self, children: Children) -> MessageNode:
        return MessageNode(str(children[0]), children[1])

    def message_body(self, children: Children) -> list[Item]:
        return children

    def field(self, children: Children) -> FieldNode:
        label, type_name, name, number, options = children
        return FieldNode(
            label and str(label), str(type_name), str(name), _number(number), options or []
        )

    def oneof_field(self, children: Children) -> FieldNode:
        return self.field([None, *children])

    def map_field(self, children: Children) -> FieldNode:
        _, key, value, name, number, options = children
        return FieldNode(None, str(value), str(name), _number(number), options or [], key=str(key))

    def group(self, children: Children) -> FieldNode:
        label, name, number, options, body = children
        return FieldNode(
            label and str(label), str(name), str(name), _number(number), options or [], body=body
        )

    def oneof_group(self, children: Children) -> FieldNode:
        return self.group([None, *children])

    def oneof(self, children: Children) -> OneofNode:
        return OneofNode(str(children[0]), children[1:])

    def extend(self, children: Children) -> ExtendNode:
        return ExtendNode(str(children[0]), children[1:])

    def reserved(self, children: Children) -> Reserved:
        if children and isinstance(children[0], list):
            return Reserved(names=children[0])
        return Reserved(ranges=children)

    def reserved_names(self, children: Children) -> list[str]:
        return [self._utf8(name) for name in children]

    def extensions(self, children: Children) -> Extensions:
        return Extensions(children[:-1], children[-1] or [])

    def range(self, children: Children) -> Range:
        first, last = children
        if last is None:
            return Range(first, first)
        return Range(first, last if isinstance(last, int) else None)

    def signed(self, children: Children) -> int:
        sign, token = children
        value = _integer(token)
        value = -value if sign == "-" else value
        if not -INT32_MAX - 1 <= value <= INT32_MAX:
            raise SchemaError(f"the number {value} is too large", at=_where(token))
        return value

    # Enums and services

    def enumeration(self, children: Children) -> EnumNode:
        return EnumNode(str(children[0]), children[1:])

    def enumeration_value(self, children: Children) -> EnumValueNode:
        name, number, options = children
        return EnumValueNode(str(name), number, options or [])

    def service(self, children: Children) -> ServiceNode:
        return ServiceNode(str(children[0]), children[1:])

    def method(self, children: Children) -> MethodNode:
        name, (input_streams, input_type), (output_streams, output_type), *options = children
        return MethodNode(
            str(name), input_type, output_type, input_streams, output_streams, options
        )

    def method_type(self, children: Children) -> tuple[bool, str]:
        return children[0] is not None, str(children[1])
