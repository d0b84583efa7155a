"""Syntax trees of types; custom types are resolved later by the catalog."""

from dataclasses import dataclass

from sql.syntax.node import Node


@dataclass(frozen=True, slots=True)
class NamedType(Node):
    """BIGINT, DECIMAL(4, 2), VARCHAR(10), or the name of a custom type."""

    name: str
    parameters: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ArrayOf(Node):
    """ARRAY<element>."""

    element: "TypeSyntax"


@dataclass(frozen=True, slots=True)
class MapOf(Node):
    """MAP<key, value>."""

    key: "TypeSyntax"
    value: "TypeSyntax"


@dataclass(frozen=True, slots=True)
class StructOf(Node):
    """STRUCT<name type, ...>."""

    fields: tuple[tuple[str, "TypeSyntax"], ...]


TypeSyntax = NamedType | ArrayOf | MapOf | StructOf
