"""DropHeaders: records without some headers."""

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
    """Leaves headers out."""

    @classmethod
    def config(cls) -> ConfigDef:
        """The names of the headers."""
        return ConfigDef().define(
            "headers",
            ConfigType.LIST,
            validator=ValidList(empty_allowed=False),
            importance=Importance.HIGH,
            doc="The names of the headers to remove, separated by commas.",
        )

    def configure(self, config: Mapping[str, str]) -> None:
        """Takes the names."""
        self._names = frozenset(self.config().parse(config).texts("headers"))

    def apply(self, record: Record) -> Record:
        """The record without those headers."""
        return record.changed(
            headers=[each for each in record.headers if each.key not in self._names]
        )
