"""Signatures: the parameters and results of functions, as patterns of types.

Their syntax:

    SUBSTRING(string STRING, position INT, length INT) -> STRING
    ARRAY_CONTAINS(array ARRAY<T>, value T) -> BOOLEAN
    CONCAT_WS(separator STRING, strings STRING...) -> STRING
    TRANSFORM(array ARRAY<T>, change LAMBDA<T, R>) -> ARRAY<R>       the last type is the result
    DATEADD(unit INTERVALUNIT, count INT, day DATE) -> DATE
    ABS(number DECIMAL) -> DECIMAL                                   DECIMAL of any digits
    TO_JSON_STRING(value ANY) -> STRING

A name of one or two letters, T or K1, is a type variable: the same type everywhere in a call.
`...` after a type makes it variadic; at most one parameter, in any position.
"""

from dataclasses import dataclass

from sql.datatypes import DataType


@dataclass(frozen=True, slots=True)
class TypeVariable:
    """Any type, the same one in the whole call."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class AnyDecimal:
    """A decimal of any precision and scale."""

    def __str__(self) -> str:
        return "DECIMAL"


@dataclass(frozen=True, slots=True)
class AnyType:
    """Any type; in a variadic parameter, each value may have a different one."""

    def __str__(self) -> str:
        return "ANY"


@dataclass(frozen=True, slots=True)
class Unit:
    """An interval unit: DAYS, HOURS and so on."""

    def __str__(self) -> str:
        return "INTERVALUNIT"


@dataclass(frozen=True, slots=True)
class ArrayPattern:
    """An array whose elements fit a pattern."""

    element: "Pattern"

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapPattern:
    """A map whose keys and values fit patterns."""

    key: "Pattern"
    value: "Pattern"

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class LambdaPattern:
    """A lambda with inputs and a result."""

    inputs: tuple["Pattern", ...]
    result: "Pattern"

    def __str__(self) -> str:
        return f"LAMBDA<{', '.join(map(str, (*self.inputs, self.result)))}>"


# Signatures have structs only as concrete types.
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
    """The parameters and the result of a function."""

    name: str
    parameters: tuple[Parameter, ...]
    result: Pattern

    def __str__(self) -> str:
        """As in errors and DESCRIBE FUNCTION."""
        shown = ", ".join(
            f"{each.pattern}{'...' if each.variadic else ''} {each.name}"
            for each in self.parameters
        )
        return f"{self.name}({shown})"
