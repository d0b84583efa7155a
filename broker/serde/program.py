"""Program: Python functions that are written for one schema, so that each field costs least.

A field of text, for example, is one attribute read and one comparison of types; a function that
looked at schemas for every record would take several times as long.
"""

from collections.abc import Callable
from typing import Any


class Program:
    """Collects sources and the objects they name; `function` compiles all of it."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._lines: list[str] = []
        self._scope: dict[str, object] = {}
        self._count = 0

    def name(self, stem: str) -> str:
        """A name that nothing else has."""
        self._count += 1
        return f"{stem}_{self._count}"

    def constant(self, stem: str, value: object) -> str:
        """The name under which the functions find an object."""
        name = self.name(stem)
        self._scope[name] = value
        return name

    def shared(self, **values: object) -> None:
        """Objects that are found under their own names."""
        self._scope.update(values)

    def define(self, name: str, argument: str, *body: str) -> None:
        """A function; its arguments are separated by commas."""
        self._lines += [f"def {name}({argument}):", *(f"    {line}" for line in body)]

    def add(self, line: str) -> None:
        """A line between the functions."""
        self._lines.append(line)

    # Any: what the functions take and give is in their sources.
    def function(self, name: str) -> Callable[[Any], Any]:
        """One of the functions, ready to be called."""
        source = "\n".join(self._lines)
        exec(compile(source, f"<{self._title}>", "exec"), self._scope)
        found = self._scope[name]
        assert callable(found), f"{name} was defined"
        return found
