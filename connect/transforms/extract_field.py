"""ExtractField: replaces a key or value with one of its fields."""

from collections.abc import Mapping
from typing import ClassVar

from connect.api import Transformation
from connect.config_def import ConfigDef, ConfigType, Importance
from connect.data import ConnectSchema
from connect.errors import DataError
from connect.records import Record
from connect.transforms.field_path import FieldPath, with_field_syntax
from connect.transforms.parts import (
    KEY,
    VALUE,
    Part,
    SchemaPlans,
    require_map,
    require_struct,
    with_replace_null,
)


class ExtractField(Transformation):
    """Replaces a key or value with one of its fields; nulls stay null."""

    part: ClassVar[Part]

    @classmethod
    def config(cls) -> ConfigDef:
        definition = ConfigDef().define(
            "field",
            ConfigType.STRING,
            importance=Importance.MEDIUM,
            doc="The field to extract.",
        )
        return with_field_syntax(with_replace_null(definition))

    def configure(self, config: Mapping[str, str]) -> None:
        settings = self.config().parse(config)
        self._text = settings.text("field")
        self._path = FieldPath.parse(self._text, settings.text("field.syntax.version"))
        self._replace_null = settings.boolean("replace.null.with.default")
        self._plans = SchemaPlans(self._extracted)

    def apply(self, record: Record) -> Record:
        schema, value = self.part.get(record)
        purpose = "field extraction"
        if schema is None:
            if value is not None:
                value = self._path.value_in_map(require_map(value, purpose))
            return self.part.put(record, None, value)
        if value is not None:
            whole = require_struct(value, purpose)
            field_schema = self._plans.of(schema)
            value = self._path.value_in_struct(whole, replace_null=self._replace_null)
            return self.part.put(record, field_schema, value)
        return self.part.put(record, self._plans.of(schema), None)

    def _extracted(self, schema: ConnectSchema) -> ConnectSchema:
        field = self._path.field_of(schema)
        if field is None:
            names = ", ".join(schema.positions)
            raise DataError(f"Unknown field: {self._text}", hint=f"the fields are {names}")
        return field.schema


class ExtractFieldKey(ExtractField):
    """ExtractField of the key."""

    part = KEY


class ExtractFieldValue(ExtractField):
    """ExtractField of the value."""

    part = VALUE
