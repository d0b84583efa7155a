"""Definitions and validation results, as Connect's REST API returns them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from connect.config.hidden_values import hide_value, is_secret_name
from connect.config_def import ConfigKey, ConfigType, ConfigValue, text_of


@dataclass(frozen=True, slots=True)
class ConfigInfo:
    """One setting: its definition, if any, and the validation result of its value."""

    key: ConfigKey | None
    value: ConfigValue | None

    def as_json(self) -> dict[str, object]:
        """The entry of the response."""
        type_ = None if self.key is None else self.key.type
        return {
            "definition": None if self.key is None else key_info(self.key),
            "value": None if self.value is None else value_info(self.value, type_),
        }


@dataclass(frozen=True, slots=True)
class ConfigInfos:
    """The response to a validation."""

    name: str
    error_count: int
    groups: tuple[str, ...]
    configs: tuple[ConfigInfo, ...]

    @property
    def errors(self) -> list[str]:
        """All errors, in the order of the settings."""
        values = [config.value for config in self.configs if config.value is not None]
        return [error for value in values for error in value.errors]

    def as_json(self) -> dict[str, object]:
        """The body of the response."""
        return {
            "name": self.name,
            "error_count": self.error_count,
            "groups": list(self.groups),
            "configs": [config.as_json() for config in self.configs],
        }


def key_info(key: ConfigKey) -> dict[str, object]:
    """The definition of one setting, as /connector-plugins/{plugin}/config lists it."""
    return {
        "name": key.name,
        "type": key.type.value,
        "required": key.required,
        "default_value": None if key.required else text_of(key.default, key.type),
        "importance": key.importance.value,
        "documentation": key.doc,
        "group": key.group,
        "order_in_group": key.order,
        "width": key.width.value,
        "display_name": key.display_name,
        "dependents": list(key.dependents),
    }


def value_info(value: ConfigValue, type_: ConfigType | None) -> dict[str, object]:
    """The validation result of one setting."""
    # The recommended values of a list are its entries.
    offered = ConfigType.STRING if type_ is ConfigType.LIST else type_
    text = text_of(value.value, type_)
    hidden = type_ is None and is_secret_name(value.name)
    return {
        "name": value.name,
        "value": None if text is None else hide_value(value.name, text, password=hidden),
        "recommended_values": [text_of(each, offered) for each in value.recommended_values],
        "errors": list(value.errors),
        "visible": value.visible,
    }


def config_infos(
    name: str,
    keys: Mapping[str, ConfigKey],
    values: Iterable[ConfigValue],
    groups: Sequence[str],
) -> ConfigInfos:
    """All settings in the order of their definition; undefined ones come first."""
    by_name = {value.name: value for value in values}
    configs = [ConfigInfo(None, value) for value in by_name.values() if value.name not in keys]
    configs += [ConfigInfo(key, by_name.get(key.name)) for key in keys.values()]
    errors = sum(len(value.errors) for value in by_name.values())
    return ConfigInfos(name, errors, tuple(groups), tuple(configs))


def prefixed_infos(
    keys: Mapping[str, ConfigKey], values: Iterable[ConfigValue], prefix: str
) -> ConfigInfos:
    """Settings of a converter or client of a connector; an invalid one counts once."""
    configs: list[ConfigInfo] = []
    for value in values:
        key = keys.get(value.name)
        configs.append(
            ConfigInfo(
                None if key is None else replace(key, name=prefix + key.name),
                replace(value, name=prefix + value.name, visible=True),
            )
        )
    wrong = sum(1 for config in configs if config.value is not None and config.value.errors)
    groups = [config.key.group for config in configs if config.key and config.key.group]
    return ConfigInfos("", wrong, tuple(dict.fromkeys(groups)), tuple(configs))


def merged_infos(name: str, *parts: ConfigInfos | None) -> ConfigInfos:
    """The settings of a connector, its clients and its converters as one response."""
    there = [part for part in parts if part is not None]
    groups = dict.fromkeys(group for part in there for group in part.groups)
    configs = tuple(config for part in there for config in part.configs)
    return ConfigInfos(name, sum(part.error_count for part in there), tuple(groups), configs)
