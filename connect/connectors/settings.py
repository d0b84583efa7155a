"""Settings: parsed values of a connector's settings, with their types."""

from collections.abc import Mapping

from connect.config_def import ConfigDef, Password


class Settings:
    """What a configuration says, checked by its definition, asked by name and type."""

    __slots__ = ("_values",)

    def __init__(self, definition: ConfigDef, config: Mapping[str, str]) -> None:
        """Parses a configuration; ConfigError for the first setting that is wrong."""
        self._values = definition.parse(config)

    def text(self, name: str) -> str:
        """The value of a STRING or CLASS setting; the empty text where nothing is set."""
        value = self._values[name]
        assert value is None or isinstance(value, str), f"{name} is no text"
        return value or ""

    def integer(self, name: str) -> int:
        """The value of an INT, SHORT or LONG setting that always has one."""
        value = self._values[name]
        assert isinstance(value, int), f"{name} is no integer"
        return value

    def optional_integer(self, name: str) -> int | None:
        """The value of an INT, SHORT or LONG setting; None where nothing is set."""
        return None if self._values[name] is None else self.integer(name)

    def number(self, name: str) -> float:
        """The value of a DOUBLE setting that always has one."""
        value = self._values[name]
        assert isinstance(value, float), f"{name} is no number"
        return value

    def flag(self, name: str) -> bool:
        """The value of a BOOLEAN setting that always has one."""
        value = self._values[name]
        assert isinstance(value, bool), f"{name} is no flag"
        return value

    def texts(self, name: str) -> list[str]:
        """The entries of a LIST setting."""
        value = self._values[name]
        assert value is None or isinstance(value, list), f"{name} is no list"
        return value or []

    def secret(self, name: str) -> str:
        """The value of a PASSWORD setting; the empty text where nothing is set."""
        value = self._values[name]
        assert value is None or isinstance(value, Password), f"{name} is no password"
        return "" if value is None else value.value
