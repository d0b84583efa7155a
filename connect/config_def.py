"""ConfigDef: definitions of settings, how strings are parsed, and Kafka's errors for invalid ones.

DEFINITION = (
    ConfigDef()
    .define("file", ConfigType.STRING, None, importance=Importance.HIGH, doc="The file to read.")
    .define("batch.size", ConfigType.INT, 2000, validator=Range(1), importance=Importance.LOW)
)
DEFINITION.parse({"file": "a.txt"})         # {"file": "a.txt", "batch.size": 2000}
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, Protocol, Self, TypeVar

from broker.java.number_text import CONTROLS_AND_SPACE, double_text, parse_double, parse_integer
from connect.config_validators import (
    AllOf,
    CaseInsensitiveValidString,
    Check,
    ListSize,
    NonEmptyList,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    NonNull,
    Password,
    Range,
    Regex,
    Validator,
    ValidList,
    ValidString,
    invalid,
    shown,
)
from connect.errors import ConfigError

T = TypeVar("T")

__all__ = [
    "REQUIRED",
    "AllOf",
    "CaseInsensitiveValidString",
    "Check",
    "ConfigDef",
    "ConfigKey",
    "ConfigType",
    "ConfigValue",
    "Importance",
    "ListSize",
    "NonEmptyList",
    "NonEmptyString",
    "NonEmptyStringWithoutControlChars",
    "NonNull",
    "Password",
    "Range",
    "Recommender",
    "Regex",
    "Settings",
    "ValidList",
    "ValidString",
    "Validator",
    "Width",
    "invalid",
    "parse_type",
    "text_of",
    "with_prefix",
]


class ConfigType(Enum):
    """The type of a setting."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"


class Importance(Enum):
    """The importance of a setting."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(Enum):
    """The width of the setting's field in a form."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class _Required(Enum):
    REQUIRED = "required"


# The default of a setting that must be given.
REQUIRED: Final = _Required.REQUIRED


class Recommender(Protocol):
    """Recommends values to a form, and decides whether it shows the setting."""

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> Sequence[object]:
        """The values to offer, given the other settings."""

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        """Whether to show the setting, given the other settings."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One declared setting."""

    name: str
    type: ConfigType
    default: object = REQUIRED
    validator: Validator | None = None
    importance: Importance = Importance.MEDIUM
    doc: str = ""
    group: str | None = None
    order: int = -1
    width: Width = Width.NONE
    display_name: str = ""
    dependents: tuple[str, ...] = ()
    recommender: Recommender | None = None

    @property
    def required(self) -> bool:
        """Whether the setting must be given."""
        return self.default is REQUIRED


@dataclass(slots=True)
class ConfigValue:
    """The validation result of one setting."""

    name: str
    value: object = None
    recommended_values: list[object] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    visible: bool = True


class Settings(dict[str, object]):
    """Parsed settings by name, with a method for each type."""

    def text(self, name: str) -> str:
        """A string or class; not null."""
        value = self[name]
        assert isinstance(value, str), f"{name} is not a string"
        return value

    def text_or_none(self, name: str) -> str | None:
        """A string or class, or None."""
        return None if self[name] is None else self.text(name)

    def strings(self, name: str) -> list[str]:
        """A list of strings."""
        value = self[name]
        assert isinstance(value, list), f"{name} is not a list"
        return value

    def boolean(self, name: str) -> bool:
        value = self[name]
        assert isinstance(value, bool), f"{name} is not a boolean"
        return value

    def integer(self, name: str) -> int:
        """An integer; not null."""
        value = self[name]
        assert type(value) is int, f"{name} is not an integer"
        return value

    def integer_or_none(self, name: str) -> int | None:
        """An integer, or None."""
        return None if self[name] is None else self.integer(name)

    def number(self, name: str) -> float:
        value = self[name]
        assert isinstance(value, float), f"{name} is not a double"
        return value

    def password(self, name: str) -> str:
        value = self[name]
        assert isinstance(value, Password), f"{name} is not a password"
        return value.value


# Gives the full name of a class by its name or alias, None if there is no such class.
ClassFinder = Callable[[str], str | None]


