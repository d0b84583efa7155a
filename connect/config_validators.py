"""Validators of settings, with Kafka's error messages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from broker.java.number_text import double_text
from broker.java.patterns import compile_pattern
from connect.errors import ConfigError


class Validator(Protocol):
    """Refuses invalid values of a setting; `str` describes the valid ones."""

    def ensure_valid(self, name: str, value: object) -> None:
        """Raise ConfigError if the value is invalid."""


class Password:
    """A string that logs and messages do not show."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return "[hidden]"

    __repr__ = __str__


def shown(value: object) -> str:
    """A value as Java prints it in messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case list() | tuple():
            return f"[{', '.join(map(shown, value))}]"
        case _:
            return str(value)


def invalid(name: str, value: object, why: str = "") -> ConfigError:
    """The error of an invalid value."""
    reason = f": {why}" if why else ""
    return ConfigError(f"Invalid value {shown(value)} for configuration {name}{reason}")


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`; None means no bound."""

    low: float | None = None
    high: float | None = None

    def ensure_valid(self, name: str, value: object) -> None:
        """Accept only numbers within the bounds."""
        if value is None:
            raise invalid(name, None, "Value must be non-null")
        assert isinstance(value, int | float), "only numeric settings have a range"
        if self.low is not None and value < self.low:
            raise invalid(name, value, f"Value must be at least {shown(self.low)}")
        if self.high is not None and value > self.high:
            raise invalid(name, value, f"Value must be no more than {shown(self.high)}")

    def __str__(self) -> str:
        bounds = ["..." if bound is None else shown(bound) for bound in (self.low, self.high)]
        if None in (self.low, self.high):
            return f"[{','.join(dict.fromkeys(bounds))}]"
        return f"[{bounds[0]},...,{bounds[1]}]"


class ValidString:
    """One of several strings."""

    def __init__(self, *strings: str) -> None:
        self.strings = strings

    def ensure_valid(self, name: str, value: object) -> None:
        """Accept only these strings."""
        if value not in self.strings:
            raise invalid(name, value, f"String must be one of: {', '.join(self.strings)}")

    def __str__(self) -> str:
        return f"[{', '.join(self.strings)}]"


class CaseInsensitiveValidString:
    """One of several strings, case-insensitive."""

    def __init__(self, *strings: str) -> None:
        self.strings = tuple(text.upper() for text in strings)

    def ensure_valid(self, name: str, value: object) -> None:
        """Accept only these strings, in any case."""
        if not isinstance(value, str) or value.upper() not in self.strings:
            listed = ", ".join(self.strings)
            raise invalid(name, value, f"String must be one of (case insensitive): {listed}")

    def __str__(self) -> str:
        return f"(case insensitive) [{', '.join(self.strings)}]"


class NonEmptyString:
    """A non-empty string, or null."""

    def ensure_valid(self, name: str, value: object) -> None:
        """Refuse the empty string."""
        if value == "":
            raise invalid(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


class NonEmptyStringWithoutControlChars:
    """A non-empty string without control characters, as for names of connectors."""

    def ensure_valid(self, name: str, value: object) -> None:
        """Refuse the empty string and strings with control characters."""
        if value is None:
            return
        assert isinstance(value, str), "only string settings have characters"
        if not value:
            raise invalid(name, value, "String may not be empty")
        controls = [str(ord(character)) for character in value if _is_control(character)]
        if controls:
            why = "String may not contain control sequences but had the following ASCII chars: "
            raise invalid(name, value, why + ", ".join(controls))

    def __str__(self) -> str:
        return "non-empty string without ISO control characters"


def _is_control(character: str) -> bool:
    return character <= "\x1f" or "\x7f" <= character <= "\x9f"


class NonNull:
    """Any value but null."""

    def ensure_valid(self, name: str, value: object) -> None:
        """Refuse null."""
        if value is None:
            raise invalid(name, None, "entry must be non null")

    def __str__(self) -> str:
        return "non-null string"


class NonEmptyList:
    """A list of at least one entry, without empty entries, as for transforms."""

    def ensure_valid(self, name: str, value: object) -> None:
        """Refuse empty lists and empty entries."""
        if not value:
            raise invalid(name, value, "Empty list")

    def __str__(self) -> str:
        return "non-empty list"


class Regex:
    """A Java regular expression."""

    def ensure_valid(self, name: str, value: object) -> None:
        """Accept only regular expressions."""
        if value is None:
            raise invalid(name, None, "Invalid regex: there is none")
        try:
            compile_pattern(str(value))
        except ValueError as error:
            raise invalid(name, value, f"Invalid regex: {error}") from None

    def __str__(self) -> str:
        return "valid regex"


@dataclass(frozen=True, slots=True)
class ListSize:
    """A list of at most `entries_max` entries."""

    entries_max: int

    def ensure_valid(self, name: str, value: object) -> None:
        """Refuse lists that are too long."""
        if isinstance(value, list) and len(value) > self.entries_max:
            raise invalid(name, value, f"exceeds maximum list size of [{self.entries_max}].")

    def __str__(self) -> str:
        return f"List containing maximum of {self.entries_max} elements"


class ValidList:
    """A list without duplicate or empty entries, optionally of certain strings."""

    def __init__(
        self, *strings: str, empty_allowed: bool = True, null_allowed: bool = False
    ) -> None:
        self._entry = ValidString(*strings)
        self._empty_allowed = empty_allowed
        self._null_allowed = null_allowed

    def ensure_valid(self, name: str, value: object) -> None:
        """Accept only lists with valid entries."""
        if value is None:
            if self._null_allowed:
                return
            raise ConfigError(f"Configuration '{name}' values must not be null.")
        assert isinstance(value, list), "only list settings have entries"
        if not value and not self._empty_allowed:
            listed = str(self._entry) if self._entry.strings else "any non-empty value"
            raise ConfigError(
                f"Configuration '{name}' must not be empty. Valid values include: {listed}"
            )
        if len(set(value)) < len(value):
            raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
        for entry in value:
            if entry == "":
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if self._entry.strings:
                self._entry.ensure_valid(name, entry)

    def __str__(self) -> str:
        return str(self._entry) if self._entry.strings else ""


class AllOf:
    """Values that pass all of several validators."""

    def __init__(self, *validators: Validator) -> None:
        self._validators = validators

    def ensure_valid(self, name: str, value: object) -> None:
        """Accept only values that all of them accept."""
        for validator in self._validators:
            validator.ensure_valid(name, value)

    def __str__(self) -> str:
        return ", ".join(map(str, self._validators))


class Check:
    """A validator from a function and its description."""

    def __init__(self, ensure_valid: Callable[[str, object], None], description: str) -> None:
        self._ensure_valid = ensure_valid
        self._description = description

    def ensure_valid(self, name: str, value: object) -> None:
        """Call the function."""
        self._ensure_valid(name, value)

    def __str__(self) -> str:
        return self._description


def unique_entries(kind: str) -> Validator:
    """A list without duplicates: aliases of transforms, groups of topics."""

    def ensure_unique(name: str, value: object) -> None:
        assert isinstance(value, Sequence), "only list settings have entries"
        if len(set(value)) < len(value):
            raise invalid(name, value, "Duplicate alias provided.")

    return AllOf(NonNull(), Check(ensure_unique, f"unique {kind}"))
