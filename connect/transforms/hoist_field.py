"""HoistField: wraps a key or value in a struct of one field."""

from collections.abc import Mapping
from typing import ClassVar

from connect.api import Transformation
from connect.config_def import ConfigDef, ConfigType, Importance
from connect.data import Struct, struct
from connect.records import Record
from connect.transforms.parts import (
    KEY,
    VALUE,
    Part,
    SchemaPlans,
    ensure_not_null,
)


class HoistField(Transformation):
    """Wraps a key or value in a struct of one field; data without a schema in a dict."""

    part: ClassVar[Part]

    @classmethod
    def config(cls) -> ConfigDef:
        return ConfigDef().define(
            "field",
            ConfigType.STRING,
            importance=Importance.MEDIUM,
            doc="The name of the field that contains the key or value.",
        )

    def configure(self, config: Mapping[str, str]) -> None:
        self._field = self.config().parse(config).text("field")
        self._plans = SchemaPlans(lambda schema: struct(None, {self._field: schema}))

    def apply(self, record: Record) -> Record:
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
