"""DropHeaders: removes headers."""

from collections.abc import Mapping

from connect.api import Transformation
from connect.config_def import (
    ConfigDef,
    ConfigType,
    Importance,
    ValidList,
)
from connect.records import Record


class DropHeaders(Transformation):
    """Removes headers by name."""

    @classmethod
    def config(cls) -> ConfigDef:
        return ConfigDef().define(
            "headers",
            ConfigType.LIST,
            validator=ValidList(empty_allowed=False),
            importance=Importance.HIGH,
            doc="The names of the headers to remove, separated by commas.",
        )

    def configure(self, config: Mapping[str, str]) -> None:
        self._names = frozenset(self.config().parse(config).strings("headers"))

    def apply(self, record: Record) -> Record:
        return record.changed(
            headers=[each for each in record.headers if each.key not in self._names]
        )
