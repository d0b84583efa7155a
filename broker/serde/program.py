"""Program: generated Python functions for one schema, which make every field cheap.

A string field, for example, costs one attribute read and one type comparison; a function that
interpreted the schema for every record would take several times as long.
"""

from collections.abc import Callable
from typing import Any


class Program:
    """Collects sources and the objects they refer to; `function` compiles all of it."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._lines: list[str] = []
        self._scope: dict[str, object] = {}
        self._count = 0

    def name(self, stem: str) -> str:
        """A unique name."""
        self._count += 1
        return f"{stem}_{self._count}"

    def constant(self, stem: str, value: object) -> str:
        """The name of an object in the functions."""
        name = self.name(stem)
        self._scope[name] = value
        return name

    def shared(self, **values: object) -> None:
        """Objects that are available under their own names."""
        self._scope.update(values)

    def define(self, name: str, argument: str, *body: str) -> None:
        """Add a function; its arguments are separated by commas."""
        self._lines += [f"def {name}({argument}):", *(f"    {line}" for line in body)]

    def add(self, line: str) -> None:
        """Add a line between the functions."""
        self._lines.append(line)

    # Any: the types of arguments and results are in the sources.
    def function(self, name: str) -> Callable[[Any], Any]:
        """One of the functions, compiled."""
        source = "\n".join(self._lines)
        exec(compile(source, f"<{self._title}>", "exec"), self._scope)
        found = self._scope[name]
        assert callable(found), f"{name} was defined"
        return found