class ConfigDef:
    """The settings of a worker, connector, converter or transform, in order.

    The value of a CLASS is its full name: `find_class` resolves aliases, and detects missing
    classes.
    """

    def __init__(
        self, keys: Iterable[ConfigKey] = (), *, find_class: ClassFinder | None = None
    ) -> None:
        self.keys: dict[str, ConfigKey] = {}
        self.groups: list[str] = []
        self._find_class = find_class
        for key in keys:
            self.add(key)

    def define(  # noqa: PLR0913 - one call declares all there is to say of a setting
        self,
        name: str,
        type_: ConfigType,
        default: object = REQUIRED,
        *,
        validator: Validator | None = None,
        importance: Importance = Importance.MEDIUM,
        doc: str = "",
        group: str | None = None,
        order: int = -1,
        width: Width = Width.NONE,
        display_name: str | None = None,
        dependents: Sequence[str] = (),
        recommender: Recommender | None = None,
    ) -> Self:
        """Defines a setting; raises if the default is invalid."""
        return self.add(
            ConfigKey(
                name,
                type_,
                default,
                validator,
                importance,
                doc,
                group,
                order,
                width,
                name if display_name is None else display_name,
                tuple(dependents),
                recommender,
            )
        )

    def add(self, key: ConfigKey) -> Self:
        """Adds a setting that was defined elsewhere."""
        if key.name in self.keys:
            raise ConfigError(f"Configuration {key.name} is defined twice.")
        if not key.required:
            key = replace(key, default=parse_type(key.name, key.default, key.type))
            if key.validator is not None:
                key.validator.ensure_valid(key.name, key.default)
        if key.group is not None and key.group not in self.groups:
            self.groups.append(key.group)
        self.keys[key.name] = key
        return self

    def embed(self, prefix: str, group: str, first_order: int, child: "ConfigDef") -> None:
        """Adds the settings of another definition under a prefix, in a group of their own."""
        for order, key in enumerate(child.sorted_keys(), start=first_order):
            self.add(
                replace(
                    key,
                    name=prefix + key.name,
                    validator=key.validator and _Embedded(prefix, key.validator),
                    group=group if key.group is None else f"{group}: {key.group}",
                    order=order,
                    dependents=tuple(prefix + name for name in key.dependents),
                    recommender=key.recommender and _EmbeddedRecommender(prefix, key.recommender),
                )
            )

    def sorted_keys(self) -> list[ConfigKey]:
        """The settings by group and order; otherwise required ones first, then by importance."""
        importances = list(Importance)

        def place(key: ConfigKey) -> tuple[int, int, bool, int, str]:
            group = -1 if key.group is None else self.groups.index(key.group)
            importance = importances.index(key.importance)
            return group, key.order, not key.required, importance, key.name

        return sorted(self.keys.values(), key=place)

    def parse(self, config: Mapping[str, object]) -> Settings:
        """The value of every setting; ConfigError for the first invalid one."""
        undefined = self._undefined_dependents()
        if undefined:
            raise ConfigError(
                "Some configurations in are referred in the dependents, but not defined: "
                + ",".join(undefined)
            )
        return Settings((key.name, self._parse_one(key, config)) for key in self.keys.values())

    def validate(self, config: Mapping[str, object]) -> list[ConfigValue]:
        """The validation result of every setting: value, errors, recommended values."""
        return list(self.validate_all(config).values())

    def validate_all(self, config: Mapping[str, object]) -> dict[str, ConfigValue]:
        """The validation results by name."""
        result = {name: ConfigValue(name) for name in self.keys}
        for name in self._undefined_dependents():
            wrong = f"{name} is referred in the dependents, but not defined."
            result[name] = ConfigValue(name, errors=[wrong], visible=False)
        for key in self.keys.values():
            self._check_one(key, config, result[key.name])
        parsed = {name: result[name].value for name in self.keys}
        for key in self.keys.values():
            if key.recommender is not None:
                _recommend(key, key.recommender, parsed, result[key.name])
        return result

    def _parse_one(self, key: ConfigKey, config: Mapping[str, object]) -> object:
        value = self._value(key, config)
        if isinstance(key.validator, ValidList) and isinstance(value, list):
            value = list(dict.fromkeys(value))
        if key.validator is not None:
            key.validator.ensure_valid(key.name, value)
        return value

    def _value(self, key: ConfigKey, config: Mapping[str, object]) -> object:
        if key.name in config:
            return self._resolved(key, parse_type(key.name, config[key.name], key.type))
        if key.required:
            raise ConfigError(
                f'Missing required configuration "{key.name}" which has no default value.'
            )
        return key.default

    def _resolved(self, key: ConfigKey, value: object) -> object:
        if key.type is not ConfigType.CLASS or self._find_class is None or value is None:
            return value
        full_name = self._find_class(str(value))
        if full_name is None:
            raise invalid(key.name, value, f"Class {value} could not be found.")
        return full_name

    def _check_one(self, key: ConfigKey, config: Mapping[str, object], found: ConfigValue) -> None:
        try:
            found.value = self._value(key, config)
        except ConfigError as error:
            found.errors.append(error.message)
        if key.validator is not None:
            # An invalid value is also checked as null: Kafka lists both errors.
            try:
                key.validator.ensure_valid(key.name, found.value)
            except ConfigError as error:
                found.errors.append(error.message)

    def _undefined_dependents(self) -> list[str]:
        named = (name for key in self.keys.values() for name in key.dependents)
        return [name for name in dict.fromkeys(named) if name not in self.keys]


