"""Which settings of a connector are passwords, and its configuration without them.

The definitions of the connector, its transforms, predicates and converters declare passwords; for
an undefined setting its name decides (hidden_values.py). A client may send a configuration back as
it was shown: a hidden value then stands for the stored one.
"""

import logging
from collections.abc import Iterator, Mapping

from connect.config.enrichment import enrich
from connect.config.hidden_values import (
    HIDDEN,
    SECRET_CHARACTERS_MIN,
    hide_value,
    is_reference,
    is_secret_name,
    secrets_in,
)
from connect.config_def import ConfigDef, ConfigKey, ConfigType
from connect.errors import BadRequest, ConnectError
from connect.plugin_finder import PluginFinder, PluginKind

logger = logging.getLogger(__name__)

CONNECTOR_KINDS = (PluginKind.SOURCE, PluginKind.SINK)
CONVERTERS = {
    "key.converter": PluginKind.CONVERTER,
    "value.converter": PluginKind.CONVERTER,
    "header.converter": PluginKind.HEADER_CONVERTER,
}

Config = Mapping[str, str]
NullableConfig = Mapping[str, str | None]


class HiddenSettings:
    """Hides the passwords of configurations. Thread-safe."""

    def __init__(self, plugins: PluginFinder) -> None:
        """The plugins declare which settings are passwords."""
        self._plugins = plugins

    def shown(self, config: Config, of: Config | None = None) -> dict[str, str]:
        """A configuration without passwords; for a task, `of` is that of its connector."""
        keys = self._keys(config if of is None else of)
        return {
            name: hide_value(name, text, password=_is_password(name, keys))
            for name, text in config.items()
        }

    def restored(self, given: NullableConfig, stored: Config | None) -> NullableConfig:
        """The given configuration, with stored values in place of hidden ones.

        BadRequest if a hidden value has no stored one.
        """
        if not any(text is not None and HIDDEN in text for text in given.values()):
            return given
        shown = {} if stored is None else self.shown(stored)
        found = {
            name: stored[name] if stored and name in stored and shown[name] == text else text
            for name, text in given.items()
        }
        keys = self._keys(found)
        for name, text in found.items():
            if text is not None and text.strip() == HIDDEN and _is_password(name, keys):
                raise BadRequest(
                    f'"{name}" is {HIDDEN}, the placeholder for a hidden password',
                    hint="set the password itself, or a reference such as ${file:...}",
                )
        return found

    def secrets(self, config: Config) -> list[str]:
        """The passwords of a configuration that are long enough to search strings for them."""
        keys = self._keys(config)
        found: list[str] = []
        for name, text in config.items():
            if not _is_password(name, keys):
                found += secrets_in(text)
            elif not is_reference(text):
                found += [text, text.strip()]
        usable = {secret for secret in found if len(secret) >= SECRET_CHARACTERS_MIN}
        return sorted(usable, key=len, reverse=True)

    def _keys(self, config: NullableConfig) -> Mapping[str, ConfigKey]:
        """All defined settings; an unknown plugin defines none."""
        keys: dict[str, ConfigKey] = {}
        for prefix, definition in self._definitions(config):
            keys |= {f"{prefix}{name}": key for name, key in definition.keys.items()}
        return keys

    def _definitions(self, config: NullableConfig) -> Iterator[tuple[str, ConfigDef]]:
        try:
            yield "", enrich(ConfigDef(), config, self._plugins)
        except ConnectError:
            logger.debug("the settings of transforms are not known", exc_info=True)
        classes = [("", kind, "connector.class") for kind in CONNECTOR_KINDS]
        classes += [(f"{setting}.", kind, setting) for setting, kind in CONVERTERS.items()]
        for prefix, kind, setting in classes:
            name = config.get(setting)
            try:
                found = self._plugins.find(kind, name.strip()) if name else None
            except ConnectError:
                continue
            definition = getattr(found, "config", None)
            if definition is not None:
                yield prefix, definition()


def _is_password(name: str, keys: Mapping[str, ConfigKey]) -> bool:
    key = keys.get(name)
    return is_secret_name(name) if key is None else key.type is ConfigType.PASSWORD
