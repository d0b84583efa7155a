"""InsertHeader: adds a constant header."""

from collections.abc import Mapping

from connect.api import Transformation
from connect.config_def import (
    ConfigDef,
    ConfigType,
    Importance,
    NonNull,
)
from connect.records import Header, Record
from connect.value_strings import value_of_text


class InsertHeader(Transformation):
    """Adds the same header to all records."""

    @classmethod
    def config(cls) -> ConfigDef:
        return (
            ConfigDef()
            .define(
                "header",
                ConfigType.STRING,
                validator=NonNull(),
                importance=Importance.HIGH,
                doc="The name of the header.",
            )
            .define(
                "value.literal",
                ConfigType.STRING,
                validator=NonNull(),
                importance=Importance.HIGH,
                doc="The header's value; its type is inferred: 7 is a number, true a boolean, "
                "[1,2] an array.",
            )
        )

    def configure(self, config: Mapping[str, str]) -> None:
        settings = self.config().parse(config)
        schema, value = value_of_text(settings.text("value.literal"))
        self._header = Header(settings.text("header"), schema, value)

    def apply(self, record: Record) -> Record:
        return record.changed(headers=[*record.headers, self._header])
