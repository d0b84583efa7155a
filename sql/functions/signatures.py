"""Signatures: what a function takes and gives, as patterns of types.

They are written as text and read once:

    SUBSTRING(string STRING, position INT, length INT) -> STRING
    ARRAY_CONTAINS(array ARRAY<T>, value T) -> BOOLEAN
    CONCAT_WS(separator STRING, strings STRING...) -> STRING
    TRANSFORM(array ARRAY<T>, change LAMBDA<T, R>) -> ARRAY<R>       the last type is the result
    DATEADD(unit INTERVALUNIT, count INT, day DATE) -> DATE
    ABS(number DECIMAL) -> DECIMAL                                   DECIMAL of any digits
    TO_JSON_STRING(value ANY) -> STRING

A name of one or two letters, T or K1, is a variable: the same type wherever it stands in one call.
`...` after a type makes it variadic; it may be the last or a middle parameter, at most once.
"""

from dataclasses import dataclass

from sql.datatypes import DataType


@dataclass(frozen=True, slots=True)
class TypeVariable:
    """Any type, but the same one everywhere."""

    name: str

    def __str__(self) -> str:
        """As it is written."""
        return self.name


@dataclass(frozen=True, slots=True)
class AnyDecimal:
    """A decimal of any precision and scale."""

    def __str__(self) -> str:
        """As it is written."""
        return "DECIMAL"


@dataclass(frozen=True, slots=True)
class AnyType:
    """Any type at all; in a variadic parameter each value may have another one."""

    def __str__(self) -> str:
        """As it is written."""
        return "ANY"


@dataclass(frozen=True, slots=True)
class Unit:
    """DAYS, HOURS and so on."""

    def __str__(self) -> str:
        """As it is written."""
        return "INTERVALUNIT"


@dataclass(frozen=True, slots=True)
class ArrayPattern:
    """An array whose elements fit a pattern."""

    element: "Pattern"

    def __str__(self) -> str:
        """As it is written."""
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapPattern:
    """A map whose keys and values fit patterns."""

    key: "Pattern"
    value: "Pattern"

    def __str__(self) -> str:
        """As it is written."""
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class LambdaPattern:
    """A lambda of inputs that gives a result."""

    inputs: tuple["Pattern", ...]
    result: "Pattern"

    def __str__(self) -> str:
        """As it is written."""
        return f"LAMBDA<{', '.join(map(str, (*self.inputs, self.result)))}>"


# Structs stand in signatures only as whole types.
Pattern = (
    DataType
    | TypeVariable
    | AnyDecimal
    | AnyType
    | Unit
    | ArrayPattern
    | MapPattern
    | LambdaPattern
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function."""

    name: str
    pattern: Pattern
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and gives."""

    name: str
    parameters: tuple[Parameter, ...]
    result: Pattern

    def __str__(self) -> str:
        """As errors and DESCRIBE FUNCTION show it."""
        shown = ", ".join(
            f"{each.pattern}{'...' if each.variadic else ''} {each.name}"
            for each in self.parameters
        )
        return f"{self.name}({shown})"
