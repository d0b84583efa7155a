"""PluginCatalog: the available plugins, their settings, and validation."""

from dataclasses import dataclass

from connect.config.answers import ConfigInfos
from connect.config_def import ConfigDef, ConfigKey
from connect.errors import BadRequest, ConfigError, NotFound
from connect.herder.descriptions import PluginInfo
from connect.herder.validation import NullableConfig, Validation, common_definition, connector_class
from connect.plugin_finder import PluginKind
from connect.plugins import CONNECTOR_KINDS, Plugins

# The order in which they are listed.
KINDS = (
    PluginKind.SINK,
    PluginKind.SOURCE,
    PluginKind.TRANSFORMATION,
    PluginKind.PREDICATE,
    PluginKind.CONVERTER,
    PluginKind.HEADER_CONVERTER,
)


@dataclass(frozen=True, slots=True)
class PluginCatalog:
    """Descriptions of plugins for the REST API."""

    plugins: Plugins
    validation: Validation

    def listing(self, *, connectors_only: bool = True) -> list[PluginInfo]:
        """The available plugins."""
        return [
            PluginInfo(name, kind.value, self.plugins.version(kind, name))
            for kind in KINDS
            if kind in CONNECTOR_KINDS or not connectors_only
            for name in self.plugins.class_names(kind)
        ]

    def settings(self, name: str) -> list[ConfigKey]:
        """The settings of a plugin."""
        try:
            return list(self._definition(name).keys.values())
        except ConfigError as error:
            raise BadRequest(error.message, hint=error.hint) from error

    def check_version(self, name: str, version: str) -> None:
        """Raise BadRequest if a plugin does not have this version."""
        found = (self.plugins.version(kind, name) for kind in PluginKind)
        there = next((each for each in found if each is not None), None)
        if version != there:
            raise BadRequest(
                f"Plugin {self.plugins.class_name(name)} not found that matches the version range "
                f"[{version},{version}], available versions: [{there}]"
            )

    def validate(self, config: NullableConfig) -> ConfigInfos:
        """Validate a connector's configuration."""
        return self.validation.validate(config)

    def validate_for(self, name: str, config: NullableConfig) -> ConfigInfos:
        """Validate a configuration that must have the named connector class."""
        given = config.get("connector.class")
        if given is not None and not _short(given).endswith(_short(name)):
            raise BadRequest(f"Included connector type {given} does not match request type {name}")
        connector_class(config)
        return self.validate(config)

    def _definition(self, name: str) -> ConfigDef:
        for kind in PluginKind:
            found = self.plugins.find(kind, name)
            if found is None:
                continue
            declared = getattr(found, "config", None)
            own: ConfigDef = ConfigDef() if declared is None else declared()
            if kind not in CONNECTOR_KINDS:
                return own
            common = common_definition(self.plugins, name)
            others = [key for key in common.keys.values() if key.name not in own.keys]
            return ConfigDef([*own.keys.values(), *others])
        raise NotFound(f"Unknown plugin {name}.")


def _short(name: str) -> str:
    """A connector's name in a path: without package and suffix."""
    return name.removesuffix("Connector") or name
