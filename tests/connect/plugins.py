"""The built-in transforms and predicates, found by their names, without a worker's plugins."""

from collections.abc import Mapping, Sequence

from connect.plugin_finder import PluginKind
from connect.transforms.builtin import PREDICATES, TRANSFORMATIONS


class BuiltinTransforms:
    """Finds what `connect.transforms.builtin` lists."""

    def _all(self, kind: PluginKind) -> Mapping[str, type]:
        found: dict[PluginKind, Mapping[str, type]] = {
            PluginKind.TRANSFORMATION: TRANSFORMATIONS,
            PluginKind.PREDICATE: PREDICATES,
        }
        return found.get(kind, {})

    def class_name(self, name: str) -> str | None:
        known = [*TRANSFORMATIONS, *PREDICATES]
        return next((each for each in known if name in (each, each.rpartition(".")[2])), None)

    def find(self, kind: PluginKind, name: str) -> type | None:
        return self._all(kind).get(self.class_name(name) or name)

    def class_names(self, kind: PluginKind) -> Sequence[str]:
        return sorted(self._all(kind))

    def version(self, kind: PluginKind, name: str) -> str | None:
        return None
