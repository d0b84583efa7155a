"""What a setting's value may be: validators that refuse others with the words Kafka uses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from broker.schema.java_numbers import double_text
from broker.schema.java_patterns import compile_pattern
from connect.errors import ConfigError


class Validator(Protocol):
    """Refuses wrong values of a setting; its text says which values are right."""

    def ensure_valid(self, name: str, value: object) -> None:
        """ConfigError if the setting may not have this value."""


class Password:
    """A text that is never shown."""

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
    """A value as Java prints it inside of messages."""
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
    """The error of a wrong value."""
    reason = f": {why}" if why else ""
    return ConfigError(f"Invalid value {shown(value)} for configuration {name}{reason}")


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`; a bound that is None is open."""

    low: float | None = None
    high: float | None = None

    def ensure_valid(self, name: str, value: object) -> None:
        """Only numbers inside of the bounds."""
        if value is None:
            raise invalid(name, None, "Value must be non-null")
        assert isinstance(value, int | float), "only settings that are numbers have a range"
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
    """One of some texts."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def ensure_valid(self, name: str, value: object) -> None:
        """Only the texts, as they are written."""
        if value not in self.texts:
            raise invalid(name, value, f"String must be one of: {', '.join(self.texts)}")

    def __str__(self) -> str:
        return f"[{', '.join(self.texts)}]"


class CaseInsensitiveValidString:
    """One of some texts, in capital or small letters."""

    def __init__(self, *texts: str) -> None:
        self.texts = tuple(text.upper() for text in texts)

    def ensure_valid(self, name: str, value: object) -> None:
        """Only the texts, whatever the case of their letters."""
        if not isinstance(value, str) or value.upper() not in self.texts:
            listed = ", ".join(self.texts)
            raise invalid(name, value, f"String must be one of (case insensitive): {listed}")

    def __str__(self) -> str:
        return f"(case insensitive) [{', '.join(self.texts)}]"


class NonEmptyString:
    """A text that is not empty; a setting that is not given passes."""

    def ensure_valid(self, name: str, value: object) -> None:
        """Anything but the empty text."""
        if value == "":
            raise invalid(name, value, "String must be non-empty")

    def __str__(self) -> str:
        return "non-empty string"


class NonEmptyStringWithoutControlChars:
    """A text of visible signs, as the names of connectors are."""

    def ensure_valid(self, name: str, value: object) -> None:
        """Anything but the empty text and texts with control characters."""
        if value is None:
            return
        assert isinstance(value, str), "only settings that are texts have signs"
        if not value:
            raise invalid(name, value, "String may not be empty")
        controls = [str(ord(sign)) for sign in value if _is_control(sign)]
        if controls:
            why = "String may not contain control sequences but had the following ASCII chars: "
            raise invalid(name, value, why + ", ".join(controls))

    def __str__(self) -> str:
        return "non-empty string without ISO control characters"


def _is_control(sign: str) -> bool:
    return sign <= "\x1f" or "\x7f" <= sign <= "\x9f"


class NonNull:
    """Any value but none."""

    def ensure_valid(self, name: str, value: object) -> None:
        """Any value but none."""
        if value is None:
            raise invalid(name, None, "entry must be non null")

    def __str__(self) -> str:
        return "non-null string"


class NonEmptyList:
    """A list of at least one entry, none of them empty, as transforms ask for."""

    def ensure_valid(self, name: str, value: object) -> None:
        """Any list with entries."""
        if not value:
            raise invalid(name, value, "Empty list")

    def __str__(self) -> str:
        return "non-empty list"


class Regex:
    """A regular expression of Java."""

    def ensure_valid(self, name: str, value: object) -> None:
        """Only texts that are expressions."""
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
        """Only lists that are short enough."""
        if isinstance(value, list) and len(value) > self.entries_max:
            raise invalid(name, value, f"exceeds maximum list size of [{self.entries_max}].")

    def __str__(self) -> str:
        return f"List containing maximum of {self.entries_max} elements"


class ValidList:
    """A list without repeated or empty entries, of some texts if any are named."""

    def __init__(self, *texts: str, empty_allowed: bool = True, null_allowed: bool = False) -> None:
        self._entry = ValidString(*texts)
        self._empty_allowed = empty_allowed
        self._null_allowed = null_allowed

    def ensure_valid(self, name: str, value: object) -> None:
        """Only lists whose entries are all right."""
        if value is None:
            if self._null_allowed:
                return
            raise ConfigError(f"Configuration '{name}' values must not be null.")
        assert isinstance(value, list), "only settings that are lists have entries"
        if not value and not self._empty_allowed:
            listed = str(self._entry) if self._entry.texts else "any non-empty value"
            raise ConfigError(
                f"Configuration '{name}' must not be empty. Valid values include: {listed}"
            )
        if len(set(value)) < len(value):
            raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
        for entry in value:
            if entry == "":
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if self._entry.texts:
                self._entry.ensure_valid(name, entry)

    def __str__(self) -> str:
        return str(self._entry) if self._entry.texts else ""


class AllOf:
    """What several validators allow."""

    def __init__(self, *validators: Validator) -> None:
        self._validators = validators

    def ensure_valid(self, name: str, value: object) -> None:
        """Only values that none of them refuses."""
        for validator in self._validators:
            validator.ensure_valid(name, value)

    def __str__(self) -> str:
        return ", ".join(map(str, self._validators))


class Check:
    """A validator made of a function and the words that describe it."""

    def __init__(self, ensure_valid: Callable[[str, object], None], description: str) -> None:
        self._ensure_valid = ensure_valid
        self._description = description

    def ensure_valid(self, name: str, value: object) -> None:
        """Only values that the function lets pass."""
        self._ensure_valid(name, value)

    def __str__(self) -> str:
        return self._description


def unique_entries(kind: str) -> Validator:
    """A list that names nothing twice: aliases of transforms, groups of topics."""

    def ensure_unique(name: str, value: object) -> None:
        assert isinstance(value, Sequence), "only settings that are lists have entries"
        if len(set(value)) < len(value):
            raise invalid(name, value, "Duplicate alias provided.")

    return AllOf(NonNull(), Check(ensure_unique, f"unique {kind}"))
