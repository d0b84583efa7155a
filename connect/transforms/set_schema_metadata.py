"""SetSchemaMetadata: sets the name or version of a schema."""

from collections.abc import Mapping
from typing import ClassVar

from connect.api import Transformation
from connect.config_def import ConfigDef, ConfigType, Importance
from connect.data import ConnectSchema, Struct
from connect.errors import ConfigError, DataError
from connect.records import Record
from connect.transforms.parts import (
    KEY,
    VALUE,
    Part,
    SchemaPlans,
    field_values,
    with_replace_null,
)


class SetSchemaMetadata(Transformation):
    """Sets the name, the version or both of a schema."""

    part: ClassVar[Part]

    @classmethod
    def config(cls) -> ConfigDef:
        definition = (
            ConfigDef()
            .define(
                "schema.name",
                ConfigType.STRING,
                None,
                importance=Importance.HIGH,
                doc="The new name of the schema.",
            )
            .define(
                "schema.version",
                ConfigType.INT,
                None,
                importance=Importance.HIGH,
                doc="The new version of the schema.",
            )
        )
        return with_replace_null(definition)

    def configure(self, config: Mapping[str, str]) -> None:
        settings = self.config().parse(config)
        self._name = settings.text_or_none("schema.name")
        self._version = settings.integer_or_none("schema.version")
        self._replace_null = settings.boolean("replace.null.with.default")
        if self._name is None and self._version is None:
            raise ConfigError("Neither schema name nor version configured")
        self._plans = SchemaPlans(self._renamed)

    def apply(self, record: Record) -> Record:
        schema, value = self.part.get(record)
        if schema is None:
            if value is None:
                return record
            raise DataError("Schema required for [updating schema metadata]")
        renamed = self._plans.of(schema)
        if isinstance(value, Struct):
            values = field_values(value, replace_null=self._replace_null)
            value = Struct(renamed, values)
        return self.part.put(record, renamed, value)

    def _renamed(self, schema: ConnectSchema) -> ConnectSchema:
        return schema.with_(
            name=schema.name if self._name is None else self._name,
            version=schema.version if self._version is None else self._version,
        )


class SetSchemaMetadataKey(SetSchemaMetadata):
    """SetSchemaMetadata of the key."""

    part = KEY


class SetSchemaMetadataValue(SetSchemaMetadata):
    """SetSchemaMetadata of the value."""

    part = VALUE
