"""HoistField, ExtractField and ValueToKey: a field around everything, or fields out of it."""

from collections.abc import Mapping
from typing import ClassVar

from connect.api import Transformation
from connect.config_def import ConfigDef, ConfigType, Importance, ValidList
from connect.data import ConnectSchema, Field, Struct, struct
from connect.errors import DataError
from connect.records import Record
from connect.transforms.field_path import FieldPath, with_field_syntax
from connect.transforms.parts import (
    KEY,
    VALUE,
    Part,
    SchemaPlans,
    ensure_not_null,
    field_values,
    require_map,
    require_struct,
    with_replace_null,
)


class HoistField(Transformation):
    """Wraps a key or value into a struct of one field; data without a schema into a dict."""

    part: ClassVar[Part]

    @classmethod
    def config(cls) -> ConfigDef:
        """The name of the field."""
        return ConfigDef().define(
            "field",
            ConfigType.STRING,
            importance=Importance.MEDIUM,
            doc="The name of the field that the key or value becomes.",
        )

    def configure(self, config: Mapping[str, str]) -> None:
        """Takes the field's name."""
        self._field = self.config().parse(config).text("field")
        self._plans = SchemaPlans(lambda schema: struct(None, {self._field: schema}))

    def apply(self, record: Record) -> Record:
        """The record with everything in one field."""
        schema, value = self.part.get(record)
        if schema is None:
            return self.part.put(record, None, {self._field: value})
        wrapped = self._plans.of(schema)
        ensure_not_null(wrapped.fields[0], value)
        return self.part.put(record, wrapped, Struct(wrapped, [value]))


class HoistFieldKey(HoistField):
    """HoistField of the key."""

    part = KEY


class HoistFieldValue(HoistField):
    """HoistField of the value."""

    part = VALUE


class ExtractField(Transformation):
    """Makes one field the whole key or value; nulls pass."""

    part: ClassVar[Part]

    @classmethod
    def config(cls) -> ConfigDef:
        """The path of the field."""
        definition = ConfigDef().define(
            "field",
            ConfigType.STRING,
            importance=Importance.MEDIUM,
            doc="The field to take out.",
        )
        return with_field_syntax(with_replace_null(definition))

    def configure(self, config: Mapping[str, str]) -> None:
        """Takes the field's path."""
        settings = self.config().parse(config)
        self._text = settings.text("field")
        self._path = FieldPath.parse(self._text, settings.text("field.syntax.version"))
        self._replace_null = settings.boolean("replace.null.with.default")
        self._plans = SchemaPlans(self._extracted)

    def apply(self, record: Record) -> Record:
        """The record with the field alone."""
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


class ValueToKey(Transformation):
    """Makes a key of some fields of the value."""

    @classmethod
    def config(cls) -> ConfigDef:
        """The fields."""
        definition = ConfigDef().define(
            "fields",
            ConfigType.LIST,
            validator=ValidList(empty_allowed=False),
            importance=Importance.HIGH,
            doc="The fields of the value that the key is made of, separated by commas.",
        )
        return with_replace_null(definition)

    def configure(self, config: Mapping[str, str]) -> None:
        """Takes the fields."""
        settings = self.config().parse(config)
        self._fields = settings.texts("fields")
        self._replace_null = settings.boolean("replace.null.with.default")
        self._plans = SchemaPlans(self._plan)

    def apply(self, record: Record) -> Record:
        """The record with another key."""
        purpose = "copying fields from value to key"
        if record.value_schema is None:
            mapping = require_map(record.value, purpose)
            key = {name: mapping.get(name) for name in self._fields}
            return record.changed(key_schema=None, key=key)
        whole = require_struct(record.value, purpose)
        schema, positions = self._plans.of(whole.schema)
        values = field_values(whole, replace_null=self._replace_null)
        return record.changed(
            key_schema=schema, key=Struct(schema, [values[position] for position in positions])
        )

    def _plan(self, schema: ConnectSchema) -> tuple[ConnectSchema, tuple[int, ...]]:
        fields: list[Field] = []
        for name in self._fields:
            field = schema.field(name)
            if field is None:
                names = ", ".join(schema.positions)
                raise DataError(f"Field does not exist: {name}", hint=f"the fields are {names}")
            fields.append(field)
        return struct(None, fields), tuple(schema.positions[name] for name in self._fields)