def _recommend(
    key: ConfigKey, recommender: Recommender, parsed: Mapping[str, object], found: ConfigValue
) -> None:
    try:
        found.recommended_values = list(recommender.valid_values(key.name, parsed))
        found.visible = recommender.visible(key.name, parsed)
    except ConfigError as error:
        found.errors.append(error.message)


@dataclass(frozen=True, slots=True)
class _Embedded:
    """A validator that sees its setting without the prefix."""

    prefix: str
    inner: Validator

    def ensure_valid(self, name: str, value: object) -> None:
        self.inner.ensure_valid(name.removeprefix(self.prefix), value)

    def __str__(self) -> str:
        return str(self.inner)


@dataclass(frozen=True, slots=True)
class _EmbeddedRecommender:
    """A recommender that sees its settings without the prefix."""

    prefix: str
    inner: Recommender

    def valid_values(self, name: str, parsed: Mapping[str, object]) -> Sequence[object]:
        return self.inner.valid_values(
            name.removeprefix(self.prefix), with_prefix(self.prefix, parsed)
        )

    def visible(self, name: str, parsed: Mapping[str, object]) -> bool:
        return self.inner.visible(name.removeprefix(self.prefix), with_prefix(self.prefix, parsed))


_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_BITS = {ConfigType.INT: 32, ConfigType.SHORT: 16, ConfigType.LONG: 64}
# The types of values that are not strings, and the errors for other types.
_OWN_TYPES: dict[ConfigType, tuple[type, ...]] = {
    ConfigType.BOOLEAN: (bool,),
    ConfigType.INT: (int,),
    ConfigType.SHORT: (int,),
    ConfigType.LONG: (int,),
    ConfigType.DOUBLE: (int, float),
    ConfigType.LIST: (list, tuple),
    ConfigType.PASSWORD: (Password,),
    ConfigType.STRING: (),
    ConfigType.CLASS: (),
}
_REFUSALS = {
    ConfigType.BOOLEAN: "Expected value to be either true or false",
    ConfigType.INT: "Expected value to be a 32-bit integer, but it was a {}",
    ConfigType.SHORT: "Expected value to be a 16-bit integer (short), but it was a {}",
    ConfigType.LONG: "Expected value to be a 64-bit integer (long), but it was a {}",
    ConfigType.DOUBLE: "Expected value to be a double, but it was a {}",
    ConfigType.LIST: "Expected a comma separated list.",
    ConfigType.PASSWORD: "Expected value to be a string, but it was a {}",
    ConfigType.STRING: "Expected value to be a string, but it was a {}",
    ConfigType.CLASS: "Expected a Class instance or class name.",
}


def with_prefix(prefix: str, config: Mapping[str, T]) -> dict[str, T]:
    """The settings with a prefix, without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in config.items()
        if name.startswith(prefix)
    }


def parse_type(name: str, value: object, type_: ConfigType) -> object:
    """Parses a string as a value of the type; values that already have the type are unchanged."""
    if value is None:
        return None
    if isinstance(value, str):
        return _parse_text(name, value, type_)
    if type(value) not in _OWN_TYPES[type_]:
        raise invalid(name, value, _REFUSALS[type_].format(type(value).__name__))
    if type_ is ConfigType.DOUBLE and isinstance(value, int):
        return float(value)
    return list(value) if isinstance(value, tuple) else value


def _parse_text(name: str, text: str, type_: ConfigType) -> object:
    trimmed = text.strip(CONTROLS_AND_SPACE)
    try:
        match type_:
            case ConfigType.BOOLEAN:
                if trimmed.lower() not in ("true", "false"):
                    raise invalid(name, text, "Expected value to be either true or false")
                return trimmed.lower() == "true"
            case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
                bound = 1 << (_BITS[type_] - 1)
                return parse_integer(trimmed, -bound, bound - 1)
            case ConfigType.DOUBLE:
                return parse_double(trimmed)
            case ConfigType.LIST:
                return _COMMA.split(trimmed) if trimmed else []
            case ConfigType.PASSWORD:
                return Password(trimmed)
            case ConfigType.STRING | ConfigType.CLASS:
                return trimmed
    except ValueError:
        raise invalid(name, text, f"Not a number of type {type_.value}") from None


def text_of(value: object, type_: ConfigType | None) -> str | None:
    """A value as the REST API returns it; passwords stay hidden."""
    if value is None:
        return None
    if type_ is ConfigType.LIST and isinstance(value, list):
        return ",".join(map(shown, value))
    if type_ is ConfigType.DOUBLE and isinstance(value, float):
        return double_text(value)
    return shown(value)
