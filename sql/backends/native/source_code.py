"""Pieces of generated Python source, and the names that they use.

User input never becomes part of the source: strings and other objects are constants with generated
names (k1, k2), which are globals of the generated functions.
"""

from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PythonCode:
    """The source of an expression that needs no further parentheses."""

    text: str
    # Whether its value may be None; otherwise it raises where ksqlDB does.
    nullable: bool = True
    # Whether it may be written twice at no cost.
    atom: bool = False
    # Whether it has the same value for all rows.
    constant: bool = False

    @property
    def is_null(self) -> bool:
        """Whether it is a literal NULL."""
        return self.text == "None"


NULL = PythonCode("None", nullable=True, atom=True, constant=True)


class ColumnSource(Protocol):
    """The source of a row's columns."""

    @property
    def parameters(self) -> str:
        """The variables that the source uses."""
        ...

    def code(self, index: int) -> PythonCode:
        """The source of a column."""
        ...


@dataclass(frozen=True, slots=True)
class ColumnsOf:
    """The columns of a row in one variable."""

    variable: str

    @property
    def parameters(self) -> str:
        """The variable."""
        return self.variable

    def code(self, index: int) -> PythonCode:
        """An index of the row."""
        return PythonCode(f"{self.variable}[{index}]", atom=True)


class Names:
    """Names of constants and temporary variables."""

    def __init__(self) -> None:
        self.namespace: dict[str, object] = {}
        # Functions for code that would be nested too deeply for Python.
        self.functions: list[str] = []
        self._known: dict[int, str] = {}
        self._count = 0

    def fresh(self, prefix: str) -> str:
        """A unique name."""
        self._count += 1
        return f"{prefix}{self._count}"

    def constant(self, value: object) -> str:
        """A name for an object; each object has one name."""
        name = self._known.get(id(value))
        if name is None:
            name = self.fresh("k")
            # The namespace keeps the object alive, so its id stays unique.
            self._known[id(value)] = name
            self.namespace[name] = value
        return name

    def value(self, value: object) -> PythonCode:
        """A SQL value that is the same for all rows."""
        if value is None:
            return NULL
        written = isinstance(value, bool | int) or (isinstance(value, float) and isfinite(value))
        text = repr(value) if written else self.constant(value)
        if text.startswith("-"):
            text = f"({text})"
        return PythonCode(text, nullable=False, atom=True, constant=True)

    def once(self, code: PythonCode) -> tuple[str, str]:
        """The source for the first use of a value, and the source for all later uses."""
        if code.atom and not code.text.endswith("]"):
            return code.text, code.text
        name = self.fresh("t")
        return f"({name} := {code.text})", name

    def function(self, parameters: str, code: PythonCode) -> PythonCode:
        """The source of a call of a separate function with this code."""
        name = self.fresh("f")
        self.functions.append(f"def {name}({parameters}):\n    return {code.text}")
        return PythonCode(f"{name}({parameters})", nullable=code.nullable)


def nesting(text: str) -> int:
    """The nesting depth of brackets; the source has no string literals with brackets."""
    depth = deepest = 0
    for sign in text:
        if sign in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in ")]}":
            depth -= 1
    return deepest


def is_plain(value: object) -> bool:
    """Whether a value is immutable, so that all rows may share it."""
    return value is None or isinstance(value, bool | int | float | str | bytes | Decimal)
