"""Properties: a JSON object in a schema that defines the values, with clear errors."""

import json
from collections.abc import Mapping
from pathlib import Path

from connect.errors import ConfigError

ARG_PROPERTIES = "arg.properties"
KNOWN = (
    "options",
    "range",
    "iteration",
    "odds",
    "regex",
    "length",
    "prefix",
    "suffix",
    "keys",
    "numbered",
    "time",
)
_LENGTHS = (8, 16)


class Properties:
    """A JSON object, and its location in the schema for error messages."""

    __slots__ = ("at", "given")

    def __init__(self, given: object, at: str) -> None:
        """Raises ConfigError if the properties are not a JSON object."""
        if not isinstance(given, dict):
            raise ConfigError(f"{given!r} is not a JSON object", at=at)
        self.given: Mapping[str, object] = given
        self.at = at

    @classmethod
    def of_node(cls, node: Mapping[str, object], at: str) -> "Properties":
        """The `arg.properties` of a type; unknown names are refused."""
        made = cls(node.get(ARG_PROPERTIES, {}), at)
        for name in made.given:
            if name not in KNOWN:
                known = ", ".join(KNOWN)
                raise made.error(f'unknown property "{name}"', hint=f"the properties are {known}")
        return made

    def __contains__(self, name: str) -> bool:
        """Whether a property is given."""
        return name in self.given

    def error(self, message: str, *, hint: str = "") -> ConfigError:
        """An error with the location in the schema."""
        return ConfigError(message, at=self.at, hint=hint)

    def inner(self, name: str) -> "Properties":
        """A property that is a JSON object; empty if it is not given."""
        return Properties(self.given.get(name, {}), self.at)

    def text(self, name: str) -> str:
        """A property that is a string; empty if it is not given."""
        value = self.given.get(name, "")
        if not isinstance(value, str):
            raise self.error(f'"{name}" is not a string: {value!r}')
        return value

    def number(self, name: str, default: float | None = None) -> int | float:
        """A property that is a number."""
        value = self.given.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f'"{name}" is not a number: {value!r}')
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """A property that is a whole number."""
        value = self.number(name, default)
        if not isinstance(value, int):
            raise self.error(f'"{name}" is not an integer: {value!r}')
        return value

    def range(self, low: float, end: float) -> tuple[float, float]:
        """The given range within the full one."""
        given = self.inner("range")
        low, end = given.number("min", low), given.number("max", end)
        if end <= low:
            raise self.error(f"the range from {low} to {end} is empty")
        return low, end

    def lengths(self) -> tuple[int, int]:
        """The minimum length, and the maximum length plus one."""
        given = self.given.get("length")
        if given is None:
            return _LENGTHS
        if isinstance(given, dict):
            bounds = Properties(given, self.at)
            least = bounds.integer("min", 0)
            end = bounds.integer("max", least + _LENGTHS[1])
        else:
            least = self.integer("length")
            end = least + 1
        if not 0 <= least < end:
            raise self.error(f"there is no length from {least} to below {end}")
        return least, end

    def options(self) -> list[object] | None:
        """The values to choose from, given here or in a JSON file; None if neither is."""
        given = self.given.get("options")
        if isinstance(given, dict):
            given = self._options_of_file(Properties(given, self.at))
        if given is None:
            return None
        if not isinstance(given, list) or not given:
            raise self.error("options must be a list of values")
        return given

    def _options_of_file(self, given: "Properties") -> object:
        if given.text("encoding") != "json":
            raise self.error('options in a file must have "encoding": "json"')
        try:
            return json.loads(Path(given.text("file")).read_text())
        except (OSError, ValueError) as error:
            raise self.error(f"the file of options cannot be read: {error}") from None
