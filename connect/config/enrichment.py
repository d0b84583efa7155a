"""The settings of a connector's transforms and predicates, added to its definition.

transforms=route                                 the aliases, in the order of the chain
transforms.route.type=...transforms.RegexRouter  the plugin of each one
transforms.route.regex=(.*)                      the plugin's own settings
transforms.route.predicate=tombstones            when to apply it
transforms.route.negate=true
predicates=tombstones
predicates.tombstones.type=...predicates.RecordIsTombstone
"""

from collections.abc import Mapping
from dataclasses import dataclass

from connect.api import Predicate, Transformation
from connect.config.connector_config import (
    PREDICATES,
    TRANSFORMS,
    ClassRecommender,
    VersionRecommender,
    class_finder,
    ensure_plugin,
    list_setting,
)
from connect.config_def import Check, ConfigDef, ConfigType, Importance, Width, invalid
from connect.errors import ConfigError
from connect.plugin_finder import PluginFinder, PluginKind


@dataclass(frozen=True, slots=True)
class _Family:
    """Transforms or predicates."""

    kind: PluginKind
    setting: str
    group: str
    interface: str

    @property
    def word(self) -> str:
        return self.interface.lower()


_FAMILIES = (
    _Family(PluginKind.TRANSFORMATION, "transforms", TRANSFORMS, "Transformation"),
    _Family(PluginKind.PREDICATE, "predicates", PREDICATES, "Predicate"),
)


def enrich(
    definition: ConfigDef,
    config: Mapping[str, str | None],
    plugins: PluginFinder,
    *,
    require_all: bool = False,
) -> ConfigDef:
    """A new definition with the settings of the transforms and predicates of `config`.

    With `require_all`, a missing plugin is an error here; otherwise its type is found invalid
    when the definition is used.
    """
    enriched = ConfigDef(definition.keys.values(), find_class=class_finder(plugins))
    for family in _FAMILIES:
        for alias in dict.fromkeys(list_setting(family.setting, config)):
            _add(enriched, family, alias, _Settings(config, plugins, require_all))
    return enriched


@dataclass(frozen=True, slots=True)
class _Settings:
    """Builds the settings of one transform or predicate."""

    config: Mapping[str, str | None]
    plugins: PluginFinder
    require_all: bool


def _add(enriched: ConfigDef, family: _Family, alias: str, settings: _Settings) -> None:
    prefix = f"{family.setting}.{alias}."
    group = f"{family.group}: {alias}"
    plugins, type_setting = settings.plugins, f"{prefix}type"
    chosen = settings.config.get(type_setting)
    version = None if chosen is None else plugins.version(family.kind, chosen)

    def ensure_right(name: str, value: object) -> None:
        _ensure_predicate_to_negate(family, prefix, settings.config)
        if value is not None:
            ensure_plugin(plugins, family.kind, str(value))

    enriched.define(
        type_setting,
        ConfigType.CLASS,
        validator=Check(ensure_right, f"valid configs for {alias} {family.word}"),
        importance=Importance.HIGH,
        doc=f"Class for the '{alias}' {family.word}.",
        group=group,
        order=0,
        width=Width.LONG,
        display_name=f"{family.interface} type for {alias}",
        recommender=ClassRecommender(plugins, family.kind),
    )
    enriched.define(
        f"{prefix}plugin.version",
        ConfigType.STRING,
        version,
        importance=Importance.HIGH,
        doc=f"Version of the '{alias}' {family.word}.",
        group=group,
        order=1,
        width=Width.LONG,
        display_name=f"{family.interface} version for {alias}",
        recommender=VersionRecommender(plugins, family.kind, type_setting, only_with_class=False),
    )
    own = _own_definition(family, type_setting, chosen, settings)
    if own is not None:
        enriched.embed(prefix, group, 2, own)


def _ensure_predicate_to_negate(
    family: _Family, prefix: str, config: Mapping[str, str | None]
) -> None:
    negate, predicate = f"{prefix}negate", f"{prefix}predicate"
    wrong = negate in config and predicate not in config
    if wrong and family.kind is PluginKind.TRANSFORMATION:
        raise ConfigError(
            f"Config '{negate}' was provided but there is no config '{predicate}' defining a "
            "predicate to be negated."
        )


def _own_definition(
    family: _Family, type_setting: str, chosen: str | None, settings: _Settings
) -> ConfigDef | None:
    """The plugin's own settings; None if there is no such plugin, which is reported later."""
    definition = ConfigDef()
    if family.kind is PluginKind.TRANSFORMATION:
        _add_implicit(definition)
    try:
        plugin = _plugin(family, type_setting, chosen, settings.plugins)
    except ConfigError:
        if settings.require_all:
            raise
        return None
    for key in plugin.config().keys.values():
        if key.name not in definition.keys:
            definition.add(key)
    return definition


def _plugin(
    family: _Family, type_setting: str, chosen: str | None, plugins: PluginFinder
) -> type[Transformation] | type[Predicate]:
    if chosen is None:
        raise invalid(type_setting, None, f"Not a {family.interface}")
    full_name = class_finder(plugins)(chosen.strip())
    if full_name is None:
        raise invalid(type_setting, chosen, f"Class {chosen} could not be found.")
    plugin = ensure_plugin(plugins, family.kind, full_name)
    assert issubclass(plugin, Transformation | Predicate), "found as one of this kind"
    return plugin


def _add_implicit(definition: ConfigDef) -> None:
    definition.define(
        "predicate",
        ConfigType.STRING,
        None,
        importance=Importance.MEDIUM,
        doc="The name of a predicate; the transform applies to the records that match it.",
    )
    definition.define(
        "negate",
        ConfigType.BOOLEAN,
        False,
        importance=Importance.MEDIUM,
        doc="Whether the transform applies to the records that do not match the predicate.",
    )
