"""The interface for looking up plugins: names and aliases to classes."""

import enum
from collections.abc import Sequence
from typing import Protocol


class PluginKind(enum.Enum):
    """The kinds of plugins; each one's value is its name in the REST API."""

    SOURCE = "source"
    SINK = "sink"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"


class PluginFinder(Protocol):
    """Finds plugins by their Java class name, their alias or their Python name."""

    def class_name(self, name: str) -> str | None:
        """The full name of a plugin of any kind, by name or alias; None if there is none."""
        ...

    def find(self, kind: PluginKind, name: str) -> type | None:
        """The class of a plugin of this kind; None if there is none."""
        ...

    def class_names(self, kind: PluginKind) -> Sequence[str]:
        """The full names of all plugins of this kind."""
        ...

    def version(self, kind: PluginKind, name: str) -> str | None:
        """The version of a plugin; None if it is missing or has no version."""
        ...
