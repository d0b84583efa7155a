"""Plugins: connectors, converters, transforms and predicates by the names that users write.

A plugin has its full name and two aliases: without the package, and also without the kind:
"org.apache.kafka.connect.file.FileStreamSourceConnector", "FileStreamSourceConnector" and
"FileStreamSource" are the same. Installed packages add plugins by entry points:

    [project.entry-points."millstream.connectors"]
    weather = "weather_connect.source:WeatherSourceConnector"

The name of the entry point is an alias, too. Other classes are named "package.module:Class", if
their module, or its package, is listed in the worker's `plugin.modules`: a request can name any
module, and importing a module runs it.
"""

import importlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version

from connect.api import (
    Connector,
    Predicate,
    SinkConnector,
    SourceConnector,
    Transformation,
)
from connect.builtin_plugins import BuiltinPlugin, builtin_plugins
from connect.errors import ConfigError
from connect.plugin_finder import PluginKind

logger = logging.getLogger(__name__)

CONNECTOR_KINDS = (PluginKind.SOURCE, PluginKind.SINK)
ENTRY_POINTS: Mapping[str, tuple[PluginKind, ...]] = {
    "millstream.connectors": CONNECTOR_KINDS,
    "millstream.converters": (PluginKind.CONVERTER,),
    "millstream.header_converters": (PluginKind.HEADER_CONVERTER,),
    "millstream.transforms": (PluginKind.TRANSFORMATION,),
    "millstream.predicates": (PluginKind.PREDICATE,),
}
# Suffixes that are omitted in aliases.
_SUFFIXES = {
    PluginKind.SOURCE: "Connector",
    PluginKind.SINK: "Connector",
    PluginKind.CONVERTER: "Converter",
    PluginKind.HEADER_CONVERTER: "HeaderConverter",
    PluginKind.TRANSFORMATION: "Transformation",
    PluginKind.PREDICATE: "Predicate",
}
_BASES: Mapping[PluginKind, type] = {
    PluginKind.SOURCE: SourceConnector,
    PluginKind.SINK: SinkConnector,
    PluginKind.TRANSFORMATION: Transformation,
    PluginKind.PREDICATE: Predicate,
}
_METHODS = {
    PluginKind.CONVERTER: ("from_connect_data", "to_connect_data"),
    PluginKind.HEADER_CONVERTER: ("from_connect_header", "to_connect_header"),
}


@dataclass(frozen=True, slots=True)
class _Plugin:
    """A plugin, loaded or not."""

    kind: PluginKind
    name: str
    place: str
    version: str
    task_name: str | None = None
    alias: str | None = None

    def names(self) -> Iterator[str]:
        """Its full name and its aliases."""
        yield self.name
        yield self.place
        simple = self.place.rpartition(":")[2] if ":" in self.name else self.name.rpartition(".")[2]
        if "$" not in simple:
            yield simple
            yield simple.removesuffix(_SUFFIXES[self.kind]) or simple
        if self.alias is not None:
            yield self.alias


class Plugins:
    """All plugins of a worker; see plugin_finder.PluginFinder. Any thread may call it."""

    def __init__(
        self, *, entries: Iterable[EntryPoint] | None = None, modules: Iterable[str] = ()
    ) -> None:
        """Built-in plugins, those of entry points, and classes of some modules.

        Nothing is imported yet, except the connectors of entry points.
        """
        self._modules = set(modules)
        self._plugins: dict[PluginKind, dict[str, _Plugin]] = {kind: {} for kind in PluginKind}
        self._names: dict[PluginKind, dict[str, str]] = {kind: {} for kind in PluginKind}
        number = _own_version()
        for builtin in builtin_plugins():
            self._add(_builtin(builtin, number))
        for entry in _entries() if entries is None else entries:
            self._add_entry(entry)

    # --- lookup -----------------------------------------------------------------------------

    def class_name(self, name: str) -> str | None:
        """The full name of a plugin of any kind, by name or alias; None if there is none."""
        for kind in PluginKind:
            full_name = self._full_name(kind, name)
            if full_name is not None:
                return full_name
        return None

    def find(self, kind: PluginKind, name: str) -> type | None:
        """The class of a plugin of this kind; None if there is none.

        ConfigError, which names the missing library, if it cannot be imported.
        """
        full_name = self._full_name(kind, name)
        if full_name is None:
            return None
        known = self._plugins[kind].get(full_name)
        found = _load(full_name, full_name if known is None else known.place)
        return found if isinstance(found, type) and _is_of_kind(found, kind) else None

    def class_names(self, kind: PluginKind) -> Sequence[str]:
        """The full names of all plugins of this kind, sorted."""
        return sorted(self._plugins[kind])

    def version(self, kind: PluginKind, name: str) -> str | None:
        """The version of a plugin; None if it is missing or has no version."""
        full_name = self._full_name(kind, name)
        if full_name is None:
            return None
        known = self._plugins[kind].get(full_name)
        if known is not None and known.version:
            return known.version
        own = getattr(self.find(kind, name), "version", None)
        return str(own()) if callable(own) else None

    def kind_of(self, name: str) -> PluginKind | None:
        """SOURCE or SINK for the name of a connector; None for other names."""
        for kind in CONNECTOR_KINDS:
            if self._full_name(kind, name) is not None:
                return kind
        return None

    def connector(self, name: str) -> type[Connector]:
        """The class of a connector; if it is missing, ConfigError lists the available ones."""
        for kind in CONNECTOR_KINDS:
            found = self.find(kind, name)
            if found is not None:
                assert issubclass(found, Connector), "found as a connector"
                return found
        known = sorted(name for kind in CONNECTOR_KINDS for name in self._plugins[kind])
        raise ConfigError(
            "Failed to find any class that implements Connector and which name matches "
            f"{name}, available connectors are: {', '.join(known)}",
            hint=(
                'to use a class of another module, add the module to the worker\'s "plugin.modules"'
            )
            if ":" in name
            else "",
        )

    def task_name(self, connector: str) -> str:
        """The class name of a connector's tasks, for task configurations."""
        kind = self.kind_of(connector)
        full_name = None if kind is None else self._full_name(kind, connector)
        known = None if kind is None else self._plugins[kind].get(full_name or "")
        if known is not None and known.task_name is not None:
            return known.task_name
        task = self.connector(connector)().task_class()
        return f"{task.__module__}:{task.__qualname__}"

    # --- names ------------------------------------------------------------------------------

    def _full_name(self, kind: PluginKind, name: str) -> str | None:
        known = self._names[kind].get(name)
        if known is not None:
            return known or None  # an alias of several plugins is ambiguous
        if not self._is_listed(name):
            return None
        return name if _is_of_kind(_load(name, name, missing_ok=True), kind) else None

    def allow_module(self, place: str) -> None:
        """Allow a class that the owner of the worker names, as "package.module:Class"."""
        if ":" in place:
            self._modules.add(place.partition(":")[0])

    def _is_listed(self, name: str) -> bool:
        module, colon, _ = name.partition(":")
        parts = module.split(".")
        packages = (".".join(parts[: end + 1]) for end in range(len(parts)))
        return bool(colon) and any(package in self._modules for package in packages)

    def _add(self, plugin: _Plugin) -> None:
        self._plugins[plugin.kind][plugin.name] = plugin
        names = self._names[plugin.kind]
        for name in dict.fromkeys(plugin.names()):
            taken = names.get(name, plugin.name) != plugin.name and name != plugin.name
            names[name] = "" if taken else plugin.name

    def _add_entry(self, entry: EntryPoint) -> None:
        kinds = ENTRY_POINTS[entry.group]
        number = "" if entry.dist is None else entry.dist.version
        if len(kinds) > 1:
            # Only the class itself shows whether it is a source or a sink.
            try:
                found = _load(entry.name, entry.value)
            except ConfigError as error:
                logger.warning('connector "%s" cannot be used: %s', entry.name, error)
                return
            kinds = tuple(kind for kind in kinds if _is_of_kind(found, kind))
        for kind in kinds:
            self._add(_Plugin(kind, entry.value, entry.value, number, alias=entry.name))


def _builtin(plugin: BuiltinPlugin, number: str) -> _Plugin:
    return _Plugin(plugin.kind, plugin.name, plugin.place, number, plugin.task_name)


def _entries() -> Iterator[EntryPoint]:
    for group in ENTRY_POINTS:
        yield from entry_points(group=group)


def _own_version() -> str:
    try:
        return version("millstream")
    except PackageNotFoundError:
        return ""


def _load(name: str, place: str, *, missing_ok: bool = False) -> object:
    """The class at "module:Class"; ConfigError if it is missing."""
    module_name, _, class_name = place.partition(":")
    try:
        found: object = importlib.import_module(module_name)
        for part in class_name.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        own = error.name is not None and f"{module_name}.".startswith(f"{error.name}.")
        if missing_ok and own:
            return None
        raise ConfigError(
            f'plugin "{name}" needs the module "{error.name}", which is not installed',
            hint='install the missing packages, for example: pip install "millstream[connectors]"',
        ) from error
    except (AttributeError, ValueError, TypeError) as error:
        if missing_ok:
            return None
        raise ConfigError(f'plugin "{name}" was not found at "{place}": {error}') from error
    except Exception as error:
        raise ConfigError(f'plugin "{name}" cannot be imported: {error}') from error
    return found


def _is_of_kind(found: object, kind: PluginKind) -> bool:
    if not isinstance(found, type):
        return False
    base = _BASES.get(kind)
    if base is not None:
        return issubclass(found, base)
    return all(hasattr(found, method) for method in _METHODS[kind])
